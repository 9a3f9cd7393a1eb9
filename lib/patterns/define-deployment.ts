import type { Entity } from './entity.ts';
import { elsewhereTables } from './places.ts';

/**
 * Declares what a deployment stores. Throws a plain error where two entities could not be told apart: a row of an index
 * says the key of its entity and not which one it is of, and what is archived is of a type that is named for its table.
 */
export function defineDeployment(entities: readonly Entity[]): readonly Entity[] {
  for (const entity of entities)
    for (const table of ownTables(entity)) {
      const other = entities.find((one) => one !== entity && [one.table, ...ownTables(one)].includes(table));
      if (other)
        throw new Error(
          `The deployment cannot be defined: ${entity.name} has an index or its archive in the table ${table}, which ${other.name} uses.`,
        );
    }
  return entities;
}

/** Those that an entity has to itself. */
function ownTables(entity: Entity): string[] {
  return [...elsewhereTables(entity), ...(entity.archive ? [entity.archive.table] : [])];
}
