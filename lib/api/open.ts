import pMap from 'p-map';
import { hiddenFields } from '../access/rule.ts';
import { RowkeyError } from '../base/errors.ts';
import { omit, pick, type Values } from '../base/values.ts';
import { type Filter, matches } from '../define/codec/filter.ts';
import { withKeyOfReferences } from '../define/codec/select.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Index } from '../define/declaration/indexes.ts';
import type { Engine } from '../engine/engine.ts';
import {
  type ChildrenOptions,
  listedFields,
  type Page,
  type RangeOptions,
  readEntities,
  readEntity,
  readWithChildren,
} from '../engine/read/retrieve.ts';
import { toPlain } from '../engine/write/stored-values.ts';
import {
  type IndexPageOptions,
  readByCopies,
  readByCopy,
  readByList,
  readByLists,
} from '../pattern-helpers/read-through-index.ts';
import { BlobGone } from '../pattern-helpers/text-blobs.ts';
import type { View } from './operation.ts';

/** Reads for a caller, over HTTP or in process: decrypted, and without the fields that the caller may not see. */

export interface GetOptions extends ChildrenOptions {
  /** The children to include. */
  readonly kinds: readonly Entity[];
  /** True for the ETag of a state that the caller has, of which nothing is opened. Table storage ignores If-None-Match. */
  isKnown?: ((etag: string) => boolean) | undefined;
}

interface Found {
  readonly etag: string;
  /** Undefined for a known state. */
  readonly values: Values | undefined;
}

/** One entity, with its children of some kinds in one query. Throws `not-found`. */
export async function readOne(
  view: View,
  entity: Entity,
  key: Values,
  { kinds, select = {}, where = {}, isKnown }: GetOptions,
): Promise<Found> {
  const fields = select[entity.name];
  if (kinds.length === 0) {
    const { etag, values } = await readEntity(view.engine, entity, key, { select: fields });
    if (isKnown?.(etag)) return { etag, values: undefined };
    return { etag, values: await openSelected(view, entity, values, fields) };
  }
  const { etag, values } = await readWithChildren(view.engine, entity, key, kinds, { select, where });
  const children = await pMap(kinds, async (kind) => {
    const list = values[kind.name];
    const page = { items: Array.isArray(list) ? list : [], next: undefined };
    return [kind.name, (await openPage(view, kind, page, select[kind.name])).items];
  });
  return { etag, values: { ...(await openSelected(view, entity, values, fields)), ...Object.fromEntries(children) } };
}

/** Decrypts and loads only the selected fields; all without `select`. Throws as `openValues` does. */
export async function openSelected(
  view: View,
  entity: Entity,
  values: Values,
  select: readonly string[] | undefined,
): Promise<Values> {
  if (!select) return await openValues(view, entity, values);
  return pick(await openValues(view, entity, pick(values, withKeyOfReferences(entity, select))), select);
}

/** A page of the entities of a partition. Large fields are omitted unless selected. */
export async function readRangePage(view: View, entity: Entity, key: Values, options: RangeOptions): Promise<Page> {
  const select = options.select ?? listedFields(entity);
  return openPage(view, entity, await readEntities(view.engine, entity, key, { ...options, select }), select);
}

/**
 * A page of the entities with the given values, or of a range over the rest of the row key. Large fields are omitted unless
 * selected.
 */
export async function readIndexPage(
  view: View,
  entity: Entity,
  index: Index,
  { given, ...options }: IndexPageOptions & { readonly given: Values },
): Promise<Page> {
  const asked = { ...options, select: options.select ?? listedFields(entity) };
  return openPage(view, entity, await readPage(view.engine, entity, index, given, asked), asked.select);
}

function readPage(engine: Engine, entity: Entity, index: Index, given: Values, options: IndexPageOptions) {
  if (index.kind !== 'index-entity') return readByCopies(engine, entity, index, given, options);
  const isOneList = index.row.fields.every((field) => field in given);
  return (isOneList ? readByList : readByLists)(engine, entity, index, given, options);
}

/** The only entity with the given values; with `select`, its key and these fields. Throws `not-found`. */
export async function readThroughIndex(
  view: View,
  entity: Entity,
  index: Index,
  { given, select }: { readonly given: Values; readonly select?: readonly string[] | undefined },
): Promise<Values> {
  if (index.kind === 'index-entity') throw new Error(`An index entity of ${entity.name} lists entities.`);
  const fields = select && [...new Set([...entity.keyFields, ...select])];
  return openSelected(view, entity, await readByCopy(view.engine, entity, index, given, fields), fields);
}

/** The entities of a lookup that match, presented for the reader: the list is shared by all readers. */
export function openLookup(
  view: View,
  entity: Entity,
  { items, next }: Page,
  { select, where = [] }: { readonly select?: readonly string[] | undefined; readonly where?: Filter | undefined },
): Promise<Page> {
  return openPage(view, entity, { items: items.filter((values) => matches(where, values)), next }, select);
}

/** Opens a page that was read from storage, with only the selected fields. */
export async function openPage(
  view: View,
  entity: Entity,
  { items, next }: Page,
  select?: readonly string[],
): Promise<Page> {
  if (!select) return { items: await openList(view, entity, items), next };
  const read = withKeyOfReferences(entity, select);
  const list = await openList(
    view,
    entity,
    items.map((values) => pick(values, read)),
  );
  return { items: list.map((values) => pick(values, select)), next };
}

/** The fields that the caller may not see. They are omitted before anything is decrypted or loaded. */
export function hiddenOf({ caller }: Pick<View, 'caller'>, entity: Entity): readonly string[] {
  return caller ? hiddenFields(entity, caller) : [];
}

const OPEN_CONCURRENCY = 8;
const READ_ATTEMPTS = 4;

/** Decrypts fields and loads texts from blobs. Throws `needs-repair`, which names the first field that fails. */
export function openValues(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, values, (field) => {
    throw new RowkeyError('needs-repair', `"${field}" of an entity of ${entity.name} cannot be read.`, {
      field,
    });
  });
}

/**
 * Opens the values, with null for a field that fails, so that it hides neither other entities nor the success of a write. A field
 * without a value is absent, and writes reject null, so null is unambiguous.
 */
export function openWithGaps(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, values, () => null);
}

/** Opens the values of each entity of a list with `openWithGaps`. Keeps the order. */
export function openList(view: View, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => openWithGaps(view, entity, values), { concurrency: OPEN_CONCURRENCY });
}

/** Throws `BlobGone` if the blob may only have been replaced. */
function open(view: View, entity: Entity, values: Values, onFailure: (field: string) => null): Promise<Values> {
  const { engine, isLastAttempt } = view;
  const hidden = hiddenOf(view, entity);
  return toPlain(engine, entity, hidden.length === 0 ? values : omit(values, hidden), (field, error) => {
    if (error instanceof BlobGone && !isLastAttempt) throw error;
    return onFailure(field);
  });
}

/** Reads the row again if its blob was replaced meanwhile. Throws `needs-repair` if the blob is missing every time. */
export async function rereadIfBlobGone<Result>(
  subject: string,
  read: (isLastAttempt: boolean) => Promise<Result>,
  { attempts = READ_ATTEMPTS }: { readonly attempts?: number | undefined } = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    const isLastAttempt = attempt >= attempts;
    try {
      return await read(isLastAttempt);
    } catch (error) {
      if (!(error instanceof BlobGone)) throw error;
      if (isLastAttempt) throw new RowkeyError('needs-repair', `${subject}: a blob is lost.`, { cause: error });
    }
  }
}
