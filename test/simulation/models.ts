import type { Model } from '../../lib/define/define-model.ts';
import { model as deployed } from '../../model/model.ts';
import { model as fixtures } from '../fixtures/model.ts';
import { model as relations } from '../fixtures/relations.ts';

/** The models that a seed chooses from. A repository may have no entities yet. */
export const MODELS: Readonly<Record<string, Model>> = {
  ...(deployed.list.length > 0 && { deployed }),
  fixtures,
  relations,
};
