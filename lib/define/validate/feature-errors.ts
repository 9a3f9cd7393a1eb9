import type { Entity } from '../declaration/entity.ts';
import type { Index, IndexEntity, InterPartitionIndex } from '../declaration/indexes.ts';
import { indexKeyFields } from '../places/index-entries.ts';
import { rolesToReadBy } from '../places/readers.ts';

/** What contains a field: the key of the entity, those of its indexes, and totals. */
export function* keysWith({ keyFields, indexes, totals }: Entity, field: string): Generator<string> {
  if (keyFields.includes(field)) yield 'the key';
  for (const [name, index] of Object.entries(indexes))
    if (indexKeyFields(index).includes(field)) yield `the key of the index "${name}"`;
  for (const [name, { uses }] of Object.entries(totals)) if (uses.includes(field)) yield `the totals "${name}"`;
}

/** Index entries change only with their entity, so an index cannot use fields that change with another entity. */
export function* staleIndexErrors({ indexes, totals }: Entity, fields: readonly string[]): Generator<string> {
  const all = [
    ...Object.entries(indexes).map(([name, { uses }]) => ({ what: `index "${name}" uses`, uses })),
    ...Object.entries(totals).map(([name, { uses }]) => ({ what: `totals "${name}" use`, uses })),
  ];
  for (const { what, uses } of all)
    for (const field of uses)
      if (fields.includes(field))
        yield `the ${what} "${field}", which changes with another entity and would leave them stale. Use fields that this entity's own writes set.`;
}

export function* settleErrors(name: string, { settle }: InterPartitionIndex | IndexEntity): Generator<string> {
  if (!['inline', 'queue'].includes(settle))
    yield `the index "${name}" has settle "${settle}". Use "inline" or "queue".`;
}

/** Only remote copies may have an entry for each element of a list. */
export function* eachErrors(name: string, { row }: Index): Generator<string> {
  if (row.parts.some(({ each }) => each))
    yield `the index "${name}" has a row for each element of a list. Declare it as an inter-partition index.`;
}

/** Errors of a model in which what one entity does or shows tells of another entity, which the role may not read. */

/**
 * The outcome of a write tells whether the other entity exists, so the roles that write must be able to read its field. If the
 * field identifies the entity (`isUnique`), the roles that create such entities learn as much from conflicts.
 */
export function* oracleErrors(
  what: string,
  {
    writer,
    seen,
    field,
    isUnique,
  }: { readonly writer: Entity; readonly seen: Entity; readonly field: string; readonly isUnique: boolean },
): Generator<string> {
  const informed = [...rolesToReadBy(seen, [field]), ...(isUnique ? seen.access.write : [])];
  const blind = writer.access.write.filter((role) => !informed.includes(role));
  if (blind.length > 0)
    yield `${what}, which would tell ${blind.join(', ')} what exists. Let roles that write "${writer.name}" read "${field}" of "${seen.name}".`;
}
