import type { Values } from '../define/values.ts';
import type { Stored } from '../store/store-types.ts';
import type {
  BatchResult,
  CallOptions,
  CreateOptions,
  Explanation,
  Listing,
  Operation,
  OperationStatus,
  Page,
  PageOptions,
  UploadOptions,
  WriteOptions,
} from './client-types.ts';
import { type Core, isNotFound, toPath, valuesOf } from './core.ts';
import { type ClientErrorCode, invalidInput, type Problem, RowkeyClientError } from './errors.ts';
import type { EntityDescription, IndexDescription } from './model-description.ts';
import { filters, type ListQuery, toListQuery, toQuery } from './query.ts';
import { pause, type Reply, type Request } from './transport.ts';

interface ListOptions extends ListQuery, CallOptions {
  readonly first?: number;
}

interface GetOptions extends CallOptions {
  readonly include?: readonly string[];
  readonly select?: readonly string[];
  readonly where?: Readonly<Record<string, Values | undefined>>;
}

/** Begins the position of a page that storage returned. The API has its own positions. */
const OF_STORAGE = 'storage ';

interface ChangeOptions extends WriteOptions {
  readonly return?: 'minimal';
}

/** Leaves a call that explains, with the explanation. */
class Explained {
  readonly explanation: Explanation;
  constructor(explanation: Explanation) {
    this.explanation = explanation;
  }
}

const FIRST_POLL_MS = 200;
const LONGEST_POLL_MS = 5_000;

/** The calls of one entity. With `explains`, each returns its explanation. Its types are those of client-types.ts. */
export function createEntityClient(core: Core, name: string, explains: boolean) {
  /** Runs a call. The errors of an entity have its name. */
  async function run<Result>(work: (entity: EntityDescription) => Promise<Result>): Promise<Result | Explanation> {
    try {
      return await work(await core.entity(name));
    } catch (error) {
      if (error instanceof Explained) return error.explanation;
      if (error instanceof RowkeyClientError) error.entity = name;
      throw error;
    }
  }

  async function send(request: Request): Promise<Reply> {
    if (!explains) return core.send(request);
    const path = `${request.path}${request.path.includes('?') ? '&' : '?'}explain=true`;
    throw new Explained(JSON.parse((await core.send({ ...request, path })).text));
  }

  const pathOf = ({ key }: EntityDescription, values: Values) => toPath([name, ...valuesOf(key.fields, values)]);

  async function get(
    key: Values,
    { include = [], select, where = {}, signal }: GetOptions = {},
    entity: EntityDescription,
  ) {
    const path = pathOf(entity, key);
    if (entity.series) {
      const found = explains ? await send({ method: 'GET', path, signal }) : await core.read(path, '', signal);
      // Increments change it all the time, so only an ETag that the caller gives is a precondition.
      core.noteEtag(path, null);
      if (!found || !('values' in found)) return undefined;
      const { counts, ...values } = found.values;
      return { etag: found.etag, values, counts };
    }
    const conditions = include.flatMap((child) => filters(where[child], `${child}.`));
    const included = include.length > 0 ? include.join(',') : undefined;
    const query = toQuery([['include', included], ['select', select?.join(',')], ...conditions]);
    if (included || explains) return toStored(path, await send({ method: 'GET', path: path + query, signal }));
    const isDirect = core.directNames.includes(name);
    const own = isDirect ? await (await core.direct()).read(name, entity, { key, select, signal }) : undefined;
    if (own) core.noteEtag(path, own.etag);
    return own ?? core.read(path, query, signal);
  }

  function toStored(path: string, { headers, text }: Reply): Stored<Values> {
    const etag = headers.get('etag');
    core.noteEtag(path, etag);
    return { etag: etag ?? '', values: text === '' ? {} : JSON.parse(text) };
  }

  /** The entity that was in the way of a write, if the caller may read it. */
  const readCurrent = (path: string, signal: AbortSignal | undefined) =>
    core.send({ method: 'GET', path, signal }).then(
      ({ headers, text }) => ({ etag: headers.get('etag') ?? '', values: JSON.parse(text) }),
      () => undefined,
    );

  async function change(
    method: 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    { body, fields = [] }: { readonly body?: Values; readonly fields?: readonly string[] },
    { ifNoneMatch, ifMatch = ifNoneMatch === undefined ? core.lastEtag(path) : undefined, ...options }: ChangeOptions,
  ): Promise<Stored<Values> | undefined> {
    const { signal } = options;
    const prefer = options.return && `return=${options.return}`;
    const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch, prefer };
    core.forget(path);
    try {
      const reply = await send({ method, path, body, headers, signal });
      if (method !== 'DELETE') return toStored(path, reply);
    } catch (error) {
      if (!(error instanceof RowkeyClientError)) throw error;
      const isGone = method === 'DELETE' && error.isRepeated && error.code === 'not-found';
      if (error.code === 'etag-mismatch') error.current = await readCurrent(path, signal);
      // The reply of an attempt was lost. If the entity is as the request wanted, the attempt was successful.
      const { current } = error as RowkeyClientError<Values>;
      if (error.isRepeated && body && current && isAs(body, current.values, fields)) {
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

  const replace = (entity: EntityDescription, path: string, body: Values, options: WriteOptions) => {
    const isSet = ([field, { derived, kept, generated }]: (typeof described)[number]) =>
      !derived && !kept && !(generated && body[field] === undefined) && !entity.key.fields.includes(field);
    const described = Object.entries(entity.fields);
    const fields = described.filter(isSet).map(([field]) => field);
    return change('PUT', path, { body, fields }, options);
  };

  async function create(values: Values, { idempotencyKey, signal }: CreateOptions, entity: EntityDescription) {
    const headers = { 'idempotency-key': idempotencyKey };
    try {
      const reply = await send({ method: 'POST', path: `/${name}`, body: values, headers, signal });
      return toStored(pathOf(entity, JSON.parse(reply.text)), reply);
    } catch (error) {
      const isTaken = error instanceof RowkeyClientError && error.code === 'duplicate-key';
      if (isTaken && hasKey(entity, values)) error.current = await readCurrent(pathOf(entity, values), signal);
      throw error;
    }
  }

  async function batch(
    actions: readonly Readonly<Record<string, Values>>[],
    { atomic, signal }: CallOptions & { readonly atomic?: boolean },
    entity: EntityDescription,
  ) {
    const body = { actions, atomic };
    const reply = await send({ method: 'POST', path: `/${name}/batch`, body, signal, repeat: 'limited' });
    const { results }: { results: readonly ActionResult[] } = JSON.parse(reply.text);
    return results.map((result, index) => {
      const [values = {}] = Object.values(actions[index] ?? {});
      if (hasKey(entity, values)) {
        core.forget(pathOf(entity, values));
        core.noteEtag(pathOf(entity, values), result.etag ?? null);
      }
      return toBatchResult(result);
    });
  }

  /** A list of which each page is one request. In a call that explains, the first page. */
  function list(
    { first, signal, ...query }: ListOptions,
    pathOfList: (entity: EntityDescription) => string,
    own?: (entity: EntityDescription, options: PageOptions) => Promise<Page<Values> | undefined>,
  ) {
    const readPage = async (entity: EntityDescription, options: PageOptions): Promise<Page<Values>> => {
      const { top, after } = options;
      const ownPage = after === undefined || after.startsWith(OF_STORAGE) ? await own?.(entity, options) : undefined;
      if (ownPage) return ownPage;
      const path = pathOfList(entity) + toListQuery({ ...query, top, continuation: after });
      const { text, headers } = await send({ method: 'GET', path, signal: options.signal });
      const [, next] = /[?&]continuation=([^&>]*)/.exec(headers.get('link') ?? '') ?? [];
      return { items: JSON.parse(text).items, next: next && decodeURIComponent(next) };
    };
    const page = ({ top, ...rest }: PageOptions = {}) => {
      const most = first === undefined ? top : Math.min(first, top ?? 100, 1_000);
      return run((entity) => readPage(entity, { signal, ...rest, ...(most === undefined ? {} : { top: most }) }));
    };
    return explains ? page() : createListing(page as Listing<Values>['page'], first);
  }

  function range(partition: Values, options: ListOptions = {}) {
    const { from, to, where, select } = options;
    const isWhole = [from, to, where].every((bound) => bound === undefined);
    const isDirect = isWhole && !explains && core.directNames.includes(name);
    const pathOfList = ({ key }: EntityDescription) => {
      const { fields } = key.partition;
      if (fields.length === key.fields.length) throw invalidInput(`A partition of ${name} has one entity: use get.`);
      return toPath([name, ...valuesOf(fields, partition)]);
    };
    return list(options, pathOfList, async (entity, { top, after, signal }) => {
      const read = { key: partition, select, top, after: after?.slice(OF_STORAGE.length), signal };
      const page = isDirect ? await (await core.direct()).page(name, entity, read) : undefined;
      return page && { ...page, next: page.next && OF_STORAGE + page.next };
    });
  }

  function indexReader(indexName: string) {
    const indexOf = ({ indexes }: EntityDescription): IndexDescription => {
      const index = Object.hasOwn(indexes, indexName) ? indexes[indexName] : undefined;
      if (!index) throw invalidInput(`${name} has no index "${indexName}".`);
      return index;
    };
    const path = (fields: readonly string[], given: Values) =>
      toPath([name, 'by', indexName, ...valuesOf(fields, given)]);
    const read = (given: Values, options: ListOptions = {}) => {
      const listing = list(options, (entity) => path(indexOf(entity).fields, given));
      if (listing instanceof Promise) return listing;
      const readOne = async (entity: EntityDescription) => {
        const { of, fields } = indexOf(entity);
        if (of === 'many') return listing;
        const query = toListQuery({ select: options.select });
        const one = { method: 'GET', path: path(fields, given) + query, signal: options.signal };
        return undefinedIfNotFound(send(one).then(({ text }) => JSON.parse(text)));
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
    const readRange = (given: Values, options: ListOptions = {}) => {
      const names = Object.keys(given).filter((field) => given[field] !== undefined);
      return list(options, (entity) => {
        const { fields, ranges } = indexOf(entity);
        const start = ranges.find(
          (one) => one.fields.length === names.length && one.fields.every((field) => names.includes(field)),
        );
        if (start && start.fields.length <= fields.length) return path(start.fields, given);
        const accepted = ranges.map((one) => one.fields.join(', ') || 'none').join('; ');
        throw invalidInput(`A range over the index "${indexName}" of ${name} begins with other fields: ${accepted}.`);
      });
    };
    return Object.assign(read, { range: readRange });
  }

  async function transfer(
    kind: 'archive' | 'move',
    path: string,
    { to, idempotencyKey, signal }: CreateOptions & { readonly to?: Values },
  ): Promise<Operation> {
    const headers = { 'idempotency-key': idempotencyKey };
    const accepted = await send({ method: 'POST', path: `${path}/${kind}`, body: to, headers, signal });
    const { operationId } = JSON.parse(accepted.text);
    const status = async (options: CallOptions = {}): Promise<OperationStatus> => {
      const reply = await core.send({ method: 'GET', path: `${path}/${kind}/${operationId}`, signal: options.signal });
      return JSON.parse(reply.text);
    };
    const done = async (options: CallOptions = {}): Promise<OperationStatus> => {
      for (let wait = FIRST_POLL_MS; ; wait = Math.min(wait * 1.5, LONGEST_POLL_MS)) {
        const current = await status(options);
        if (current.status === 'failed')
          throw new RowkeyClientError('operation-failed', current.reason ?? `The ${kind} failed.`);
        if (current.status === 'succeeded') {
          core.forget(path);
          core.noteEtag(path, null);
          return current;
        }
        await pause(wait, options.signal);
      }
    };
    return { operationId, status, done };
  }

  function fileClient(field: string) {
    const pathOfFile = (entity: EntityDescription, key: Values) => `${pathOf(entity, key)}${toPath([field])}`;
    return {
      get: (key: Values, { signal }: CallOptions = {}) =>
        run((entity) =>
          undefinedIfNotFound(
            send({ method: 'GET', path: pathOfFile(entity, key), signal }).then(({ blob, headers }) => ({
              blob,
              etag: headers.get('etag') ?? '',
            })),
          ),
        ),
      put: (key: Values, file: Blob, options: UploadOptions = {}) =>
        run(async (entity) => {
          core.forget(pathOf(entity, key));
          const reply = await putFile(pathOfFile(entity, key), file, options);
          return reply.text === '' ? undefined : JSON.parse(reply.text);
        }),
      delete: (key: Values, { ifMatch, ifNoneMatch, signal }: WriteOptions = {}) =>
        run(async (entity) => {
          core.forget(pathOf(entity, key));
          const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
          await send({ method: 'DELETE', path: pathOfFile(entity, key), headers, signal });
        }),
    };
  }

  async function putFile(path: string, file: Blob, options: UploadOptions): Promise<Reply> {
    const { ifMatch, ifNoneMatch, onProgress, signal, type = file.type } = options;
    if (ifMatch === undefined && ifNoneMatch === undefined) {
      const body = { type, bytes: file.size };
      const { uploadId, url, headers } = JSON.parse(
        (await send({ method: 'POST', path: `${path}/uploads`, body, signal })).text,
      );
      const isSent = await import('./upload.ts')
        .then(({ uploadToStorage }) => uploadToStorage(core.transport, { url, headers, file, onProgress, signal }))
        .then(
          () => true,
          (error: unknown) => {
            if (signal?.aborted) throw error;
            return false;
          },
        );
      if (isSent) return send({ method: 'POST', path: `${path}/uploads/${uploadId}`, signal });
    }
    const headers = { 'content-type': type, 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
    const reply = await send({ method: 'PUT', path, data: file, headers, signal });
    onProgress?.(file.size, file.size);
    return reply;
  }

  return {
    get: (key: Values, options?: GetOptions) => run((entity) => undefinedIfNotFound(get(key, options, entity))),
    create: (values: Values, options: CreateOptions = {}) => run((entity) => create(values, options, entity)),
    put: (key: Values, values: Values, options: WriteOptions = {}) =>
      run((entity) => replace(entity, pathOf(entity, key), values, options)),
    replace: (key: Values, values: Values, options: WriteOptions = {}) =>
      run((entity) => {
        const path = pathOf(entity, key);
        return replace(entity, path, values, { ifMatch: core.lastEtag(path) ?? '*', ...options });
      }),
    update: (key: Values, patch: Values, options: ChangeOptions = {}) =>
      run((entity) => change('PATCH', pathOf(entity, key), { body: patch, fields: Object.keys(patch) }, options)),
    delete: (key: Values, options: WriteOptions = {}) =>
      run((entity) => change('DELETE', pathOf(entity, key), {}, options)),
    batch: (actions: Parameters<typeof batch>[0], options: CallOptions = {}) =>
      run((entity) => batch(actions, options, entity)),
    range,
    by: byName(indexReader),
    archive: (key: Values, options: CreateOptions = {}) =>
      run((entity) => transfer('archive', pathOf(entity, key), options)),
    move: (key: Values, to: Values, options: CreateOptions = {}) =>
      run((entity) => transfer('move', pathOf(entity, key), { ...options, to })),
    files: byName(fileClient),
    grant: ({ permissions }: { readonly permissions?: string } = {}) =>
      run(async () => (await core.direct()).grant(name, permissions)),
    isConflict: (error: unknown) =>
      error instanceof RowkeyClientError && error.entity === name && /^(etag-mismatch|duplicate-key)$/.test(error.code),
    set: (key: Values, counts: Values, { ifMatch, ifNoneMatch, signal }: WriteOptions = {}) =>
      run(async (entity) => {
        const path = pathOf(entity, key);
        core.forget(path);
        const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
        await send({ method: 'PATCH', path, body: { counts }, headers, signal });
      }),
    increment: (key: Values, slot: number, by: number, { idempotencyKey, signal }: CreateOptions = {}) =>
      run(async (entity) => {
        const path = pathOf(entity, key);
        core.forget(path);
        const headers = { 'idempotency-key': idempotencyKey };
        const { text } = await send({
          method: 'POST',
          path: `${path}/${slot}/increments`,
          body: { by },
          headers,
          signal,
        });
        return text === '' ? undefined : JSON.parse(text).count;
      }),
    span: (key: Values, { from, to }: Values, { signal }: CallOptions = {}) =>
      run(async (entity) => {
        const fields = entity.key.fields.filter((field) => field in key);
        const path = toPath([name, ...valuesOf(fields, key)]) + toQuery(Object.entries({ from, to }));
        return JSON.parse((await send({ method: 'GET', path, signal })).text).items;
      }),
  };
}

/** Creates the member of each name at its first use: at that time the model may not be known. */
export function byName<Member>(create: (name: string) => Member, own: Readonly<Record<string, unknown>> = {}): unknown {
  const members = new Map<string, unknown>(Object.entries(own));
  return new Proxy(Object.freeze({}), {
    get(_, name) {
      // An object with `then` would be taken for a promise.
      if (typeof name !== 'string' || name === 'then') return undefined;
      if (!members.has(name)) members.set(name, create(name));
      return members.get(name);
    },
  });
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

function undefinedIfNotFound<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    return undefined;
  });
}

function hasKey({ key }: EntityDescription, values: Values): boolean {
  return key.fields.every((field) => values[field] !== undefined);
}

/** True if the fields have the wanted values; null stands for none. */
function isAs(wanted: Values, values: Values, fields: readonly string[]): boolean {
  return fields.every((field) => JSON.stringify(wanted[field] ?? null) === JSON.stringify(values[field] ?? null));
}

interface ActionResult {
  readonly status: number;
  readonly etag?: string;
  readonly problem?: Problem;
}

const OUTCOMES = { 201: 'created', 200: 'stored', 304: 'unchanged', 204: 'deleted' } as const;

function toBatchResult({ status, problem }: ActionResult): BatchResult {
  if (!problem) return { outcome: OUTCOMES[status as keyof typeof OUTCOMES] };
  const { code, detail } = problem;
  return { outcome: 'failed', error: new RowkeyClientError(code as ClientErrorCode, detail, { status, problem }) };
}
