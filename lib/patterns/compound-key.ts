import pMap from 'p-map';
import type { Entity, Values } from '../define/entity.ts';
import { liveValues, type Snapshot, toProperties, toSnapshot } from '../define/entity-codec.ts';
import { addressOf } from '../define/index-entries.ts';
import { buildKey, prefixOfChildren, rangeOfPrefix } from '../define/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { toPlaced } from '../engine/write/stored-values.ts';
import { busy, RowkeyError } from '../errors.ts';
import { type Action, type Address, type Properties, type Row, readRange } from '../storage/rows.ts';

/**
 * Compound key pattern: `empid_000123` and `empid_000123_2012` lie side by side, so that one range query reads an entity
 * with its children. Each write of a child touches the entity that it belongs to, under its ETag, in the same
 * transaction: so a delete, an archive or a move of that one, which takes the children along, misses none.
 */

const DETAILS_CONCURRENCY = 8;

/** The children of an entity, as they are stored: one range query. */
export async function readChildren(
  { storage }: Engine,
  entity: Entity,
  { table, partition, row }: Address,
): Promise<Row[]> {
  if (entity.children.length === 0) return [];
  const range = rangeOfPrefix(prefixOfChildren(entity.row, row));
  const { rows } = await readRange(storage, { table, partition, ...range });
  return rows.filter((found) => childOf(entity, found));
}

/** The children as they are to be where their entity goes: `to` has the fields of the key that change. */
export async function movedChildren(
  engine: Engine,
  entity: Entity,
  rows: readonly Row[],
  there: { readonly table: string; readonly to: Values },
): Promise<{ row: string; properties: Properties }[]> {
  const moved = await pMap(
    rows,
    async (found) => {
      const kind = childOf(entity, found);
      const snapshot = kind && toSnapshot(kind, found);
      if (!kind || snapshot?.state !== 'live') return [];
      const values = await toPlaced(engine, kind, snapshot.values, {
        entity: { ...kind, table: there.table },
        to: there.to,
      });
      return [{ row: addressOf(kind, values).row, properties: toProperties(kind, values, snapshot.system) }];
    },
    { concurrency: DETAILS_CONCURRENCY },
  );
  return moved.flat();
}

/** What the functions here need of a planned change. */
interface ChildChange {
  readonly address: Address;
  readonly before: Snapshot;
  readonly after: Values | undefined;
  readonly children?: {
    readonly put: readonly { row: string; properties: Properties }[];
    readonly drop: readonly string[];
  };
}

/**
 * The rows that changed children belong to, each once, with the ETag under which it is touched. Throws `invalid-input` where
 * there is none, and `busy` where it is just arriving from another partition.
 */
export function touchedParents(
  entity: Entity,
  changes: readonly ChildChange[],
  siblings: ReadonlyMap<string, Row>,
): Map<string, string> {
  const { childOf: parent, name } = entity;
  const touched = new Map<string, string>();
  if (!parent) return touched;
  for (const { before, after } of changes) {
    const values = after ?? liveValues(before) ?? {};
    const row = buildKey(parent.row, values);
    const found = siblings.get(row);
    const snapshot = toSnapshot(parent, found?.properties.EntityType === parent.name ? found : undefined);
    if (snapshot.state === 'live') {
      if (snapshot.system.MovingFrom) throw busy('The parent entity is being moved to this partition.');
      touched.set(row, snapshot.etag);
    } else if (after) {
      const field = parent.keyFields.at(-1) ?? 'key';
      throw new RowkeyError(
        'invalid-input',
        `"${field}" refers to no entity of ${parent.name}, the parent of ${name}.`,
        {
          field,
          accepted: `the key of an existing entity of ${parent.name}`,
        },
      );
    }
  }
  return touched;
}

/** What becomes of the children of an entity that goes, or that arrives with them. */
export function childActions(
  entity: Entity,
  { address, after, children }: ChildChange,
  siblings: ReadonlyMap<string, Row>,
): Action[] {
  const put = children?.put ?? [];
  const prefix = prefixOfChildren(entity.row, address.row);
  const isOwn = (found: Row) => found.row.startsWith(prefix) && childOf(entity, found) !== undefined;
  const own = [...siblings.values()].filter(isOwn).map(({ row }) => row);
  const dropped = after ? (children?.drop ?? []) : own;
  const kept = new Set(put.map(({ row }) => row));
  return [
    ...put.map(({ row, properties }) => ({ kind: 'upsert', row, properties }) as const),
    ...dropped.filter((row) => !kept.has(row)).map((row) => ({ kind: 'delete', row }) as const),
  ];
}

function childOf(entity: Entity, { properties }: Row): Entity | undefined {
  return entity.children.find(({ name }) => name === properties.EntityType);
}
