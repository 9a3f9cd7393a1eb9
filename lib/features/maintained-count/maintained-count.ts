import { RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import { PLACEHOLDER } from '../../define/codec/entity-codec.ts';
import { type Change, liveValues } from '../../define/declaration/change.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import type { Suspicion } from '../../define/declaration/finding.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { fieldSchemas } from '../../define/schema/field-schema.ts';
import { sameFields, unreadableErrors } from '../../define/validate/disclosure.ts';
import { staleIndexErrors } from '../../define/validate/feature-errors.ts';
import { requireOwn } from '../../engine/shared-tables.ts';
import { isMarked } from '../../storage/row-marks.ts';
import { type Action, type Properties, type Row, readRange, readRow, tryAction } from '../../storage/rows.ts';

/**
 * Maintained counts: a field of one entity is the number of entities of another kind in its partition. The field changes in
 * the entity group transaction that creates or deletes a counted entity, so the count is exact. If the entity with the count
 * does not exist, a placeholder row under its key has the count.
 *
 * The maximum of the field's schema bounds the partition, for the transaction that would exceed it knows the count.
 */
export const maintainedCount: Feature = {
  name: 'maintained count',
  isUsed: ({ counts, countedBy }) => countedBy.length > 0 || Object.keys(counts).length > 0,
  *validate(entity) {
    const { table, partition, row, counts, columns, archive, movable } = entity;
    yield* staleIndexErrors(entity, listCountFields(entity));
    const [first] = listCountFields(entity);
    for (const [name, index] of first === undefined ? [] : Object.entries(entity.indexes))
      if (index.kind !== 'index-entity' && index.copies === 'everything')
        yield `the index "${name}" copies everything, also "${first}", which changes with another entity and would leave it stale. Set copies to "keys" or to a list of other fields.`;
    for (const [field, counted] of Object.entries(counts)) {
      const what = `"${field}" counts "${counted.name}"`;
      if (counted.table !== table || counted.partition.template !== partition.template)
        yield `${what}, which is in another table or partition. Use one table and one partition key for both.`;
      const missing = row.fields.filter((name) => !counted.keyFields.includes(name));
      if (missing.length > 0)
        yield `${what}, whose key does not lead to this row. Add ${missing.join(', ')} to its key, or remove them from this row key.`;
      if (archive || movable.length > 0)
        yield `${what}, whose keys would lead to this row no more after an archive or a move. Remove archive and movable.`;
      const same = sameFields(entity, counted, [partition, row]);
      yield* unreadableErrors(what, { entity, field, from: counted, same });
      // Only a 32-bit integer is read back as a plain number.
      if (columns[field] !== 'Int32') yield `the count "${field}" is not a 32-bit integer. Declare it as z.int32().`;
    }
  },
  keptFields: listCountFields,
  write: {
    leavesTombstone: true,
    siblings: (entity, change) => sumCountChanges(entity, [change]).keys(),
    complete: (entity, { before, after }) => ({ ...after, ...readCounts(entity, before) }),
    plan(entity, changes, { siblings, actions }) {
      for (const [row, by] of sumCountChanges(entity, changes)) {
        checkMaximum(entity, siblings.get(row), by);
        const action = planCounts(row, siblings.get(row), by);
        if (!action) continue;
        // The transaction may already write the row with the count. A transaction must not name a row twice.
        const other = actions.find((planned) => planned.action.row === row)?.action;
        if (other && 'properties' in other && 'properties' in action)
          Object.assign(other.properties, action.properties);
        else actions.push({ action, part: { of: 'sibling' } });
      }
    },
    remains: {
      isLikely: (entity) => listCountFields(entity).length > 0,
      properties: (entity, before) =>
        listCountFields(entity).length > 0 ? { EntityType: PLACEHOLDER, ...readCounts(entity, before) } : undefined,
    },
  },
  check: {
    partition: {
      types: ({ name, countedBy }) => [name, PLACEHOLDER, ...countedBy.map(({ target }) => target().name)],
      check: verifyCounts,
    },
  },
};

/**
 * Compares counts with the entities. The row with the count is read before the entities are counted, and repaired under its
 * ETag: each create and delete of a counted entity changes the row, so a stale result is never written.
 */
async function verifyCounts(
  { storage }: Engine,
  entity: Entity,
  { table, partition }: Pick<Row, 'table' | 'partition'>,
): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  for (const { target, field } of entity.countedBy) {
    const counter = target();
    if (counter.row.fields.length > 0) continue;
    const address = { table, partition, row: buildKey(counter.row, {}) };
    const found = await readRow(storage, address);
    if (found && !isMarked(found.properties)) {
      suspicions.push({ kind: 'conflict', of: field, ...address });
      continue;
    }
    const select = ['EntityType', 'SourceRow', 'MovingFrom'];
    const { rows } = await readRange(storage, { table, partition, from: '', type: entity.name, select });
    // An entity that gets another key has two rows, and counts once.
    if (rows.some(({ properties }) => properties.MovingFrom)) continue;
    const counted = rows.filter(({ properties }) => properties.SourceRow === undefined).length;
    const by = counted - countIn(found, field);
    const isWrong = found?.properties[field] !== undefined && !Number.isSafeInteger(found.properties[field]);
    const action =
      planCounts(address.row, found, new Map([[field, by]])) ??
      (isWrong && found
        ? ({ kind: 'merge', row: address.row, properties: { [field]: counted }, etag: found.etag } as const)
        : undefined);
    if (action) {
      const repair = () => tryAction(storage, address, action);
      suspicions.push({ kind: 'wrong-count', of: field, ...address, repair });
    }
  }
  return suspicions;
}

function listCountFields({ counts }: Entity): string[] {
  return Object.keys(counts);
}

/** The counts in the row of an entity, or in the placeholder under its key. */
function readCounts(entity: Entity, before: Change['before']): Values {
  const kept = before.state === 'placeholder' ? before.kept : (liveValues(before) ?? {});
  const counts = pick(kept, listCountFields(entity));
  return Object.fromEntries(
    listCountFields(entity).map((field) => [field, Number.isSafeInteger(counts[field]) ? counts[field] : 0]),
  );
}

/** Returns the difference for each count, by the key of the row with the counts. */
function sumCountChanges(
  entity: Entity,
  changes: readonly Pick<Change, 'before' | 'after' | 'isRekey'>[],
): Map<string, Map<string, number>> {
  const rows = new Map<string, Map<string, number>>();
  for (const { before, after, isRekey } of changes) {
    const left = liveValues(before);
    // Its other key is in the same partition.
    const by = isRekey ? 0 : Number(after !== undefined) - Number(left !== undefined);
    for (const { target, field } of by === 0 ? [] : entity.countedBy) {
      const row = buildKey(target().row, after ?? left ?? {});
      const counts = rows.get(row) ?? new Map<string, number>();
      rows.set(row, counts.set(field, (counts.get(field) ?? 0) + by));
    }
  }
  return rows;
}

/** Throws `partition-full`. A partition that has more already, as its maximum was lowered, may have fewer. */
function checkMaximum({ name, countedBy }: Entity, found: Row | undefined, by: ReadonlyMap<string, number>): void {
  for (const { target, field } of countedBy) {
    const change = by.get(field) ?? 0;
    const { maximum = Infinity } = fieldSchemas(target().schema)[field] ?? {};
    if (change > 0 && countIn(found, field) + change > maximum)
      throw new RowkeyError('partition-full', `The partition cannot have more than ${maximum} entities of ${name}.`, {
        accepted: `at most ${maximum} entities of ${name} in a partition`,
      });
  }
}

/** The count in a row; 0 for one that was changed by hand to something else, as for a row without it. */
function countIn(found: Row | undefined, field: string): number {
  const count = found?.properties[field];
  return Number.isSafeInteger(count) ? Number(count) : 0;
}

/** Plans the change of the counts of a row under its ETag, or the creation of its placeholder. */
function planCounts(row: string, found: Row | undefined, by: ReadonlyMap<string, number>): Action | undefined {
  const changed = [...by].filter(([, change]) => change !== 0);
  if (changed.length === 0) return undefined;
  requireOwn(found, 'a count');
  const properties: Properties = Object.fromEntries(
    changed.map(([field, change]) => [field, countIn(found, field) + change]),
  );
  if (!found) return { kind: 'insert', row, properties: { EntityType: PLACEHOLDER, ...properties } };
  return { kind: 'merge', row, properties, etag: found.etag };
}
