import type { Entity } from '../../lib/define/entity.ts';
import { deployedApp } from '../instance/deployed-app.ts';

/** The entity of that name, of those that are stored one by one. Throws one sentence. */
export function toStoredEntity(name: string): Entity {
  const known = deployedApp.model.list.filter(({ series }) => !series);
  const entity = known.find((candidate) => candidate.name === name);
  if (entity) return entity;
  throw new Error(`There is no entity ${name}; there are ${known.map((one) => one.name).join(', ')}.`);
}
