import type { Model } from '../../lib/index.ts';
import { model as deployed } from '../../model/model.ts';
import { model as fixtures } from '../fixtures/model.ts';
import { model as relations } from '../fixtures/relations.ts';
import { ruledModel } from './ruled-model.ts';
import { smallModel } from './small-model.ts';

/** The model whose last client is a user whom rules limit, and has no other role. */
export const LIMITED = { model: 'groups', role: 'user' };

/** The model of scenes. */
export const STAGE = 'small';

/** The models that a seed chooses from. A repository may have no entities yet. */
export const MODELS: Readonly<Record<string, Model>> = {
  ...(deployed.list.length > 0 && { deployed }),
  fixtures,
  relations,
  [STAGE]: smallModel,
  [LIMITED.model]: ruledModel,
};
