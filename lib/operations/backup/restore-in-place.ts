import { hash } from 'node:crypto';
import pMap from 'p-map';
import { FURTHER_ROW } from '../../base/engine-names.ts';
import { hasCode, isKnownError, RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { jsonText } from '../../base/json-text.ts';
import { recentFor } from '../../base/once.ts';
import { MINUTE_MS } from '../../base/time.ts';
import { omit, pick, type Values } from '../../base/values.ts';
import { Attachment } from '../../define/declaration/attachment.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { hasExpired } from '../../define/declaration/expiry.ts';
import { lastOfPrefix } from '../../define/keys/key-template.ts';
import { addressOf, isCopy } from '../../define/places/index-entries.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import type { Position } from '../../engine/read/continuation.ts';
import { readLive, requireRekeyed } from '../../engine/read/entity-rows.ts';
import { requireTold } from '../../engine/read/told.ts';
import { batchOnce } from '../../engine/write/entity-store.ts';
import { etagOf, putAttachment, readAttachment, removeAttachment } from '../../features/large-entities/attachment.ts';
import { listTables } from '../../storage/provision.ts';
import { timeOf } from '../../storage/row-journal.ts';
import { type Address, type Row, readRange, scanTable } from '../../storage/rows.ts';
import { compareKeys } from '../../storage/scan-accounts.ts';
import type { Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { openErased } from './erase-again.ts';
import { sourceOf } from './history.ts';
import { openRows } from './past.ts';
import { isTableOf, openState, type RowState, requireVersions, rowsOf, type WantedRows } from './read-backup.ts';
import { type Former, readFormer } from './undelete.ts';

/**
 * Puts entities back to what they were at an instant, in the app that runs:
 *
 *   compare    a page of what is stored and of what the backup has, in the order of keys -> what differs, with the version of what is stored
 *   restore    some of what differs -> written as any entity is, each if it still has that version, and under the ETag of that version
 *
 * So what was written after the comparison stays. Both steps can be repeated, and what does not differ is not written.
 */

export interface Selection {
  /** An entity, and its children. */
  readonly kinds: readonly Entity[];
  /** For an archive: the entities that are archived there, in the same order. */
  readonly archived?: readonly Entity[] | undefined;
  /** An instant with seven digits. */
  readonly at: string;
}

export interface Difference {
  readonly entity: Entity;
  readonly key: Values;
  readonly address: Address;
  readonly change: 'create' | 'replace' | 'delete';
  /** What is stored now, to recognize it; undefined if there is nothing. */
  readonly version: string | undefined;
  /** Fields that could not be restored, because their blob or their key is gone. They stay as they are. */
  readonly lost: readonly string[];
}

/** A difference that a comparison has found. */
export interface Chosen extends Address {
  /** The name of the entity. */
  readonly entity: string;
  readonly version?: string | undefined;
}

export interface Restored {
  /** Why the entity is not as it was: an ETag mismatch if it has changed since the comparison. */
  readonly error: RowkeyError | undefined;
  readonly lost: readonly string[];
}

const CONCURRENCY = 8;

interface Page {
  readonly partition?: string | undefined;
  /** The row of one entity, in the partition. */
  readonly row?: string | undefined;
  readonly after?: Position | undefined;
  /** The most rows of the entities that are read on each side. */
  readonly top: number;
}

/** Lists what differs between now and an instant. Throws `not-found` if the backup begins later, and `invalid-input` for what it cannot tell. */
export const compareWithPast = inPattern(
  'backup',
  async (
    present: Engine,
    { kinds, at }: Selection,
    { partition, row, after, top }: Page,
  ): Promise<{ readonly items: Difference[]; readonly next: Position | undefined }> => {
    const [entity] = kinds;
    if (!entity) return { items: [], next: undefined };
    requireTold(entity);
    const first = await readStates(present, at, { table: entity.table, partition });
    requireVersions(kinds, first.manifest);
    await requireRekeyed(present, entity);
    const tables = entity.period
      ? [...new Set([...(await listTables(present.storage, '')), ...Object.keys(first.manifest.tables)])]
          .filter((table) => isTableOf(entity, table))
          .sort()
      : [entity.table];
    const table = after?.period ?? tables[0];
    if (table === undefined) return { items: [], next: undefined };
    const entities = row === undefined || partition === undefined ? undefined : rowsOf([{ partition, row }], entity);
    const place = after?.partition === undefined ? undefined : { partition: after.partition, row: after.row };
    const isOwn = (found: Typed) => kinds.some(({ name }) => name === found.properties.EntityType) && !isCopy(found);
    const query = { table, type: kinds.map(({ name }) => name), limit: top, select: ['EntityType', 'SourceRow'] };
    const before = row === undefined ? undefined : lastOfPrefix(row);
    const now = await unlessTableMissing(
      partition === undefined
        ? scanTable(present.storage, { ...query, after: place })
        : readRange(present.storage, { ...query, partition, from: row ?? '', after: place?.row, before }),
      { rows: [], more: false },
    );
    const { read } = table === entity.table ? first : await readStates(present, at, { table, partition });
    const states = read({ table, partition, entities, after: place });
    const { was, end } = await readUntil(states, { end: now.more ? now.rows.at(-1) : undefined, isOwn, top });
    const pairs = new Map<string, Pair>();
    const pairOf = (at: Typed) => {
      const name = JSON.stringify([at.partition, at.row]);
      const pair = pairs.get(name) ?? { table, partition: at.partition, row: at.row };
      pairs.set(name, pair);
      return pair;
    };
    const isIn = (found: Typed) =>
      isOwn(found) && !(end && compareKeys(found, end) > 0) && !(entities && entities.ownersOf(found).length === 0);
    for (const found of now.rows) if (isIn(found)) pairOf(found).now = found;
    for (const found of was) if (isIn(found)) pairOf(found).was = { ...found, table };
    const differing = [...pairs.values()].filter(({ now, was }) => !now || timeOf(now.etag) !== was?.time);
    const past = await openStates(present, at, was);
    const isErased = await openErased(present, kinds, at);
    const found = await pMap(
      differing.sort(compareKeys),
      ({ now: stored, was: former, ...address }) => {
        const types = [former, stored].map((side) => side?.properties.EntityType);
        const own = kinds.filter(({ name }) => types.includes(name));
        return pMap(own, (kind) => findDifference({ past, present, isErased }, kind, address));
      },
      { concurrency: CONCURRENCY },
    );
    const items = found.flat().flatMap((one) => one?.difference ?? []);
    const period = tables[tables.indexOf(table) + 1];
    const begun = entity.period && { period: table };
    if (end) return { items, next: { ...begun, partition: end.partition, row: end.row } };
    return { items, next: period === undefined ? undefined : { period, row: '' } };
  },
);

/** A row as it is stored, and as it was. */
interface Pair extends Address {
  now?: Row;
  was?: RowState;
}

/** A row of either side. */
type Typed = Pick<Row, 'partition' | 'row' | 'properties'>;

type Opened = ReturnType<typeof openState>;
/** What the journal has of a table since a snapshot is kept for the pages that follow. */
const opened = recentFor<Storage, Opened>(2);

/** What was at an instant. While lines of that time may still arrive, each page reads the journal again. */
function readStates(present: Engine, at: string, wanted: WantedRows): Opened {
  const open = () => openState(sourceOf(present), at, wanted);
  if (Date.parse(at) + MINUTE_MS > present.now()) return open();
  const name = JSON.stringify([at, wanted.table, wanted.partition]);
  const known = opened(present.storage).get(name) ?? open();
  opened(present.storage).set(name, known);
  known.catch(() => opened(present.storage).delete(name));
  return known;
}

/** Opens an engine that reads these rows of a table. */
function openStates(present: Engine, at: string, states: readonly RowState[]): Promise<Engine> {
  const read = async ({ partition }: WantedRows) => states.filter((state) => state.partition === partition);
  return openRows(present, { source: sourceOf(present), time: at, read });
}

/** Reads until a key, or until there are as many entities as are wanted: was the page ends there. Includes all further rows of these entities. */
async function readUntil(
  states: AsyncIterable<RowState>,
  {
    end: given,
    isOwn,
    top,
  }: {
    readonly end: Pick<Address, 'partition' | 'row'> | undefined;
    readonly isOwn: (found: Typed) => boolean;
    readonly top: number;
  },
) {
  const was: RowState[] = [];
  const own: RowState[] = [];
  let end = given;
  for await (const state of states) {
    // Keys between that of an entity and those of its further rows begin with its key.
    const isFurther = ({ partition, row }: RowState) =>
      partition === state.partition && end?.row.startsWith(row) && state.row <= lastOfPrefix(row + FURTHER_ROW);
    if (end && compareKeys(state, end) > 0 && !own.some(isFurther)) break;
    was.push(state);
    if (!isOwn(state)) continue;
    own.push(state);
    if (own.length === top && !(end && compareKeys(state, end) > 0))
      end = { partition: state.partition, row: state.row };
  }
  return { was, end };
}

interface Sides {
  readonly past: Engine;
  readonly present: Engine;
  /** True for values of a person who was erased since. */
  readonly isErased: (kind: Entity, values: Values) => boolean;
}

interface Found {
  readonly was: Former | undefined;
  readonly now: Former | undefined;
  readonly difference: Difference;
}

async function findDifference(
  { past, present, isErased }: Sides,
  kind: Entity,
  address: Address,
): Promise<Found | undefined> {
  const [was, now] = await Promise.all(
    [past, present].map(async (engine) => {
      const former = await readFormer(engine, kind, address);
      return former && hasExpired(kind, former.live.values, present.now()) ? undefined : former;
    }),
  );
  const known = was ?? now;
  if (!known || (was && isErased(kind, was.live.values))) return undefined;
  requireKey(kind, known);
  const lost = was?.lost ?? [];
  if (was && now && isSame(stateOf(kind, was, lost), stateOf(kind, now, lost))) return undefined;
  const change = !now ? 'create' : was ? 'replace' : 'delete';
  const version = now && versionOf(kind, now, change);
  const key = pick(known.live.values, kind.keyFields);
  return { was, now, difference: { entity: kind, key, address, change, version, lost } };
}

/** Throws `invalid-input` for an entity at a former key: what is now at its key is another row. */
function requireKey(kind: Entity, { address, live }: Former): void {
  const own = addressOf(kind, live.values);
  if (own.table === address.table && own.partition === address.partition && own.row === address.row) return;
  throw new RowkeyError('invalid-input', `The entities of ${kind.name} had another key then: see rekey.`, {
    accepted: 'a restore to another place',
  });
}

/** What a write decides, and the files. What follows from other entities may differ. */
function stateOf(kind: Entity, { plain }: Former, but: readonly string[]) {
  const files = Object.keys(kind.attachments);
  const own = omit(plain, [...kind.decidedFields, ...files, ...but]);
  const values = Object.entries(own).filter(([, value]) => value !== undefined && value !== null);
  return {
    values: values.toSorted(([one], [other]) => (one < other ? -1 : 1)),
    files: files.map((field) => fileOf(plain, field)),
  };
}

function fileOf(plain: Values, field: string): string | undefined {
  const { data } = Attachment.safeParse(plain[field]);
  return data && etagOf(data);
}

/** A write of a child changes the ETag of its parent, so that a delete of the parent takes no child that the comparison has not seen. */
function versionOf(kind: Entity, now: Former, change: Difference['change']): string {
  if (change === 'delete' && kind.children.length > 0) return now.live.etag;
  return hash('sha256', jsonText(stateOf(kind, now, [])), 'base64url');
}

/** Restores what a comparison has found, parents first. Returns what became of each, in their order. */
export const restoreInPlace = inPattern(
  'backup',
  async (present: Engine, { kinds, archived, at }: Selection, chosen: readonly Chosen[]): Promise<Restored[]> => {
    for (const kind of kinds) requireTold(kind);
    const done = new Map<Chosen, Restored>();
    const isErased = await openErased(present, kinds, at);
    for (const [table, some] of Map.groupBy(chosen, (one) => one.table)) {
      const { manifest, read } = await readStates(present, at, { table });
      requireVersions(kinds, manifest);
      const past = await openStates(present, at, await Array.fromAsync(read({ table, entities: rowsOf(some) })));
      for (const [index, kind] of kinds.entries()) {
        const own = some.filter(({ entity }) => entity === kind.name);
        const target = { kind, archived: archived?.[index], at };
        for (const [one, outcome] of await restoreKind({ past, present, isErased }, target, own))
          done.set(one, outcome);
      }
    }
    return chosen.flatMap((one) => done.get(one) ?? []);
  },
);

type Outcome = readonly [Chosen, Restored];

interface Target {
  readonly kind: Entity;
  readonly archived: Entity | undefined;
  readonly at: string;
}

async function restoreKind(
  sides: Sides,
  { kind, archived, at }: Target,
  chosen: readonly Chosen[],
): Promise<Outcome[]> {
  const done: Outcome[] = [];
  const { present } = sides;
  const found = await pMap(
    chosen,
    async (one) => {
      const each = await findDifference(sides, kind, one);
      // Another request has done it, or the delete of the parent.
      if (!each) done.push([one, { error: undefined, lost: [] }]);
      else if (each.difference.version !== one.version) done.push([one, { error: changedSince(kind), lost: [] }]);
      else if (archived && each.now && !each.was && (await isOnlyHere(present, { archived, at }, each.now)))
        done.push([one, { error: notBack(archived), lost: [] }]);
      else return { one, ...each };
      return undefined;
    },
    { concurrency: CONCURRENCY },
  );
  for (let left = found.flatMap((each) => each ?? []); left.length > 0; ) {
    const errors = await writeAll(present, kind, left);
    // One of the others may have let go of the value.
    const taken = left.filter((_, index) => hasCode(errors[index], 'duplicate-value'));
    const isStuck = taken.length === left.length;
    for (const [index, each] of left.entries()) {
      const error = errors[index];
      if (!isStuck && taken.includes(each)) continue;
      const files = error ? [] : await restoreFiles(sides, kind, each);
      if (files === 'changed') done.push([each.one, { error: changedSince(kind), lost: [] }]);
      else done.push([each.one, { error, lost: [...each.difference.lost, ...files] }]);
    }
    left = isStuck ? [] : taken;
  }
  return done;
}

function changedSince({ name }: Entity): RowkeyError {
  return new RowkeyError('etag-mismatch', `The ${name} entity has changed since the comparison, and stays as it is.`);
}

function notBack({ name }: Entity): RowkeyError {
  return new RowkeyError('invalid-input', `The entity was archived since, and is not in ${name} again.`, {
    accepted: `a restore of ${name} first`,
  });
}

/** True if an archived entity was in its table at the instant, and is not there now: to delete it here would lose it. */
async function isOnlyHere(
  present: Engine,
  { archived, at }: { readonly archived: Entity; readonly at: string },
  { live }: Former,
): Promise<boolean> {
  const address = addressOf(archived, live.values);
  if (await readLive(present, archived, address)) return false;
  const { read } = await readStates(present, at, { table: address.table });
  const states = await Array.fromAsync(read({ table: address.table, entities: rowsOf([address]) }));
  return (await readLive(await openStates(present, at, states), archived, address)) !== undefined;
}

/** Writes each entity under the ETag of the state that was compared. */
async function writeAll(present: Engine, kind: Entity, found: readonly Found[]) {
  const files = Object.keys(kind.attachments);
  const actions = found.map(({ was, now, difference: { key, lost } }) => {
    if (!was) return { delete: key, ifMatch: now?.live.etag };
    const kept = Object.entries(pick(now?.plain ?? {}, lost)).filter(([, value]) => value !== null);
    const put = { ...omit(was.plain, [...kind.decidedFields, ...files, ...lost]), ...Object.fromEntries(kept) };
    return now ? { put, ifMatch: now.live.etag } : { put, ifNoneMatch: '*' };
  });
  const outcomes = await batchOnce(present, kind, actions, undefined);
  return outcomes.map((outcome, index) => {
    const isGone = !found[index]?.was && hasCode(outcome, 'not-found');
    return outcome instanceof RowkeyError && !isGone ? outcome : undefined;
  });
}

/** Returns the files that are gone, or are not accepted any more. A file that was replaced since the comparison stays. */
async function restoreFiles(
  { past, present }: Sides,
  entity: Entity,
  { was, now, difference: { key } }: Found,
): Promise<readonly string[] | 'changed'> {
  const lost: string[] = [];
  if (!was) return lost;
  for (const field of Object.keys(entity.attachments)) {
    const [before, current] = [was, now].map((side) => side && fileOf(side.plain, field));
    if (before === current) continue;
    const conditions = current === undefined ? { ifNoneMatch: '*' } : { ifMatch: current };
    const at = { entity, key, field };
    try {
      const { data } = Attachment.safeParse(was.plain[field]);
      if (data) await putAttachment(present, at, await readAttachment(past, at, data), conditions);
      else await removeAttachment(present, at, conditions);
    } catch (error) {
      if (!isKnownError(error) || error.code === 'storage-unavailable') throw error;
      if (error.code === 'etag-mismatch') return 'changed';
      lost.push(field);
    }
  }
  return lost;
}
