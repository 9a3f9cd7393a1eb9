import { LRUCache } from 'lru-cache';
import pMap from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import { keptFor, onceFor } from '../../base/once.ts';
import { type PlannedAction, relatedKey, type Siblings } from '../../define/declaration/change.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import type { ListForm } from '../../define/declaration/projection.ts';
import { projectionsOf } from '../../define/places/index-entries.ts';
import { type Action, type Address, type Row, readRow } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';
import { EntityChanged } from './conflict.ts';
import { actingOf, type Plan, PlanTooLarge, planPartition, siblingRowsOf, type WriteMark } from './plan.ts';

/** Provides the sibling rows of a plan, from memory or by reading them. */

const READS_CONCURRENCY = 16;

interface Planned {
  /** The keys of the sibling rows. */
  readonly rows: readonly string[];
  readonly siblings: Siblings;
  readonly plan: Plan;
}

/**
 * Plans from remembered sibling rows if the transaction checks every one of them by its ETag. Otherwise, or if the plan
 * fails because of one, the rows are read.
 */
export async function planFirst(
  engine: Engine,
  changes: readonly EntityChange[],
  { rows, mark, assumeNew }: Pick<Planned, 'rows'> & { readonly mark: WriteMark; readonly assumeNew: boolean },
): Promise<Planned> {
  const remembered = await readSiblings(engine, changes, rows, assumeNew ? 'none' : 'unknown');
  const checked = planIfChecked(changes, { rows, siblings: remembered }, mark);
  if (checked) return checked;
  const siblings = await readSiblings(engine, changes, rows, 'all');
  return { rows, siblings, plan: planPartition(changes, siblings, mark) };
}

/** Plans again without reading if other writes of this process have changed a sibling row since. */
export function replan(
  { storage }: Engine,
  changes: readonly EntityChange[],
  { mark, rows, siblings, plan }: Planned & { readonly mark: WriteMark },
): Planned {
  const [first] = changes;
  const newer = rows.flatMap((row) => {
    const known = first && recall(storage, { ...first.address, row });
    return known && known.etag !== siblings.get(row)?.etag ? [[row, known] as const] : [];
  });
  const known = { rows, siblings, plan };
  if (newer.length === 0) return known;
  return planIfChecked(changes, { rows, siblings: new Map([...siblings, ...newer]) }, mark) ?? known;
}

/** A plan whose transaction conflicts if any of its sibling rows is stale. Undefined if no such plan is possible. */
function planIfChecked(
  changes: readonly EntityChange[],
  { rows, siblings }: Omit<Planned, 'plan'>,
  mark: WriteMark,
): Planned | undefined {
  try {
    const plan = planPartition(changes, siblings, mark);
    const checked = new Set(plan.actions.flatMap(({ action }) => ('etag' in action ? [action.row] : [])));
    const isChecked = rows.every((row) => !siblings.has(row) || checked.has(row));
    return isChecked ? { rows, siblings, plan } : undefined;
  } catch (error) {
    // However stale a row is, the changes still need it.
    if (error instanceof PlanTooLarge) throw error;
    // Remembered rows may be stale, so they must not cause an error.
    if (error instanceof RowkeyError || error instanceof EntityChanged) return undefined;
    throw error;
  }
}

/** Remembers the written sibling rows, and entities that serve as sibling rows, for the next write of the partition. */
export function rememberWritten(
  { storage }: Engine,
  where: Omit<Address, 'row'>,
  { plan, siblings }: Omit<Planned, 'rows'>,
  { actions, etags }: { readonly actions: readonly Action[]; readonly etags: ReadonlyMap<string, string> },
): void {
  // An explanation writes nothing.
  if (etags.size === 0) return;
  for (const [index, { action, part }] of plan.actions.entries()) {
    const address = { ...where, row: action.row };
    if (part.of !== 'sibling' && !recall(storage, address)) continue;
    const stored = actions[index];
    // The planned properties include the part that is stored in a blob.
    const properties = {
      ...(stored && 'properties' in stored ? stored.properties : {}),
      ...('properties' in action ? action.properties : {}),
    };
    const written = 'properties' in action ? { ...action, properties } : action;
    remember(storage, address, { action: written, etag: etags.get(action.row), before: siblings.get(action.row) });
  }
}

/** The next plan of these changes reads their sibling rows. */
export function forgetSiblings({ storage }: Engine, changes: readonly EntityChange[]): void {
  for (const row of siblingRowsOf(changes, true))
    for (const { address } of changes) forget(storage, { ...address, row });
}

/** Reads sibling rows: all, only unknown ones, or none. Rows that are not read and not known count as absent. */
export async function readSiblings(
  engine: Engine,
  changes: readonly EntityChange[],
  siblingRows: readonly string[],
  read: 'all' | 'unknown' | 'none',
): Promise<Siblings> {
  const [first] = changes;
  if (!first) return new Map();
  const form = listFormIn(changes);
  const readOne = async (row: string) => {
    const address = { ...first.address, row };
    const known = read === 'all' ? undefined : recall(engine.storage, address);
    return known ?? (read === 'none' ? undefined : readSibling(engine, form, address));
  };
  const rows = await pMap(siblingRows, readOne, { concurrency: READS_CONCURRENCY });
  const ranges = changes.flatMap(({ entity, address, after }) =>
    entity.features.flatMap(({ write }) => {
      const carried = after ? undefined : write?.carried;
      return carried ? [() => carried.read(engine, entity, address)] : [];
    }),
  );
  const further = await pMap(ranges, (read) => read(), { concurrency: READS_CONCURRENCY });
  return new Map([...rows, ...further.flat()].flatMap((row) => (row ? [[row.row, row]] : [])));
}

function readSibling({ storage }: Engine, form: ListForm | undefined, address: Address): Promise<Row | undefined> {
  return form?.read(storage, address) ?? readRow(storage, address);
}

/** Reads the rows that a plan needs besides the sibling rows. */
export async function readRelated(
  { storage }: Engine,
  changes: readonly EntityChange[],
  siblingRows: readonly string[],
): Promise<ReadonlyMap<string, Row>> {
  const addresses = actingOf(changes).flatMap((change) =>
    change.entity.features.flatMap(({ write }) => [...(write?.related?.(change.entity, change) ?? [])]),
  );
  const isSibling = ({ table, partition, row }: Address) =>
    siblingRows.includes(row) &&
    changes.some(({ address }) => address.table === table && address.partition === partition);
  const apart = addresses.filter((address) => !isSibling(address));
  const once = new Map(apart.map((address) => [relatedKey(address), address]));
  const rows = await pMap(once.values(), (address) => readRow(storage, address), { concurrency: READS_CONCURRENCY });
  return new Map(rows.flatMap((row) => (row ? [[relatedKey(row), row]] : [])));
}

/** The actions of a plan. The part of a sibling row that does not fit into the row is stored in a blob first. */
export async function toStoredActions(
  { storage }: Engine,
  changes: readonly EntityChange[],
  where: Omit<Address, 'row'>,
  { plan: { actions }, siblings }: Pick<Planned, 'plan' | 'siblings'>,
): Promise<Action[]> {
  const form = listFormIn(changes);
  if (!form) return actions.map(({ action }) => action);
  const store = ({ action }: PlannedAction) =>
    form.write(storage, { ...where, row: action.row }, { action, former: siblings.get(action.row) });
  return pMap(actions, store, { concurrency: READS_CONCURRENCY });
}

/** Deletes the parts of these rows that are stored in blobs. */
export async function dropStoredParts(
  { storage }: Engine,
  changes: readonly EntityChange[],
  rows: readonly (Action | Row)[],
): Promise<void> {
  const form = listFormIn(changes);
  if (!form) return;
  const drop = async (row: Action | Row) => 'properties' in row && form.drop(storage, row);
  await pMap(rows, drop, { concurrency: READS_CONCURRENCY });
}

/** How the entity's lists are stored; undefined if it has none. */
export const listFormOf = onceFor(
  (entity: Entity): ListForm | undefined => projectionsOf(entity).flatMap(({ merge }) => merge?.list ?? [])[0],
);

function listFormIn(changes: readonly EntityChange[]): ListForm | undefined {
  for (const { entity } of changes) {
    const form = listFormOf(entity);
    if (form) return form;
  }
  return undefined;
}

/**
 * The sibling rows (lists, counts) that this process wrote last. The next write of the same partition plans from them without
 * a read. Every write uses their ETags: if another process changed one, the transaction conflicts and the rows are read.
 */
const MAX_CHARACTERS = 8_000_000;
/** Overhead of a remembered row: keys and cache entry. */
const OVERHEAD = 1_000;

const memoryOf = keptFor(
  (_: Storage) => new LRUCache<string, Row>({ maxSize: MAX_CHARACTERS, sizeCalculation: sizeOf }),
);

/** The row as this process last wrote it. It may be stale. */
function recall(storage: Storage, address: Address): Row | undefined {
  return memoryOf(storage).get(keyOf(address));
}

/** Remembers the state of a row after an action; `before` is the row from which a merge was planned. */
function remember(
  storage: Storage,
  address: Address,
  { action, etag, before }: { action: Action; etag: string | undefined; before: Row | undefined },
): void {
  if (etag === undefined || action.kind === 'delete' || (action.kind === 'merge' && !before)) {
    forget(storage, address);
    return;
  }
  const kept = action.kind === 'merge' ? before?.properties : {};
  memoryOf(storage).set(keyOf(address), { ...address, etag, properties: { ...kept, ...action.properties } });
}

function forget(storage: Storage, address: Address): void {
  memoryOf(storage).delete(keyOf(address));
}

function sizeOf({ properties }: Row): number {
  return Object.values(properties).reduce((size: number, value) => size + String(value).length, OVERHEAD);
}

function keyOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}
