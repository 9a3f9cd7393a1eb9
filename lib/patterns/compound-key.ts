import pMap from 'p-map';
import type { Entity, Values } from '../define/entity.ts';
import { liveValues, type Snapshot, toProperties, toSnapshot } from '../define/entity-codec.ts';
import { addressOf } from '../define/index-entries.ts';
import { buildKey, prefixOfDetails, rangeOfPrefix } from '../define/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { toPlaced } from '../engine/write/stored-values.ts';
import { busy, RowkeyError } from '../errors.ts';
import { type Action, type Address, type Properties, type Row, readRange } from '../storage/rows.ts';

/**
 * Compound key pattern: `empid_000123` and `empid_000123_2012` lie side by side, so that one range query reads an entity
 * with its details. Each write of a detail touches the entity that it belongs to, under its ETag, in the same
 * transaction: so a delete, an archive or a move of that one, which takes the details along, misses none.
 */

const DETAILS_AT_ONCE = 8;

/** The details of an entity, as they are stored: one range query. */
export async function readDetails(
  { storage }: Engine,
  entity: Entity,
  { table, partition, row }: Address,
): Promise<Row[]> {
  if (entity.details.length === 0) return [];
  const range = rangeOfPrefix(prefixOfDetails(entity.row, row));
  const { rows } = await readRange(storage, { table, partition, ...range });
  return rows.filter((found) => detailOf(entity, found));
}

/** The details as they are to be where their entity goes: `to` has the fields of the key that change. */
export async function movedDetails(
  engine: Engine,
  entity: Entity,
  rows: readonly Row[],
  there: { readonly table: string; readonly to: Values },
): Promise<{ row: string; properties: Properties }[]> {
  const moved = await pMap(
    rows,
    async (found) => {
      const kind = detailOf(entity, found);
      const snapshot = kind && toSnapshot(kind, found);
      if (!kind || snapshot?.state !== 'live') return [];
      const values = await toPlaced(engine, kind, snapshot.values, {
        entity: { ...kind, table: there.table },
        to: there.to,
      });
      return [{ row: addressOf(kind, values).row, properties: toProperties(kind, values, snapshot.system) }];
    },
    { concurrency: DETAILS_AT_ONCE },
  );
  return moved.flat();
}

/** What the functions here need of a planned change. */
interface DetailChange {
  readonly address: Address;
  readonly before: Snapshot;
  readonly after: Values | undefined;
  readonly details?: {
    readonly put: readonly { row: string; properties: Properties }[];
    readonly drop: readonly string[];
  };
}

/**
 * The rows that changed details belong to, each once, with the ETag under which it is touched. Throws `invalid-input` where
 * there is none, and `busy` where it is just arriving from another partition.
 */
export function touchedMasters(
  entity: Entity,
  changes: readonly DetailChange[],
  neighbours: ReadonlyMap<string, Row>,
): Map<string, string> {
  const { detailOf: master, name } = entity;
  const touched = new Map<string, string>();
  if (!master) return touched;
  for (const { before, after } of changes) {
    const values = after ?? liveValues(before) ?? {};
    const row = buildKey(master.row, values);
    const found = neighbours.get(row);
    const snapshot = toSnapshot(master, found?.properties.EntityType === master.name ? found : undefined);
    if (snapshot.state === 'live') {
      if (snapshot.system.MovingFrom) throw busy('What it belongs to is arriving from another partition.');
      touched.set(row, snapshot.etag);
    } else if (after) {
      const field = master.keyFields.at(-1) ?? 'key';
      throw new RowkeyError('invalid-input', `The field ${field} names nobody that one of ${name} could belong to.`, {
        field,
        accepted: `an existing one of ${master.name}`,
      });
    }
  }
  return touched;
}

/** What becomes of the details of an entity that goes, or that arrives with them. */
export function detailActions(
  entity: Entity,
  { address, after, details }: DetailChange,
  neighbours: ReadonlyMap<string, Row>,
): Action[] {
  const put = details?.put ?? [];
  const prefix = prefixOfDetails(entity.row, address.row);
  const isOwn = (found: Row) => found.row.startsWith(prefix) && detailOf(entity, found) !== undefined;
  const own = [...neighbours.values()].filter(isOwn).map(({ row }) => row);
  const dropped = after ? (details?.drop ?? []) : own;
  const kept = new Set(put.map(({ row }) => row));
  return [
    ...put.map(({ row, properties }) => ({ kind: 'upsert', row, properties }) as const),
    ...dropped.filter((row) => !kept.has(row)).map((row) => ({ kind: 'delete', row }) as const),
  ];
}

function detailOf(entity: Entity, { properties }: Row): Entity | undefined {
  return entity.details.find(({ name }) => name === properties.EntityType);
}
