import type { Values } from '../base/values.ts';
import { validateTexts } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { pathTo, type RequestContext, toPathTemplate } from './route.ts';

/** Reads the key of an entity from the path. Throws `invalid-input`. */
export function readKey(entity: Entity, { params }: RequestContext): Values {
  return validateTexts(entity, params, entity.keyFields);
}

export function toEntityPath({ root }: Pick<RequestContext, 'root'>, entity: Entity, values: Values): string {
  return pathTo(root, entity.name, ...entity.keyFields.map((field) => values[field]));
}

export function toEntityTemplate({ name, keyFields }: Entity): string {
  return `${name}/${toPathTemplate(keyFields)}`;
}
