import type { Binding, RangeLimit } from '../api/binding.ts';
import type { EntityCalls, SeriesCalls } from '../api/calls.ts';
import type { Declared, Entities } from '../api/entity-types.ts';
import type { LookupCalls, TotalCalls } from '../api/index-calls.ts';
import { openWithGaps, rereadIfBlobGone } from '../api/open.ts';
import { type Operation, perform, type View } from '../api/operation.ts';
import {
  checkFields,
  type GetInput,
  getEntity,
  getThroughIndex,
  getTotal,
  type IndexInput,
  type ListInput,
  listIndex,
  listLookup,
  listRange,
  listTotals,
  type RangeInput,
  wholeList,
} from '../api/reads.ts';
import {
  batch,
  create,
  type DeleteRangeInput,
  deleteRange,
  merge,
  patch,
  put,
  remove,
  replace,
} from '../api/writes.ts';
import { RowkeyError } from '../base/errors.ts';
import { pick, type Stored, type Values } from '../base/values.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Slots } from '../define/declaration/declaration.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Index } from '../define/declaration/indexes.ts';
import { groupFields, type Total, toIndex } from '../define/declaration/totals.ts';
import { type IndexBounds, indexFields, isOfMany, requireRangeStart } from '../define/places/index-range.ts';
import type { Engine } from '../engine/engine.ts';
import type { Position } from '../engine/read/continuation.ts';
import type { Page as PageOf, PageOptions as PageRange } from '../engine/read/retrieve.ts';
import type { BatchAction, BatchOutcome } from '../engine/write/entity-batch.ts';
import { checkGroup } from '../pattern-helpers/read-totals.ts';
import { readSpan, type SpanBounds, spanKeyFields } from '../pattern-helpers/series-span.ts';
import { deleteSeries, increment, readSeries, setCounts, toSlot } from '../patterns/data-series.ts';
import { toRequestId } from './request-id.ts';

const PAGE_TOP = 100;

/** Preconditions of a write (an ETag, a list of ETags or `*`), and its author. */
export interface WriteOptions extends Conditions {
  /** The subject in the audit log. Default: `app`. */
  readonly by?: string;
}

export interface CreateOptions extends Pick<WriteOptions, 'by'> {
  /** An id of the request: up to 64 letters, digits, `-` and `_`. A repeated create returns the entity of the first attempt. */
  readonly requestId?: string;
}

export interface BatchOptions extends Pick<WriteOptions, 'by'> {
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
  readonly one: Promise<this['item']>;
  readonly many: Listing<this['item']>;
  readonly all: Promise<readonly this['item'][]>;
  readonly isWhole: true;
  readonly options: [];
  readonly range: RangeLimit;
  readonly write: WriteOptions;
  readonly create: CreateOptions;
  readonly batch: BatchOptions;
  readonly deleteRange: Pick<WriteOptions, 'by'>;
  readonly outcome: BatchOutcome;
  readonly deleted: {
    readonly deleted: number;
    readonly failed: readonly RowkeyError[];
    /** The rows that clients wrote and that are not valid entities. */
    readonly skipped: number;
  };
  readonly count: number;
}

export type EntityStore<Of extends Declared, All extends Entities> = EntityCalls<Of, All, InProcess> &
  LookupCalls<Of, InProcess>;
export type SeriesStore<Of extends Declared> = SeriesCalls<Of, InProcess>;
export interface TotalReader<Of extends Declared, By> extends TotalCalls<Of, By, InProcess> {}

/** A store for each entity of a model, by name. */
export type Store<All extends Entities> = {
  readonly [Name in keyof All & string]: All[Name]['series'] extends Slots
    ? SeriesStore<All[Name]>
    : EntityStore<All[Name], All>;
};

export interface StoreSource {
  /** Throws `wrong-setting` while a setting is invalid, or the model does not match what is stored. */
  engine(): Promise<Engine>;
  /** Runs a write and records its changes in the audit log before it returns or throws. */
  record<Result>(by: string, write: () => Promise<Result>): Promise<Result>;
}

interface Write extends Conditions {
  readonly by?: string;
  readonly requestId?: string;
  readonly return?: 'minimal';
}

type IndexRangeOptions = ListInput & IndexBounds & RangeLimit;

/** The author in the audit log if the caller names none. */
const THE_APP = 'app';

/** The typed store of a model. It reads and writes in process, without access rules, through the same engine as HTTP. */
export function createStore<All extends Entities>(list: readonly Entity[], source: StoreSource): Store<All> {
  const stores = list.map((entity) => [
    entity.name,
    entity.series ? seriesStore(entity, source) : entityStore(entity, source),
  ]);
  // The methods accept and return any values. Their types are those of the entities' declarations.
  const store: unknown = Object.freeze(Object.fromEntries(stores));
  return store as Store<All>;
}

function entityStore(entity: Entity, source: StoreSource) {
  const read = <Input, Output>(operation: Operation<Input, Output>, input: Input) =>
    readWithView(source, entity, operation, () => input);
  const run = async <Input, Output>(
    { by = THE_APP }: Write,
    operation: Operation<Input, Output>,
    input: () => Input,
  ) => {
    const engine = await source.engine();
    return source.record(by, () => perform(operation, { ...view(engine), isLastAttempt: true }, input));
  };
  const write = async <Input>(options: Write, operation: Operation<Input, Stored>, input: () => Input) => {
    const { etag, values } = await run(options, operation, input);
    return {
      etag,
      values: await openWithGaps({ ...view(await source.engine()), isLastAttempt: true }, entity, values),
    };
  };
  const change = (key: Values, values: Values, options: Write) => () => ({
    key: keyOf(entity, key),
    values,
    conditions: conditionsOf(options),
  });
  return {
    get: async (key: Values, options: Omit<GetInput, 'key'> = {}) => {
      const input = { ...options, key: checkFields(entity, key, entity.keyFields) };
      const found = await read(getEntity(entity), input).catch(undefinedIfNotFound);
      return found && { etag: found.etag, values: found.values };
    },
    create: (values: Values, options: Write = {}) =>
      write(options, create(entity), () => ({ values, id: idOf(entity, 'create', options.requestId) })),
    put: (key: Values, values: Values, options: Write = {}) =>
      write(options, put(entity), change(key, values, options)),
    replace: (key: Values, values: Values, options: Write = {}) =>
      write(options, replace(entity), change(key, values, options)),
    update: async (key: Values, fields: Values, options: Write = {}) => {
      if (options.return === 'minimal')
        return { etag: (await run(options, merge(entity), change(key, fields, options))).etag };
      return write(options, patch(entity), change(key, fields, options));
    },
    delete: (key: Values, options: Write = {}) =>
      run(options, remove(entity), () => ({ key: keyOf(entity, key), conditions: conditionsOf(options) })),
    deleteRange: async (key: Values, { by = THE_APP, ...range }: DeleteRange & Write = {}) => {
      const partition = checkFields(entity, key, entity.partition.fields);
      const failed: RowkeyError[] = [];
      let deleted = 0;
      let skipped = 0;
      for (let after: Position | undefined, isFirst = true; isFirst || after; isFirst = false) {
        const input = { ...range, partition, after };
        const done = await run({ by }, deleteRange(entity), () => input);
        deleted += done.deleted;
        skipped += done.skipped;
        failed.push(...done.failed);
        after = done.next;
      }
      return { deleted, failed, skipped };
    },
    // Copies, because the list is in the memory of the process.
    ...(entity.lookup && {
      list: async (options: ListInput = {}) =>
        structuredClone(wholeList(entity, await read(listLookup(entity), options))),
    }),
    batch: (actions: readonly BatchAction[], { by = THE_APP, atomic = false }: BatchOptions = {}) =>
      run({ by }, batch(entity), () => ({ actions, atomic })),
    range: (key: Values, options: Omit<RangeInput, 'partition' | 'top' | 'after'> = {}) =>
      createListing(async (page) => {
        const partition = checkFields(entity, key, entity.partition.fields);
        return read(listRange(entity), { ...options, ...page, partition });
      }),
    totals: Object.freeze(
      Object.fromEntries(
        Object.entries(entity.totals).map(([name, declared]) => [name, totalReader(entity, name, declared, source)]),
      ),
    ),
    by: Object.freeze(
      Object.fromEntries(
        Object.entries(entity.indexes).map(([name, index]) => [name, readerOf(entity, name, index, source)]),
      ),
    ),
  };
}

function readerOf(entity: Entity, name: string, index: Index, source: StoreSource) {
  const fields = indexFields(entity, index);
  const readPage = async (given: Values, names: readonly string[], options: Omit<IndexInput, 'given'>) => {
    const input = { ...options, given: checkFields(entity, given, names) };
    return readWithView(source, entity, listIndex(entity, index), () => input);
  };
  const readOne = async (given: Values, { select }: Pick<ListInput, 'select'>) => {
    const input = { given: checkFields(entity, given, fields), select };
    return readWithView(source, entity, getThroughIndex(entity, index), () => input);
  };
  const read = isOfMany(entity, index)
    ? (given: Values, options: ListInput = {}) =>
        createListing((page) => readPage(given, fields, { ...options, ...page }))
    : (given: Values, options: Pick<ListInput, 'select'> = {}) =>
        readOne(given, options).then(({ values }) => values, undefinedIfNotFound);
  const range = (given: Values, { first, ...options }: IndexRangeOptions = {}) => {
    const start = Object.keys(given).filter((field) => given[field] !== undefined);
    requireRangeStart(entity, index, { name, fields: start });
    return createListing((page) => readPage(pick(given, start), start, { ...options, ...page }), first);
  };
  return Object.assign(read, { range });
}

function totalReader(entity: Entity, name: string, declared: Total, source: StoreSource) {
  const check = (given: Values, fields: readonly string[]) =>
    checkGroup(declared, given, fields, (inFull) => checkFields(entity, pick(given, inFull), inFull));
  const read = <Input, Output>(operation: Operation<Input, Output>, input: Input) =>
    readWithView(source, entity, operation, () => input);
  return {
    get: async (group: Values) => read(getTotal(entity, declared), { group: check(group, groupFields(declared)) }),
    range: (given: Values, { first, ...options }: Omit<IndexRangeOptions, 'where' | 'select'> = {}) => {
      const start = Object.keys(given).filter((field) => given[field] !== undefined);
      requireRangeStart(entity, toIndex(declared), { what: 'totals', name, fields: start });
      const checked = check(given, start);
      return createListing(
        (page) => read(listTotals(entity, declared), { ...options, ...page, group: checked }),
        first,
      );
    },
  };
}

function seriesStore(entity: Entity, { engine, record }: StoreSource) {
  const reread = <Result>(read: () => Promise<Result>) => rereadIfBlobGone(`Series of ${entity.name}`, read);
  return {
    get: async (key: Values) => {
      const at = await engine();
      return reread(() => readSeries(at, entity, keyOf(entity, key))).catch(undefinedIfNotFound);
    },
    set: async (key: Values, counts: Readonly<Record<string, number>>, options: Write = {}) => {
      const at = await engine();
      const bySlot = Object.entries(counts).map(([slot, count]) => [toSlot(entity, slot), count] as const);
      const set = () => setCounts(at, entity, keyOf(entity, key), new Map(bySlot), conditionsOf(options));
      await record(options.by ?? THE_APP, set);
    },
    increment: async (key: Values, slot: number, by: number, options: Write = {}) => {
      const at = await engine();
      const change = { slot: toSlot(entity, String(slot)), by, id: idOf(entity, 'increment', options.requestId) };
      return record(options.by ?? THE_APP, () => increment(at, entity, keyOf(entity, key), change));
    },
    delete: async (key: Values, options: Write = {}) => {
      const at = await engine();
      const remove = () => deleteSeries(at, entity, keyOf(entity, key), conditionsOf(options));
      await record(options.by ?? THE_APP, remove);
    },
    ...(entity.series?.span && {
      span: async (key: Values, bounds: SpanBounds) => {
        const at = await engine();
        return reread(() => readSpan(at, entity, checkFields(entity, key, spanKeyFields(entity)), bounds));
      },
    }),
  };
}

async function readWithView<Input, Output>(
  source: StoreSource,
  entity: Entity,
  operation: Operation<Input, Output>,
  input: () => Input,
): Promise<Output> {
  const engine = await source.engine();
  return rereadIfBlobGone(`Entity of ${entity.name}`, (isLastAttempt) =>
    perform(operation, { ...view(engine), isLastAttempt }, input),
  );
}

/** Code of the app may see every field. */
function view(engine: Engine): Omit<View, 'isLastAttempt'> {
  return { engine, caller: undefined };
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

function conditionsOf({ ifMatch, ifNoneMatch }: Write): Conditions {
  return { ifMatch, ifNoneMatch };
}

function idOf({ name }: Entity, operation: string, requestId: string | undefined): string | undefined {
  return requestId === undefined ? undefined : toRequestId([name, operation, requestId]);
}

function undefinedIfNotFound(error: unknown): undefined {
  if (error instanceof RowkeyError && error.code === 'not-found') return undefined;
  throw error;
}
