import type { Stored, Values } from '../base/values.ts';
import type { BatchActions, BatchOptions } from './batches.ts';
import { byName } from './by-name.ts';
import type { CallOptions, CreateOptions, DeleteRange, UploadOptions, WriteOptions } from './client-types.ts';
import { type Core, load } from './core.ts';
import { createEntityCalls, type ListOptions } from './entity-calls.ts';
import { RowkeyClientError } from './errors.ts';
import { createLister, undefinedIfNotFound } from './lists.ts';
import type { EntityDescription } from './model-description.ts';
import { hasKey, pathOf } from './paths.ts';
import { filters, toQuery } from './query-string.ts';
import type { Reply } from './transport.ts';

interface GetOptions extends CallOptions {
  readonly include?: readonly string[];
  readonly select?: readonly string[];
  readonly where?: Readonly<Record<string, Values | undefined>>;
}

interface ChangeOptions extends WriteOptions {
  readonly return?: 'minimal';
}

interface Change {
  readonly method: 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: Values;
  /** The fields that tell whether an entity is as the change wants it. */
  readonly fields?: readonly string[];
}

const loadBatches = () => load(import('./batches.ts'));
const loadFiles = () => load(import('./files.ts'));
const loadSeries = () => load(import('./series.ts'));
const loadTotals = () => load(import('./totals.ts'));
const loadTransfers = () => load(import('./transfers.ts'));

/**
 * The calls of one entity, or of its archive. With `explains`, each returns its explanation. Its types are those of
 * client-types.ts.
 */
export function createEntityClient(core: Core, name: string, explains: boolean, isArchive = false) {
  const base = createEntityCalls(core, { name, explains, isArchive });
  const { run, send } = base;
  const isDirect = core.directNames.includes(name) && !isArchive;
  const { list, range, readIndex } = createLister(base, { explains, isDirect });
  const calls = { ...base, list };

  async function get(
    key: Values,
    { include = [], select, where = {}, signal }: GetOptions = {},
    entity: EntityDescription,
  ) {
    const path = pathOf(entity, key);
    if (entity.series && !explains) return (await loadSeries()).readCounts(calls, path, { signal });
    const conditions = include.flatMap((child) => filters(where[child], `${child}.`));
    const included = include.length > 0 ? include.join(',') : undefined;
    const query = toQuery([['include', included], ['select', select?.join(',')], ...conditions]);
    if (included || explains) return toStored(path, await send({ method: 'GET', path: path + query, signal }));
    const own = isDirect ? await (await core.direct()).read(name, entity, { key, select, signal }) : undefined;
    if (own) core.noteEtag(path, own.etag);
    return own ?? core.read(path, query, signal);
  }

  function toStored(path: string, { headers, text }: Reply): Stored<Values> {
    const etag = headers.get('etag');
    core.noteEtag(path, etag);
    return { etag: etag ?? '', values: text === '' ? {} : JSON.parse(text) };
  }

  /** The entity that was in the way of a write, with its groups of fields, if the caller may read it. */
  const readCurrent = (entity: EntityDescription, path: string, signal: AbortSignal | undefined) => {
    const groups = Object.keys(entity.split).join(',');
    const query = toQuery([['include', groups || undefined]]);
    return core.send({ method: 'GET', path: path + query, signal }).then(
      ({ headers, text }) => ({ etag: headers.get('etag') ?? '', values: JSON.parse(text) }),
      () => undefined,
    );
  };

  async function change(
    entity: EntityDescription,
    path: string,
    { method, body, fields = [] }: Change,
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
      if (error.code === 'etag-mismatch') error.current = await readCurrent(entity, path, signal);
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
    return change(entity, path, { method: 'PUT', body, fields }, options);
  };

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

  const fileClient = (field: string) => ({
    get: (key: Values, options: CallOptions = {}) =>
      run(async (entity) =>
        undefinedIfNotFound((await loadFiles()).getFile(calls, pathOf(entity, key, field), options)),
      ),
    put: (key: Values, file: Blob, options: UploadOptions = {}) =>
      run(async (entity) => (await loadFiles()).putFile(calls, entity, { key, field, file }, options)),
    delete: (key: Values, options: WriteOptions = {}) =>
      run(async (entity) => (await loadFiles()).deleteFile(calls, entity, { key, field }, options)),
  });

  const totalClient = (total: string) => ({
    get: (group: Values, options: CallOptions = {}) =>
      run(async (entity) => (await loadTotals()).readTotal(calls, entity, total, group, options)),
    range: (given: Values, options: ListOptions = {}) =>
      list(options, async (entity) => (await loadTotals()).totalRangePath(calls, entity, total, given)),
  });

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
      run((entity) =>
        change(entity, pathOf(entity, key), { method: 'PATCH', body: patch, fields: Object.keys(patch) }, options),
      ),
    delete: (key: Values, options: WriteOptions = {}) =>
      run((entity) => change(entity, pathOf(entity, key), { method: 'DELETE' }, options)),
    range,
    list: (options: ListOptions = {}) => list(options, () => `/${name}`),
    by: byName(readIndex),
    isConflict: (error: unknown) =>
      error instanceof RowkeyClientError && error.entity === name && /^(etag-mismatch|duplicate-key)$/.test(error.code),
    grant: ({ permissions }: { readonly permissions?: string } = {}) =>
      run(async () => (await core.direct()).grant(name, permissions)),
    // The calls below load a module.
    batch: (actions: BatchActions, options: BatchOptions = {}) =>
      run(async (entity) => (await loadBatches()).sendBatch(calls, entity, actions, options)),
    deleteRange: (partition: Values, bounds: DeleteRange) =>
      run(async (entity) => (await loadBatches()).deleteRange(calls, entity, partition, bounds)),
    archive: (key: Values, options: CreateOptions = {}) =>
      run(async (entity) => (await loadTransfers()).transfer(calls, entity, 'archive', key, options)),
    move: (key: Values, to: Values, options: CreateOptions = {}) =>
      run(async (entity) => (await loadTransfers()).transfer(calls, entity, 'move', key, { ...options, to })),
    files: byName(fileClient),
    totals: byName(totalClient),
    set: (key: Values, counts: Values, options: WriteOptions = {}) =>
      run(async (entity) => (await loadSeries()).setCounts(calls, pathOf(entity, key), counts, options)),
    increment: (key: Values, slot: number, by: number, options: CreateOptions = {}) =>
      run(async (entity) => (await loadSeries()).increment(calls, entity, { key, slot, by }, options)),
    span: (key: Values, bounds: Values, options: CallOptions = {}) =>
      run(async (entity) => (await loadSeries()).readSpan(calls, entity, key, { ...bounds, ...options })),
    get archived(): unknown {
      return createEntityClient(core, name, explains, true);
    },
  };
}

/** True if the fields have the wanted values; null stands for none. */
function isAs(wanted: Values, values: Values, fields: readonly string[]): boolean {
  return fields.every((field) => JSON.stringify(wanted[field] ?? null) === JSON.stringify(values[field] ?? null));
}
