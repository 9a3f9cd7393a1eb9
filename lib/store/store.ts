import type { Caller } from '../access/token.ts';
import { noteThrown, type OperationCalls, operationOf, parseInput } from '../api/app-operation.ts';
import type { EntityCalls, FileCalls, ModelCalls, SeriesCalls } from '../api/calls.ts';
import type {
  Binding,
  Declared,
  Entities,
  Named,
  RangeLimit,
  TotalCalls,
  WholeListCalls,
} from '../api/entity-types.ts';
import { fileOperations } from '../api/files.ts';
import { type GetInput, getEntity, getThroughIndex } from '../api/get.ts';
import { listMine } from '../api/mine.ts';
import {
  checkFields,
  getTotal,
  type IndexInput,
  type ListInput,
  listIndex,
  listRange,
  listTotals,
  listWhole,
  type RangeInput,
  requireWhole,
  wholeListOf,
} from '../api/reads.ts';
import { Counts, getSeries, getSpan, Increment, incrementSeries, removeSeries, setSeries } from '../api/series.ts';
import { entitiesToTransact, readTransaction, transact } from '../api/transact.ts';
import {
  batch,
  create,
  type DeleteRangeInput,
  deleteRange,
  patch,
  put,
  type RemoveInput,
  remove,
  replace,
  type Started,
  toActionIds,
} from '../api/writes.ts';
import { checkJson } from '../base/check-json.ts';
import { RowkeyError } from '../base/errors.ts';
import { MAX_BODY_DEPTH } from '../base/json-value.ts';
import { mapValues, pick, type Stored, type Values } from '../base/values.ts';
import { parse } from '../define/codec/validation.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Slots } from '../define/declaration/declaration.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Index } from '../define/declaration/indexes.ts';
import { type Total, toIndex } from '../define/declaration/totals.ts';
import type { Operations } from '../define/define-operation.ts';
import { noListOfMine } from '../define/places/closed-index.ts';
import { type IndexBounds, indexFields, isOfMany, requireRangeStart } from '../define/places/index-range.ts';
import type { Position } from '../engine/read/continuation.ts';
import type { Page as PageOf, PageOptions as PageRange } from '../engine/read/retrieve.ts';
import type { BatchAction, BatchOutcome } from '../engine/write/entity-batch.ts';
import { type SpanBounds, spanKeyFields } from '../features/data-series/series-span.ts';
import { checkGroup } from '../features/totals/read-totals.ts';
import { type Call, createCall, type StoreSource } from './call.ts';

const PAGE_TOP = 100;

/** Preconditions of a write (an ETag, a list of ETags or `*`), and its author. */
export interface WriteOptions extends Conditions {
  /** The subject in the audit log. Default: `app`. */
  readonly by?: string | undefined;
}

export interface CreateOptions extends Pick<WriteOptions, 'by'> {
  /** An id of the request: any text, of which a hash is stored. A repeated create returns the entity of the first attempt. */
  readonly requestId?: string;
}

export interface BatchOptions extends CreateOptions {
  /** All actions in one transaction, or none. */
  readonly atomic?: boolean;
}

/** A range to delete: at least one inclusive bound of the first field of the row key, each a prefix, or `all`. */
export type DeleteRange = Pick<DeleteRangeInput, 'from' | 'to' | 'all'>;
export interface Page<Item> extends PageOf<Item> {}
export interface PageOptions extends Partial<PageRange> {}
/** A list that is read page by page while it is iterated, or one page at a time. */
export interface Listing<Item> extends AsyncIterable<Item> {
  page(options?: PageOptions): Promise<Page<Item>>;
}

interface InProcess extends Binding {
  readonly many: Listing<this['item']>;
  readonly all: Promise<readonly this['item'][]>;
  readonly isWhole: true;
  readonly options: [];
  readonly range: RangeLimit;
  readonly write: WriteOptions;
  readonly create: CreateOptions;
  readonly batch: BatchOptions;
  readonly deleteRange: Pick<WriteOptions, 'by'>;
  /** The media type is detected from the bytes. */
  readonly file: Blob | Uint8Array;
  readonly upload: WriteOptions;
  readonly outcome: BatchOutcome;
  readonly removed: Started | undefined;
  readonly deleted: {
    readonly deleted: number;
    readonly failed: readonly RowkeyError[];
    /** The rows that clients wrote and that are not valid entities. */
    readonly skipped: number;
  };
  readonly count: number;
}

export type EntityStore<Of extends Declared, All extends Entities> = EntityCalls<Of, All, InProcess> &
  WholeListCalls<Of, InProcess> & {
    readonly files: { readonly [Name in Named<Of, 'attachments'>]: FileStore<Of> };
  };
export interface FileStore<Of extends Declared> extends FileCalls<Of, InProcess> {}
export type SeriesStore<Of extends Declared> = SeriesCalls<Of, InProcess>;
export interface TotalReader<Of extends Declared, By> extends TotalCalls<Of, By, InProcess> {}

/** A store for each entity of a model, by name. */
export type Store<All extends Entities> = {
  readonly [Name in keyof All & string]: All[Name]['series'] extends Slots
    ? SeriesStore<All[Name]>
    : EntityStore<All[Name], All>;
} & ModelCalls<All, InProcess>;

/** The store of a caller, with the operations of the app. */
export type CallerStore<All extends Entities, Own extends Operations = Operations> = Store<All> &
  OperationCalls<Own, InProcess>;

/** The store of the app itself, without access rules. */
export type UnlimitedStore<All extends Entities, Own extends Operations = Operations> = Store<All> & {
  /**
   * The same store for a caller, with the roles, restricted fields and rules on rows that HTTP has: a row out of reach is as absent,
   * fields that the caller may not read are left out. Throws `forbidden`.
   *
   * @example
   * const handler = rowkey.handler({ roles: ['user'] }, async (_request, { caller }) => {
   *   const mine = await rowkey.store.as(caller).vehicles.range({ depot: 'north' }).page();
   *   return { jsonBody: mine.items };
   * });
   */
  as(caller: Caller): CallerStore<All, Own>;
};

interface Write extends WriteOptions {
  readonly requestId?: string;
  readonly return?: 'minimal';
}

type IndexRangeOptions = ListInput & IndexBounds & RangeLimit;

/** The typed store of a model. It reads and writes in process, through the same engine as HTTP. */
export function createStore<All extends Entities, Own extends Operations = Operations>(
  list: readonly Entity[],
  source: StoreSource,
): UnlimitedStore<All, Own> {
  const as = (caller: Caller) => {
    requireCaller(caller);
    const call = createCall(source, caller);
    return Object.freeze({ ...storesOf(list, call), operations: operationsThrough(source, call) });
  };
  // The methods accept and return any values. Their types are those of the entities' declarations.
  const store: unknown = Object.freeze({ ...storesOf(list, createCall(source)), as });
  return store as UnlimitedStore<All, Own>;
}

/** A caller that is undefined by mistake must not be the app itself, which no rule limits. */
function requireCaller(caller: Partial<Caller> | undefined): void {
  if (typeof caller?.subject === 'string' && Array.isArray(caller.roles)) return;
  throw new RowkeyError(
    'wrong-operation',
    'store.as needs a caller: { subject, roles, claims }. What acts for the app uses the store without it.',
  );
}

function storesOf(list: readonly Entity[], call: Call): object {
  const stores = list.map((entity) => [
    entity.name,
    entity.series ? seriesStore(entity, call) : entityStore(entity, call),
  ]);
  return { ...Object.fromEntries(stores), transact: transactThrough(list, call) };
}

function transactThrough(list: readonly Entity[], call: Call) {
  const entities = entitiesToTransact(list);
  const operation = transact(entities);
  return (actions: unknown, { by, requestId }: CreateOptions = {}) => {
    const id = call.identify([operation.name], requestId);
    return call(operation, () => ({ actions: readTransaction(entities, { actions }), id }), { by });
  };
}

/** The operations of the app by name. */
function operationsThrough({ operations }: StoreSource, call: Call): object {
  if (!operations) return {};
  const { declared, execute } = operations;
  return mapValues(declared, (one) => (given: unknown, { requestId }: Pick<CreateOptions, 'requestId'> = {}) => {
    const id = call.identify([one.name], requestId);
    return call(operationOf(one), () => {
      if (given !== undefined) checkJson(given, MAX_BODY_DEPTH);
      return { given: parseInput(one, given), id, execute };
    });
  });
}

function entityStore(entity: Entity, call: Call) {
  const change = (key: Values, values: Values, options: Write) => () => ({
    ...removal(entity, key, options),
    values,
    isMinimal: options.return === 'minimal',
  });
  return {
    get: async (key: Values, options: Omit<GetInput, 'key'> = {}) => {
      const input = () => ({ ...options, key: keyOf(entity, key) });
      const found = await call(getEntity(entity), input).catch(undefinedIfNotFound);
      return found && { etag: found.etag, values: found.values };
    },
    create: (values: Values, options: Write = {}) => {
      const id = call.identify([entity.name, 'create'], options.requestId);
      return call(create(entity), () => ({ values, id }), options).then(toStored);
    },
    put: (key: Values, values: Values, options: Write = {}) =>
      call(put(entity), change(key, values, options), options).then(toStored),
    replace: (key: Values, values: Values, options: Write = {}) =>
      call(replace(entity), change(key, values, options), options).then(toStored),
    update: (key: Values, fields: Values, options: Write = {}) =>
      call(patch(entity), change(key, fields, options), options).then(toStored),
    delete: (key: Values, options: Write = {}) => call(remove(entity), () => removal(entity, key, options), options),
    deleteRange: async (key: Values, { by, ...range }: DeleteRange & Write = {}) => {
      const failed: RowkeyError[] = [];
      let deleted = 0;
      let skipped = 0;
      for (let after: Position | undefined, isFirst = true; isFirst || after; isFirst = false) {
        const input = () => ({ ...range, partition: checkFields(entity, key, entity.partition.fields), after });
        const done = await call(deleteRange(entity), input, { by });
        deleted += done.deleted;
        skipped += done.skipped;
        failed.push(...done.failed);
        after = done.next;
      }
      for (const error of failed) noteThrown(error, deleteRange(entity));
      return { deleted, failed, skipped };
    },
    // Copies, because the list is in the memory of the process.
    ...(wholeListOf(entity) && {
      list: async (options: ListInput = {}) => {
        const found = await call(listWhole(entity), () => options);
        return structuredClone(noteIfThrown(listWhole(entity), () => requireWhole(entity, found)));
      },
    }),
    async batch(actions: readonly BatchAction[], { by, requestId, atomic = false }: BatchOptions = {}) {
      const ids = toActionIds(call.identify([entity.name, 'batch'], requestId), actions);
      const results = await call(batch(entity), () => ({ actions, atomic, ids }), { by });
      for (const result of results) noteThrown(result, batch(entity));
      return results;
    },
    range: (key: Values, options: Omit<RangeInput, 'partition' | 'top' | 'after'> = {}) =>
      createListing((page) =>
        call(listRange(entity), () => ({
          ...options,
          ...page,
          partition: checkFields(entity, key, entity.partition.fields),
        })),
      ),
    mine: (options: ListInput = {}) =>
      createListing(async (page) => {
        const operation = listMine(entity);
        if (!operation) throw new Error(noListOfMine(entity));
        return call(operation, () => ({ ...options, ...page }));
      }),
    files: Object.freeze(
      mapValues(entity.attachments, (declaration, field) =>
        fileStore(entity, () => fileOperations(entity, field, declaration), call),
      ),
    ),
    totals: Object.freeze(mapValues(entity.totals, (declared, name) => totalReader(entity, name, declared, call))),
    by: Object.freeze(mapValues(entity.indexes, (index, name) => indexReader(entity, name, index, call))),
  };
}

/** Without what only other bindings return. */
function toStored({ etag, values }: Partial<Stored>) {
  return { etag, ...(values ? { values } : {}) };
}

function fileStore(entity: Entity, operations: () => ReturnType<typeof fileOperations>, call: Call) {
  return {
    get: async (key: Values) => {
      const input = () => ({ key: keyOf(entity, key), version: undefined, isKnown: () => false });
      const found = await call(operations().read, input).catch(undefinedIfNotFound);
      if (!found?.bytes) return undefined;
      // The types of the DOM accept no bytes of shared memory, which these are not.
      const bytes = found.bytes as Uint8Array<ArrayBuffer>;
      return { blob: new Blob([bytes], { type: found.file.type }), etag: found.etag };
    },
    put: (key: Values, data: Blob | Uint8Array, options: Write = {}) => {
      const bytes = async () => (data instanceof Uint8Array ? data : new Uint8Array(await data.arrayBuffer()));
      const input = () => ({ ...removal(entity, key, options), bytes });
      return call(operations().put, input, options).then((stored) => stored.file);
    },
    delete: (key: Values, options: Write = {}) =>
      call(operations().remove, () => removal(entity, key, options), options),
  };
}

function indexReader(entity: Entity, name: string, index: Index, call: Call) {
  const fields = indexFields(entity, index);
  const readPage = (given: Values, names: readonly string[], options: Omit<IndexInput, 'given'>) =>
    call(listIndex(entity, name), () => ({ ...options, given: checkFields(entity, given, names) }));
  const read = isOfMany(entity, index)
    ? (given: Values, options: ListInput = {}) =>
        createListing((page) => readPage(given, fields, { ...options, ...page }))
    : (given: Values, { select }: Pick<ListInput, 'select'> = {}) =>
        call(getThroughIndex(entity, name), () => ({ given: checkFields(entity, given, fields), select })).then(
          ({ values }) => values,
          undefinedIfNotFound,
        );
  const range = (given: Values, { first, ...options }: IndexRangeOptions = {}) =>
    noteIfThrown({ name: `${entity.name}-by-${name}`, entity }, () => {
      const start = fieldsWithValue(given);
      requireRangeStart(entity, index, { name, fields: start });
      return createListing((page) => readPage(pick(given, start), start, { ...options, ...page }), first);
    });
  return Object.assign(read, { range });
}

function totalReader(entity: Entity, name: string, declared: Total, call: Call) {
  const check = (given: Values, fields: readonly string[]) =>
    checkGroup(declared, given, fields, (inFull) => checkFields(entity, pick(given, inFull), inFull));
  return {
    get: (group: Values) => call(getTotal(entity, name), () => ({ group: check(group, declared.groupFields) })),
    range: (given: Values, { first, ...options }: IndexBounds & RangeLimit = {}) =>
      noteIfThrown(listTotals(entity, name), () => {
        const start = fieldsWithValue(given);
        requireRangeStart(entity, toIndex(declared), { what: 'totals', name, fields: start });
        const group = check(given, start);
        return createListing((page) => call(listTotals(entity, name), () => ({ ...options, ...page, group })), first);
      }),
  };
}

function seriesStore(entity: Entity, call: Call) {
  return {
    get: (key: Values) => call(getSeries(entity), () => ({ key: keyOf(entity, key) })).catch(undefinedIfNotFound),
    set: (key: Values, counts: Readonly<Record<string, number>>, options: Write = {}) =>
      call(setSeries(entity), () => ({ ...removal(entity, key, options), ...parse(Counts, { counts }) }), options),
    increment: (key: Values, slot: number, by: number, options: Write = {}) => {
      const id = call.identify([entity.name, 'increment'], options.requestId);
      const input = () => ({ key: keyOf(entity, key), slot: String(slot), ...parse(Increment, { by }), id });
      return call(incrementSeries(entity), input, options).then(({ count }) => count);
    },
    delete: (key: Values, options: Write = {}) =>
      call(removeSeries(entity), () => removal(entity, key, options), options),
    ...(entity.series?.span && {
      span: (key: Values, bounds: SpanBounds) =>
        call(getSpan(entity), () => ({ ...bounds, key: checkFields(entity, key, spanKeyFields(entity)) })),
    }),
  };
}

/** Runs what throws before a listing begins. */
function noteIfThrown<Result>(call: Parameters<typeof noteThrown>[1], work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    noteThrown(error, call);
    throw error;
  }
}

/** `first` is the most items of the whole listing. */
function createListing(readPage: (options: PageRange) => Promise<PageOf>, first = Number.POSITIVE_INFINITY) {
  if (!(first >= 1))
    throw new RowkeyError('invalid-input', '"first" must be a number from 1.', {
      field: 'first',
      accepted: '1 or more',
    });
  const page = ({ top = PAGE_TOP, after }: PageOptions = {}) => readPage({ top: Math.min(top, first), after });
  return {
    page,
    async *[Symbol.asyncIterator]() {
      let left = first;
      for (let after: PageOptions['after'], isFirst = true; left > 0 && (isFirst || after); isFirst = false) {
        const { items, next } = await page({ top: Math.min(PAGE_TOP, left), after });
        yield* items;
        left -= items.length;
        after = next;
      }
    },
  };
}

function keyOf(entity: Entity, key: Values): Values {
  // An entity that an index returned contains its key.
  return checkFields(entity, pick(key, entity.keyFields), entity.keyFields);
}

/** The input of an operation on an entity under conditions. */
function removal(entity: Entity, key: Values, { ifMatch, ifNoneMatch }: Write): RemoveInput {
  return { key: keyOf(entity, key), conditions: { ifMatch, ifNoneMatch } };
}

function fieldsWithValue(given: Values): string[] {
  return Object.keys(given).filter((field) => given[field] !== undefined);
}

function undefinedIfNotFound(error: unknown): undefined {
  if (error instanceof RowkeyError && error.code === 'not-found') return undefined;
  throw error;
}
