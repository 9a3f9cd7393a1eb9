import pMap from 'p-map';
import { z } from 'zod';
import { hasCode, RowkeyError } from '../base/errors.ts';
import { omit, pick, type Stored, type Values } from '../base/values.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { LinkedModel } from '../define/define-model.ts';
import { buildKey } from '../define/keys/key-template.ts';
import { type UserRows, userRowsOf } from '../define/places/user-rows.ts';
import type { Engine } from '../engine/engine.ts';
import { noteChange } from '../engine/note-change.ts';
import type { Position } from '../engine/read/continuation.ts';
import { type Page, type PageOptions, readEntity } from '../engine/read/retrieve.ts';
import { writeBatch } from '../engine/write/entity-batch.ts';
import { changeEntity } from '../engine/write/entity-store.ts';
import { rowAddresses } from '../features/data-series/data-series.ts';
import { deleteSeries, readSeries } from '../features/data-series/series-counts.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import { openPage } from './open.ts';
import type { Operation, View } from './operation.ts';
import { listIn } from './reads.ts';

/**
 * All that a model stores of one user: the rows with the subject in a field of `ofUser`. Users list and erase their own, past the rules on
 * rows, because the declaration says that the rows are theirs; operators count and erase those of anybody, and see none.
 */

const Kind = z.enum(['delete', 'change', 'keep']).describe('What becomes of the row when the data is erased');
const Place = z.object({
  entity: z.string(),
  field: z.string().describe('The field with the subject of the user'),
  erasing: Kind,
});
const Row = Place.extend({ values: z.record(z.string(), z.unknown()) });
type Row = z.infer<typeof Row>;

const Counted = Place.extend({
  rows: z.int().min(0),
  more: z.boolean().describe('True if there are more rows than were counted'),
});

export const UserDataSchemas = { Row, Counted };

function kindOf({ erasing }: UserRows): z.infer<typeof Kind> {
  return typeof erasing === 'string' ? erasing : 'change';
}

/** The roles of callers who are somebody. */
function rolesOfUsers({ roles, anyone }: LinkedModel): readonly string[] {
  return roles.filter((role) => role !== anyone);
}

function subjectOf({ caller }: View): string {
  if (!caller) throw new RowkeyError('forbidden', 'The app itself is no caller.');
  return caller.subject;
}

/** The most rows of a page: each is read by its key, because a list may have a part of the fields. */
const MAX_ROWS = 100;
/** With large texts, which are a megabyte each. */
const MAX_LARGE_ROWS = 10;
const READS_CONCURRENCY = 8;

/** Lists what the app has stored about the caller. */
export function listOwnData(model: LinkedModel): Operation<PageOptions, Page<Row>> {
  const places = userRowsOf(model.list);
  return {
    name: 'me-data',
    summary: 'List what the app has stored about the caller, with what becomes of it when the caller erases it',
    kind: 'read',
    roles: rolesOfUsers(model),
    async run(view, { top, after }) {
      const subject = subjectOf(view);
      const items: Row[] = [];
      for (const [number, place] of from(places, after)) {
        const most = Math.min(top, place.entity.large.length > 0 ? MAX_LARGE_ROWS : MAX_ROWS) - items.length;
        if (most <= 0) return { items, next: { row: '', place: nameOf(place) } };
        const page = { top: most, after: number === 0 ? inPlace(after) : undefined };
        const { keys, next } = await keysIn(view, place, subject, page);
        items.push(...(await readRows(view, place, subject, keys)));
        if (next) return { items, next: { ...next, place: nameOf(place) } };
      }
      return { items, next: undefined };
    },
  };
}

/** Without the fields that the caller may not see. */
async function readRows(view: View, place: UserRows, subject: string, keys: readonly Values[]): Promise<Row[]> {
  const { entity, field } = place;
  const read = async (key: Values) => {
    const found = await readOwn(view, place, subject, key, Object.keys(entity.columns));
    return found ? [{ ...found.values, ...pick({ ...found }, ['counts']) }] : [];
  };
  const found = (await pMap(keys, read, { concurrency: READS_CONCURRENCY })).flat();
  const { items } = await openPage(view, entity, { items: found, next: undefined });
  return items.map((values) => ({ entity: entity.name, field, erasing: kindOf(place), values }));
}

/** The keys of a page of the rows that a list has for the user. An entry of an index may be of before a change. */
async function keysIn(
  { engine }: View,
  { entity, field, index }: UserRows,
  subject: string,
  page: PageOptions,
): Promise<{ readonly keys: readonly Values[]; readonly next: Position | undefined }> {
  const view = { engine, caller: undefined, isLastAttempt: true };
  const given = { [field]: subject };
  if (!isKeyValue(entity, index, given)) return { keys: [], next: undefined };
  const { items, next } = await listIn(view, entity, { index, given, page: { ...page, select: entity.keyFields } });
  const keys = items.map((values) => pick(values, entity.keyFields));
  return { keys: entity.series ? ofSeries(entity, keys, page.after) : keys, next };
}

/** The key of each series once: it may have several rows, of which some may be on the page before. */
function ofSeries(entity: Entity, keys: readonly Values[], after: Position | undefined): Values[] {
  const byText = new Map(keys.map((key) => [JSON.stringify(key), key]));
  return [...byText.values()].filter((key) => rowAddresses(entity, key).every(({ row }) => row !== after?.row));
}

/** False for a subject that no key can have: no row has it there. */
function isKeyValue(entity: Entity, index: string | undefined, given: Values): boolean {
  try {
    const { partition } = (index === undefined ? undefined : entity.indexes[index]?.remote) ?? entity;
    buildKey(partition, given);
    return true;
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return false;
    throw error;
  }
}

/** Reads an entity if it still has the subject. */
async function readOwn(
  { engine }: View,
  { entity, field }: UserRows,
  subject: string,
  key: Values,
  select: readonly string[],
): Promise<Stored | undefined> {
  const reading = entity.series ? readSeries(engine, entity, key) : readEntity(engine, entity, key, { select });
  const found: Stored | undefined = await reading.catch((error: unknown) => {
    if (!hasCode(error, 'not-found')) throw error;
    return undefined;
  });
  return found?.values[field] === subject ? found : undefined;
}

const MAX_COUNTED = 1_000;

/** Counts what the app has stored about a user, by one page of each list. */
export function countUserData(
  model: LinkedModel,
): Operation<{ readonly subject: string }, readonly z.infer<typeof Counted>[]> {
  return {
    name: 'operations-users-data',
    summary: 'Count what the app has stored about a user, with what becomes of it when it is erased',
    kind: 'read',
    roles: [model.operatorRole],
    run: (view, { subject }) =>
      pMap(
        userRowsOf(model.list),
        async (place) => {
          const { keys, next } = await keysIn(view, place, subject, { top: MAX_COUNTED });
          const { entity, field } = place;
          return { entity: entity.name, field, erasing: kindOf(place), rows: keys.length, more: next !== undefined };
        },
        { concurrency: READS_CONCURRENCY },
      ),
  };
}

export interface EraseInput {
  /** By default the caller. */
  readonly subject?: string | undefined;
  readonly after?: Position | undefined;
  /** Nothing is begun after this instant, in milliseconds. */
  readonly until: number;
}

export interface Erased {
  readonly deleted: number;
  readonly changed: number;
  readonly failed: readonly { readonly entity: UserRows['entity']; readonly error: RowkeyError }[];
  readonly next: Position | undefined;
}

/**
 * Deletes or changes what the app has stored about a user, as the app itself: past the rules, which may let nobody do so. What was erased is not
 * found again, so a repeated request erases what is left.
 */
function erase(
  model: LinkedModel,
  declared: Pick<Operation<EraseInput, Erased>, 'name' | 'summary' | 'roles'>,
): Operation<EraseInput, Erased> {
  // An entity is mostly declared after those that it refers to, which cannot go before it.
  const places = userRowsOf(model.list)
    .filter(({ erasing }) => erasing !== 'keep')
    .toReversed();
  return {
    ...declared,
    kind: 'write',
    async run(view, { subject = subjectOf(view), after, until }) {
      const { engine } = view;
      noteChange(engine, {
        operation: 'erase',
        entity: 'users',
        address: { table: SYSTEM_TABLE, partition: '' },
        subject,
      });
      const done = { deleted: 0, changed: 0, failed: [] as Erased['failed'][number][] };
      for (const [number, place] of from(places, after)) {
        let page = number === 0 ? inPlace(after) : undefined;
        do {
          if (engine.now() >= until) return { ...done, next: { row: '', ...page, place: nameOf(place) } };
          const { keys, next } = await keysIn(view, place, subject, { top: MAX_ROWS, after: page });
          for (const outcome of await eraseRows(view, place, subject, keys))
            if (outcome === 'done') done[kindOf(place) === 'delete' ? 'deleted' : 'changed'] += 1;
            else if (outcome !== 'gone' && outcome.code !== 'not-found')
              done.failed.push({ entity: place.entity, error: outcome });
          page = next;
        } while (page);
      }
      return { ...done, next: undefined };
    },
  };
}

type ErasedRow = RowkeyError | 'gone' | 'done';

/** Erases rows that still have the subject when they are written. Returns what became of each. */
async function eraseRows(
  view: View,
  place: UserRows,
  subject: string,
  keys: readonly Values[],
): Promise<readonly ErasedRow[]> {
  const { engine } = view;
  const { entity, field, erasing } = place;
  const each = <Done>(work: (key: Values) => Promise<Done>) =>
    pMap(keys, (key) => work(key).catch(asOutcome), { concurrency: READS_CONCURRENCY });
  if (entity.series) return each((key) => deleteSeries(engine, entity, key).then(() => 'done' as const));
  if (typeof erasing !== 'string') return each((key) => changeOwn(engine, place, subject, key, erasing));
  const found = await each(async (key) => {
    const own = await readOwn(view, place, subject, key, [field]);
    return own ? { delete: key, ifMatch: own.etag } : 'gone';
  });
  const deletes = found.flatMap((one) => (one === 'gone' || one instanceof RowkeyError ? [] : one));
  const outcomes = (await writeBatch(engine, entity, deletes)).values();
  return found.map((one): ErasedRow => {
    if (one === 'gone' || one instanceof RowkeyError) return one;
    const { value } = outcomes.next();
    return value instanceof RowkeyError ? value : 'done';
  });
}

/** Changes an entity, and deletes its files, if it still has the subject. */
async function changeOwn(
  engine: Engine,
  { entity, field }: UserRows,
  subject: string,
  key: Values,
  changes: Values,
): Promise<'done' | 'gone'> {
  let isOwn = false;
  const removed = Object.keys(changes).filter((name) => changes[name] === null);
  await changeEntity(engine, entity, key, {}, async (current) => {
    isOwn = current[field] === subject;
    return isOwn ? { ...omit(current, removed), ...omit(changes, removed) } : current;
  });
  return isOwn ? 'done' : 'gone';
}

/** One row that cannot be erased does not hold up the others. */
function asOutcome(error: unknown): RowkeyError {
  if (error instanceof RowkeyError && error.code !== 'storage-unavailable') return error;
  throw error;
}

/** The places from that of a page. */
function from(places: readonly UserRows[], after: Position | undefined): [number, UserRows][] {
  const start = after?.place === undefined ? 0 : places.findIndex((place) => nameOf(place) === after.place);
  if (start < 0)
    throw new RowkeyError('invalid-input', 'The continuation is of another model.', { field: 'continuation' });
  return [...places.slice(start).entries()];
}

function nameOf({ entity, field }: UserRows): string {
  return `${entity.name}.${field}`;
}

/** Undefined at the beginning of a place. */
function inPlace(after: Position | undefined): Position | undefined {
  return after === undefined || (after.row === '' && after.resume === undefined) ? undefined : after;
}

export function eraseOwnData(model: LinkedModel): Operation<EraseInput, Erased> {
  const summary = 'Erase what the app has stored about the caller, as each entity declares';
  return erase(model, { name: 'me-erase', summary, roles: rolesOfUsers(model) });
}

export function eraseUserData(model: LinkedModel): Operation<EraseInput, Erased> {
  const summary = 'Erase what the app has stored about a user, as each entity declares';
  return erase(model, { name: 'operations-users-erase', summary, roles: [model.operatorRole] });
}

/** Erases all that the app has stored about a user, page by page. `failed` has what could not be erased, in sentences for operators. */
export async function eraseAll(
  engine: Engine,
  model: LinkedModel,
  subject: string,
): Promise<Pick<Erased, 'deleted' | 'changed'> & { readonly failed: readonly string[] }> {
  const { run } = eraseUserData(model);
  const view = { engine, caller: undefined, isLastAttempt: true };
  const done = { deleted: 0, changed: 0, failed: [] as string[] };
  for (let after: Position | undefined; ; ) {
    const { deleted, changed, failed, next } = await run(view, { subject, after, until: Number.POSITIVE_INFINITY });
    done.deleted += deleted;
    done.changed += changed;
    done.failed.push(...failed.map(({ entity, error }) => `${entity.name}: ${error.message}`));
    if (!next) return done;
    after = next;
  }
}
