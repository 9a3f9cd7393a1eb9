import type { Entity } from './entity.ts';
import type { KeyTemplate } from './key-template.ts';
import { elsewhereTables } from './places.ts';

/**
 * Declares what a deployment stores. Throws a plain error where two entities could not be told apart: a row of an index
 * says the key of its entity and not which one it is of, a list says no more than its members, and what is archived is of a
 * type that is named for its table.
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
  const lists = entities.flatMap(listsBeside);
  for (const [index, one] of lists.entries())
    for (const other of lists.slice(index + 1))
      if (one.entity !== other.entity && one.entity.table === other.entity.table && mayMeet(one.row, other.row))
        throw new Error(
          `The deployment cannot be defined: in the table ${one.entity.table} a list ${one.row.template} of ${one.entity.name} may be a list ${other.row.template} of ${other.entity.name}.`,
        );
  return entities;
}

/** The lists that an entity has in its own partitions. */
function listsBeside(entity: Entity): { entity: Entity; row: KeyTemplate }[] {
  return Object.values(entity.indexes).flatMap((index) =>
    index.kind === 'index-entity' && !index.elsewhere ? [{ entity, row: index.row }] : [],
  );
}

/** Keys are told apart for sure by what they begin with. */
function mayMeet({ head: one }: KeyTemplate, { head: other }: KeyTemplate): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

/** Those that an entity has to itself. */
function ownTables(entity: Entity): string[] {
  return [...elsewhereTables(entity), ...(entity.archive ? [entity.archive.table] : [])];
}
