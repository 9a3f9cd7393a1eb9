import type { Entity } from '../../lib/define/entity.ts';
import { deployedApp } from '../instance/deployed-app.ts';

/** Returns the entity of this name. Data series are excluded: they have no rows to import or export. */
export function toStoredEntity(name: string): Entity {
  const known = deployedApp.model.list.filter(({ series }) => !series);
  const entity = known.find((candidate) => candidate.name === name);
  if (entity) return entity;
  if (deployedApp.model.list.some((series) => series.name === name))
    throw new Error(`"${name}" is a data series: its counts cannot be imported or exported.`);
  const archived = known.find(({ archive }) => archive?.name === name);
  if (archived) throw new Error(`"${name}" is the archive of ${archived.name}: it cannot be imported or exported.`);
  throw new Error(`Entity "${name}" not found; accepted are ${known.map((one) => one.name).join(', ')}.`);
}
