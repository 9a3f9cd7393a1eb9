import type { Stored, Values } from '../base/values.ts';
import type { ModelDescription } from '../define/declaration/model-description.ts';
import type { Explanation, Listing } from './client-types.ts';
import type { Direct } from './direct.ts';
import { invalidInput, isNotFound, load, RowkeyClientError, toProblemError, undefinedIfNotFound } from './errors.ts';
import {
  checkFields,
  type EntityDescription,
  hasKey,
  type ListQuery,
  partitionPath,
  pathOf,
  rangeFields,
  toPath,
  toQuery,
  valuesOf,
} from './paths.ts';
import {
  createTransport,
  nextOf,
  pause,
  type Reply,
  type Request,
  type Transport,
  type TransportOptions,
} from './transport.ts';

/** What the clients of all entities share: the model, the cache, the last seen ETags, the grants. */

interface CoreOptions extends TransportOptions {
  /** The most entities to keep for revalidation. Default: 100; 0 turns the cache off. */
  readonly cacheSize?: number | undefined;
  /** Entities whose own rows are read directly from storage. Default: none. */
  readonly direct?: readonly string[] | undefined;
}

interface Kept {
  readonly etag: string;
  /** Text, so that no caller can change what another one gets. */
  readonly text: string;
  /** From `max-age`. */
  readonly freshUntil: number;
}

export interface Core {
  readonly transport: Transport;
  readonly tools: Tools;
  /** With the grants of the current token. */
  direct(): Promise<Direct>;
  readonly directNames: readonly string[];
  /** What the API says of its model. */
  model(): Promise<ModelDescription>;
  /** The entity or its archive. Throws `invalid-input` for a name that the model does not have. */
  entity(name: string, isArchive?: boolean): Promise<EntityDescription>;
  send(request: Request): Promise<Reply>;
  /** Reads an entity, from the cache while it is fresh. Undefined if there is none. */
  read(path: string, query: string, signal: AbortSignal | undefined): Promise<Stored<Values> | undefined>;
  /** The ETag that this client saw last. */
  lastEtag(path: string): string | undefined;
  noteEtag(path: string, etag: string | null): void;
  /** Removes an entity from the cache before it is written. */
  forget(path: string): void;
  /** Removes all entities from the cache. */
  forgetAll(): void;
  /** Removes all entities of a partition from the cache, with their ETags. */
  forgetPartition(path: string): void;
}

/** What the calls of one entity share with the modules that are loaded at their first use, because most pages do without. */
export interface EntityCalls {
  readonly core: Core;
  /** Runs a call. The errors of an entity have its name. */
  run<Result>(work: (entity: EntityDescription) => Promise<Result>): Promise<Result | Explanation>;
  /** Sends a request. In a call that explains, ends the call with the explanation. */
  send(request: Request): Promise<Reply>;
  /** A list of which each page is one request. In a call that explains, the first page. */
  list(
    options: ListOptions,
    pathOfList: (entity: EntityDescription) => string | Promise<string>,
  ): Listing<Values> | Promise<unknown>;
}

export interface ListOptions extends ListQuery {
  readonly first?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const CACHE_SIZE = 100;
/** An ETag takes little memory, and a write without it would not notice other changes. */
const MAX_ETAGS = 10_000;

export function createCore(options: CoreOptions): Core {
  const { cacheSize = CACHE_SIZE } = options;
  const cache = new Map<string, Kept>();
  const etags = new Map<string, string>();
  const transport = createTransport(options, () => {
    cache.clear();
    direct = undefined;
  });
  let direct: Direct | undefined;
  let model: Promise<ModelDescription> | undefined;

  function loadModel(): Promise<ModelDescription> {
    model ??= transport.send({ method: 'GET', path: '/model' }).then(
      ({ text }) => JSON.parse(text),
      (error) => {
        model = undefined;
        throw error;
      },
    );
    return model;
  }

  function noteEtag(path: string, etag: string | null): void {
    if (etag === null) etags.delete(path);
    else remember(etags, path, etag, MAX_ETAGS);
  }

  return {
    transport,
    tools,
    async direct() {
      await transport.checkToken();
      const module = await load(import('./direct.ts'));
      direct ??= module.createDirect(transport);
      return direct;
    },
    directNames: options.direct ?? [],
    model: loadModel,
    async entity(name, isArchive = false) {
      const { entities } = await loadModel();
      const find = (wanted: string): EntityDescription | undefined => {
        const found = Object.hasOwn(entities, wanted) ? entities[wanted] : undefined;
        return found && { ...found, name: wanted };
      };
      const entity = find(name);
      if (!entity) throw invalidInput(`The model of the API has no entity "${name}".`);
      if (!isArchive) return entity;
      const archive = find(entity.archive ?? '');
      if (!archive) throw invalidInput(`${name} has no archive.`);
      return archive;
    },
    send: transport.send,
    async read(entityPath, query, signal) {
      const path = entityPath + query;
      const isFresh = () => (cache.get(path)?.freshUntil ?? 0) > Date.now();
      // Another user may have signed in.
      if (isFresh()) await transport.checkToken();
      const kept = cache.get(path);
      if (kept && isFresh()) {
        transport.report({ method: 'GET', path, status: 200, transactions: 0, milliseconds: 0, way: 'cache' });
        return { etag: kept.etag, values: JSON.parse(kept.text) };
      }
      const headers = { 'if-none-match': kept?.etag };
      const reply = await transport.send({ method: 'GET', path, headers, signal }).catch((error: unknown) => {
        cache.delete(path);
        if (!isNotFound(error)) throw error;
        etags.delete(entityPath);
      });
      if (!reply) return undefined;
      const text = reply.status === 304 && kept ? kept.text : reply.text;
      const etag = reply.headers.get('etag') ?? '';
      const [, age = 0] = /max-age=(\d+)/.exec(reply.headers.get('cache-control') ?? '') ?? [];
      const entry = { etag, text, freshUntil: Date.now() + Number(age) * 1_000 };
      if (reply.isCurrent?.() ?? true) remember(cache, path, entry, cacheSize);
      noteEtag(entityPath, etag);
      return { etag, values: JSON.parse(text) };
    },
    lastEtag: (path) => etags.get(path),
    noteEtag,
    forget(path) {
      for (const key of cache.keys()) if (key === path || key.startsWith(`${path}?`)) cache.delete(key);
    },
    forgetAll: () => cache.clear(),
    forgetPartition(path) {
      for (const map of [cache, etags]) for (const key of map.keys()) if (key.startsWith(`${path}/`)) map.delete(key);
    },
  };
}

/** Adds the newest entry, and removes the oldest one beyond the limit. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value, limit: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= limit) return;
    map.delete(oldest);
  }
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

/**
 * What the modules call that are loaded at first use. They import types only: with other imports, a bundler would split the
 * client into many small files that every page loads.
 */
const tools = {
  byName,
  checkFields,
  hasKey,
  invalidInput,
  nextOf,
  partitionPath,
  pathOf,
  pause,
  rangeFields,
  RowkeyClientError,
  toPath,
  toProblemError,
  toQuery,
  undefinedIfNotFound,
  valuesOf,
};

export type Tools = typeof tools;
