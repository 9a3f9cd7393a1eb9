import type { Entity, Values } from '../define/entity.ts';
import { liveValues, PLACEHOLDER, type Snapshot } from '../define/entity-codec.ts';
import { buildKey } from '../define/key-template.ts';
import type { Action, Properties, Row } from '../storage/rows.ts';

/**
 * Maintained counts: how many entities of one kind there are in a partition, in a field of another one there, which
 * changes in the entity group transaction that creates or deletes one of them; so it is exact. Where the counting
 * entity does not exist, a placeholder under its key keeps the count for it.
 */
export interface Counted {
  /** The entity that has the count: known once it is defined. */
  readonly target: () => Entity;
  readonly field: string;
}

/** The fields of an entity that are such counts. */
export function countFields(entity: Entity): string[] {
  return Object.keys(entity.counts);
}

/** The counts of an entity as its row, or the placeholder under its key, has them. */
export function keptCounts(entity: Entity, before: Snapshot): Values {
  const kept = before.state === 'placeholder' ? before.counts : (liveValues(before) ?? {});
  return Object.fromEntries(countFields(entity).map((field) => [field, Number(kept[field] ?? 0)]));
}

/** What the functions here need of a planned change. */
interface CountedChange {
  readonly before: Snapshot;
  readonly after: Values | undefined;
}

/** By how much each count changes, by the key of the row that has it. */
export function countChanges(entity: Entity, changes: readonly CountedChange[]): Map<string, Map<string, number>> {
  const rows = new Map<string, Map<string, number>>();
  for (const { before, after } of changes) {
    const left = liveValues(before);
    const by = Number(after !== undefined) - Number(left !== undefined);
    for (const { target, field } of by === 0 ? [] : entity.countedBy) {
      const row = buildKey(target().row, after ?? left ?? {});
      const counts = rows.get(row) ?? new Map<string, number>();
      rows.set(row, counts.set(field, (counts.get(field) ?? 0) + by));
    }
  }
  return rows;
}

/** The action that changes the counts of a row, under its ETag; or the one that makes its placeholder. */
export function countAction(row: string, found: Row | undefined, by: ReadonlyMap<string, number>): Action | undefined {
  const changed = [...by].filter(([, change]) => change !== 0);
  if (changed.length === 0) return undefined;
  const properties: Properties = Object.fromEntries(
    changed.map(([field, change]) => [field, Number(found?.properties[field] ?? 0) + change]),
  );
  if (!found) return { kind: 'insert', row, properties: { EntityType: PLACEHOLDER, ...properties } };
  return { kind: 'merge', row, properties, etag: found.etag };
}
