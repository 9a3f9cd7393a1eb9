import type { Entity } from '../../lib/define/entity.ts';
import { deployedApp } from '../instance/deployed-app.ts';

/** Returns the entity of this name. Data series are excluded: they have no rows to import or export. */
export function toStoredEntity(name: string): Entity {
  const known = deployedApp.model.list.filter(({ series }) => !series);
  const entity = known.find((candidate) => candidate.name === name);
  if (entity) return entity;
  throw new Error(`Entity "${name}" not found; accepted are ${known.map((one) => one.name).join(', ')}.`);
}
