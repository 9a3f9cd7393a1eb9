import { canRead } from '../access/rule.ts';
import { openWithGaps, type View } from '../api/view.ts';
import { pick, type Values } from '../base/values.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { RequestContext } from './route.ts';

/** The view of a request's caller. */
export function toView({ app, caller, isLastAttempt }: RequestContext): View {
  return { engine: app.engine, caller, isLastAttempt };
}

/** The response to a write: the entity, or only its key for a caller who may not read the entity. */
export async function presentToWriter(context: RequestContext, entity: Entity, values: Values): Promise<Values> {
  if (!canRead(entity, context.caller)) return pick(values, entity.keyFields);
  return openWithGaps(toView(context), entity, values);
}
