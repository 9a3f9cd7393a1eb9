import type { Stored, Values } from '../base/values.ts';
import type { IndexDescription } from '../define/declaration/model-description.ts';
import type {
  CallOptions,
  CreateOptions,
  Explanation,
  Listing,
  Operation,
  Page,
  PageOptions,
  WriteOptions,
} from './client-types.ts';
import { byName, type Core, type EntityCalls, type ListOptions } from './core.ts';
import { invalidInput, load, RowkeyClientError, undefinedIfNotFound } from './errors.ts';
import type { Change } from './json-body.ts';
import {
  checkFields,
  type EntityDescription,
  hasKey,
  type Parameter,
  partitionPath,
  pathOf,
  rangeFields,
  toListQuery,
  toPath,
  toQuery,
  valuesOf,
} from './paths.ts';
import { loadJson, nextOf, type Reply } from './transport.ts';

interface GetOptions extends CallOptions {
  readonly at?: string | undefined;
  readonly include?: readonly string[];
  readonly select?: readonly string[];
  readonly where?: Readonly<Record<string, Values | undefined>>;
}

interface ChangeOptions extends WriteOptions {
  readonly return?: 'minimal';
}

/** The modules of calls that most pages do without: each is loaded at the first use of one of its calls. */
const loadBatches = () => import('./batches.ts');
const loadFilters = () => import('./filters.ts');
const loadFiles = () => import('./files.ts');
const loadSeries = () => import('./series.ts');
const loadTotals = () => import('./totals.ts');
const loadTransfers = () => import('./transfers.ts');

type LoadedCall = (calls: EntityCalls, entity: EntityDescription, ...given: unknown[]) => Promise<unknown>;

/**
 * The calls of one entity, or of its archive. With `explains`, each returns its explanation. Its types are those of
 * client-types.ts.
 */
export function createEntityClient(core: Core, name: string, explains: boolean, isArchive = false) {
  const base = createEntityCalls(core, { name, explains, isArchive });
  const { run, send } = base;
  const isDirect = core.directNames.includes(name) && !isArchive;
  /** The last ETag of each row that the API has replaced or rejected: no row has it any more. */
  const spent = new Map<string, string>();
  const { list, range, readIndex } = createLister(base, { explains, isDirect });
  const calls = { ...base, list };

  async function get(
    key: Values,
    { include = [], select, where = {}, at, signal }: GetOptions = {},
    entity: EntityDescription,
  ) {
    const path = pathOf(entity, key);
    if (entity.series && !explains) return (await load(loadSeries())).get(calls, entity, key, { signal });
    const conditions = await Promise.all(include.map((child) => toConditions(core, where[child], `${child}.`)));
    const included = include.join(',') || undefined;
    const query = toQuery([['at', at], ['include', included], ['select', select?.join(',')], ...conditions.flat()]);
    // No write finds the ETag of the past under the path of its query.
    if (at || included || explains)
      return toStored(at ? path + query : path, await send({ method: 'GET', path: path + query, signal }));
    const own = isDirect
      ? await (await core.direct()).read(name, entity, { key, select, signal, spent: spent.get(path) })
      : undefined;
    if (own) core.noteEtag(path, own.etag);
    return own ?? core.read(path, query, signal);
  }

  function toStored(path: string, { headers, text }: Reply): Stored<Values> {
    const etag = headers.get('etag');
    core.noteEtag(path, etag);
    return { etag: etag ?? '', values: JSON.parse(text || '{}') };
  }

  /** The entity that was in the way of a write, with its groups of fields, if the caller may read it. */
  const readCurrent = (entity: EntityDescription, path: string, signal: AbortSignal | undefined) => {
    const query = toQuery([['include', Object.keys(entity.split).join(',') || undefined]]);
    return core.send({ method: 'GET', path: path + query, signal }).then(
      ({ headers, text }) => ({ etag: headers.get('etag') ?? '', values: JSON.parse(text) }),
      () => undefined,
    );
  };

  async function change(
    entity: EntityDescription,
    path: string,
    { method, body }: Change,
    { ifNoneMatch, ifMatch = ifNoneMatch === undefined ? core.lastEtag(path) : undefined, ...options }: ChangeOptions,
  ): Promise<Stored<Values> | Operation | undefined> {
    const { signal } = options;
    const prefer = options.return && `return=${options.return}`;
    const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch, prefer };
    core.forget(path);
    try {
      const reply = await send({ method, path, body, headers, signal });
      if (isDirect && ifMatch) spent.set(path, ifMatch);
      if (method !== 'DELETE') return toStored(path, reply);
      // It has more children than a transaction has rows.
      if (reply.status === 202) return (await load(loadTransfers())).follow(calls, path, reply);
    } catch (error) {
      if (!(error instanceof RowkeyClientError)) throw error;
      const isGone = method === 'DELETE' && error.isRepeated && error.code === 'not-found';
      if (error.code === 'etag-mismatch') {
        if (isDirect && ifMatch) spent.set(path, ifMatch);
        error.current = await readCurrent(entity, path, signal);
      }
      // The reply of an attempt was lost. If the entity is as the request wanted, the attempt was successful.
      const { current } = error as RowkeyClientError<Values>;
      const isRepeated = error.isRepeated && body && current;
      if (isRepeated && (await loadJson()).isApplied(entity, { method, body }, current.values)) {
        core.noteEtag(path, current.etag);
        return current;
      }
      if (!isGone) throw error;
    } finally {
      core.forget(path);
    }
    core.noteEtag(path, null);
    return undefined;
  }

  async function create(values: Values, { idempotencyKey, signal }: CreateOptions, entity: EntityDescription) {
    const headers = { 'idempotency-key': idempotencyKey };
    try {
      const reply = await send({ method: 'POST', path: `/${name}`, body: values, headers, signal });
      return toStored(pathOf(entity, JSON.parse(reply.text)), reply);
    } catch (error) {
      const isTaken = error instanceof RowkeyClientError && error.code === 'duplicate-key';
      if (isTaken && hasKey(entity, values)) error.current = await readCurrent(entity, pathOf(entity, values), signal);
      throw error;
    }
  }

  /** A call of a module. `first` are the parameters before those of the caller. */
  const loaded =
    <Name extends string>(
      module: () => Promise<{ readonly [Each in Name]: unknown }>,
      call: Name,
      ...first: unknown[]
    ) =>
    (...given: unknown[]) =>
      run(async (entity) => ((await load(module()))[call] as LoadedCall)(calls, entity, ...first, ...given));

  return {
    get: (key: Values, options?: GetOptions) => run((entity) => undefinedIfNotFound(get(key, options, entity))),
    create: (values: Values, options: CreateOptions = {}) => run((entity) => create(values, options, entity)),
    put: (key: Values, values: Values, options: WriteOptions = {}) =>
      run((entity) => change(entity, pathOf(entity, key), { method: 'PUT', body: values }, options)),
    replace: (key: Values, values: Values, options: WriteOptions = {}) =>
      run((entity) => {
        const path = pathOf(entity, key);
        return change(
          entity,
          path,
          { method: 'PUT', body: values },
          { ifMatch: core.lastEtag(path) ?? '*', ...options },
        );
      }),
    update: (key: Values, patch: Values, options: ChangeOptions = {}) =>
      run((entity) => change(entity, pathOf(entity, key), { method: 'PATCH', body: patch }, options)),
    delete: (key: Values, options: WriteOptions = {}) =>
      run((entity) => change(entity, pathOf(entity, key), { method: 'DELETE' }, options)),
    range,
    list: (options: ListOptions = {}) => list(options, () => `/${name}`),
    mine: (options: ListOptions = {}) => list(options, () => `/${name}`),
    by: byName(readIndex),
    isConflict: (error: unknown) =>
      error instanceof RowkeyClientError && error.entity === name && /^(etag-mismatch|duplicate-key)$/.test(error.code),
    grant: ({ permissions }: { readonly permissions?: string } = {}) =>
      run(async () => (await core.direct()).grant(name, permissions)),
    batch: loaded(loadBatches, 'batch'),
    deleteRange: loaded(loadBatches, 'deleteRange'),
    archive: loaded(loadTransfers, 'archive'),
    move: loaded(loadTransfers, 'move'),
    files: byName((field) => ({
      get: loaded(loadFiles, 'getFile', field),
      put: loaded(loadFiles, 'putFile', field),
      delete: loaded(loadFiles, 'deleteFile', field),
    })),
    totals: byName((total) => ({
      get: loaded(loadTotals, 'readTotal', total),
      range: (given: Values, options: ListOptions = {}) =>
        list(options, async (entity) => (await load(loadTotals())).totalRangePath(calls, entity, total, given)),
    })),
    set: loaded(loadSeries, 'set'),
    increment: loaded(loadSeries, 'increment'),
    span: loaded(loadSeries, 'span'),
    get archived(): unknown {
      return createEntityClient(core, name, explains, true);
    },
  };
}

async function toConditions({ tools }: Core, where?: Values, prefix?: string): Promise<readonly Parameter[]> {
  return where ? (await load(loadFilters())).filters(tools, where, prefix) : [];
}

/** Leaves a call that explains, with the explanation. */
class Explained {
  readonly explanation: Explanation;
  constructor(explanation: Explanation) {
    this.explanation = explanation;
  }
}

function createEntityCalls(
  core: Core,
  { name, explains, isArchive }: { readonly name: string; readonly explains: boolean; readonly isArchive: boolean },
): Pick<EntityCalls, 'core' | 'run' | 'send'> {
  return {
    core,
    async run(work) {
      try {
        return await work(await core.entity(name, isArchive));
      } catch (error) {
        if (error instanceof Explained) return error.explanation;
        if (error instanceof RowkeyClientError) error.entity = name;
        throw error;
      }
    },
    async send(request) {
      if (!explains) return core.send(request);
      const path = `${request.path}${request.path.includes('?') ? '&' : '?'}explain=true`;
      throw new Explained(JSON.parse((await core.send({ ...request, path })).text));
    },
  };
}

/** Lists of entities: ranges of a partition, and reads through an index. */

/** Begins the position of a page that storage returned. The API has its own positions. */
const OF_STORAGE = 'storage ';

type ReadOwn = (entity: EntityDescription, options: PageOptions) => Promise<Page<Values> | undefined>;

interface Lister extends Pick<EntityCalls, 'list'> {
  range(partition: Values, options?: ListOptions): ReturnType<EntityCalls['list']>;
  /** Reads through an index. */
  readIndex(name: string): (given: Values, options?: ListOptions) => unknown;
}

function createLister(
  { core, run, send }: Omit<EntityCalls, 'list'>,
  { explains, isDirect }: { readonly explains: boolean; readonly isDirect: boolean },
): Lister {
  function listPages(
    { first, signal, ...query }: ListOptions,
    pathOfList: (entity: EntityDescription) => string | Promise<string>,
    own?: ReadOwn,
  ) {
    const readPage = async (entity: EntityDescription, options: PageOptions): Promise<Page<Values>> => {
      const { top, after } = options;
      const ownPage = after === undefined || after.startsWith(OF_STORAGE) ? await own?.(entity, options) : undefined;
      if (ownPage) return ownPage;
      const conditions = await toConditions(core, query.where);
      const path = (await pathOfList(entity)) + toListQuery({ ...query, top, continuation: after }, conditions);
      const { text, headers } = await send({ method: 'GET', path, signal: options.signal });
      return { items: JSON.parse(text).items, next: nextOf(headers) };
    };
    const page = ({ top, ...rest }: PageOptions = {}) => {
      const most = first === undefined ? top : Math.min(first, top ?? 100, 1_000);
      return run((entity) => readPage(entity, { signal, ...rest, ...(most === undefined ? {} : { top: most }) }));
    };
    return explains ? page() : createListing(page as Listing<Values>['page'], first);
  }

  function range(partition: Values, options: ListOptions = {}) {
    const { select, first, signal, ...others } = options;
    const isWhole = Object.values(others).every((other) => other === undefined);
    const pathOfList = (entity: EntityDescription) => partitionPath(entity, partition);
    return listPages(options, pathOfList, async (entity, { top, after, signal }) => {
      const read = { key: partition, select, top, after: after?.slice(OF_STORAGE.length), signal };
      const isOwn = isDirect && isWhole && !explains;
      const page = isOwn ? await (await core.direct()).page(entity.name, entity, read) : undefined;
      return page && { ...page, next: page.next && OF_STORAGE + page.next };
    });
  }

  function readIndex(indexName: string) {
    const indexOf = ({ name, indexes }: EntityDescription): IndexDescription => {
      const index = Object.hasOwn(indexes, indexName) ? indexes[indexName] : undefined;
      if (!index) throw invalidInput(`${name} has no index "${indexName}".`);
      return index;
    };
    const path = ({ name }: EntityDescription, fields: readonly string[], given: Values) =>
      toPath([name, 'by', indexName, ...valuesOf(fields, given)]);
    const pathOfValue = (entity: EntityDescription, given: Values) => {
      const index = indexOf(entity);
      checkFields(index, given, `${entity.name}.by.${indexName}`);
      return path(entity, index.fields, given);
    };
    const read = (given: Values, options: ListOptions = {}) => {
      const listing = listPages(options, (entity) => pathOfValue(entity, given));
      if (listing instanceof Promise) return listing;
      const readOne = async (entity: EntityDescription) => {
        const one = pathOfValue(entity, given);
        if (indexOf(entity).of === 'many') return listing;
        const query = toListQuery({ select: options.select });
        const request = { method: 'GET', path: one + query, signal: options.signal };
        return undefinedIfNotFound(send(request).then(({ text }) => JSON.parse(text)));
      };
      // Only the model says whether one entity or a list is meant, so the result is both until it is used.
      let result: Promise<unknown> | undefined;
      const settled = () => {
        result ??= run(readOne);
        return result;
      };
      return {
        ...listing,
        // biome-ignore lint/suspicious/noThenProperty: awaiting is how a caller asks for one entity
        then: (...handlers: Parameters<Promise<unknown>['then']>) => settled().then(...handlers),
        catch: (onError: (error: unknown) => unknown) => settled().catch(onError),
        finally: (onEnd: () => void) => settled().finally(onEnd),
      };
    };
    const readRange = (given: Values, options: ListOptions = {}) =>
      listPages(options, (entity) =>
        path(entity, rangeFields(indexOf(entity), given, `the index "${indexName}" of ${entity.name}`), given),
      );
    return Object.assign(read, { range: readRange });
  }

  return { list: listPages, range, readIndex };
}

function createListing(page: Listing<Values>['page'], first = Number.POSITIVE_INFINITY): Listing<Values> {
  return {
    page,
    async *[Symbol.asyncIterator]() {
      let left = first;
      for (
        let after: string | undefined, isFirst = true;
        left > 0 && (isFirst || after !== undefined);
        isFirst = false
      ) {
        const { items, next } = await page({ after, ...(left < 100 ? { top: left } : {}) });
        yield* items;
        left -= items.length;
        after = next;
      }
    },
  };
}
