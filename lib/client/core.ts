import type { Values } from '../define/values.ts';
import type { Stored } from '../store/store-types.ts';
import type { Direct } from './direct.ts';
import { invalidInput, RowkeyClientError } from './errors.ts';
import type { EntityDescription, ModelDescription } from './model-description.ts';
import { createTransport, type Reply, type Request, type Transport, type TransportOptions } from './transport.ts';

/** What the clients of all entities share: the model, the cache, the last seen ETags, the grants. */

export interface CoreOptions extends TransportOptions {
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
  /** With the grants of the current token. */
  direct(): Promise<Direct>;
  readonly directNames: readonly string[];
  /** Throws `invalid-input` for a name that the model does not have. */
  entity(name: string): Promise<EntityDescription>;
  send(request: Request): Promise<Reply>;
  /** Reads an entity, from the cache while it is fresh. Undefined if there is none. */
  read(path: string, query: string, signal: AbortSignal | undefined): Promise<Stored<Values> | undefined>;
  /** The ETag that this client saw last. */
  lastEtag(path: string): string | undefined;
  noteEtag(path: string, etag: string | null): void;
  /** Removes an entity from the cache before it is written. */
  forget(path: string): void;
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
  let direct: Promise<Direct> | undefined;
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
    async direct() {
      await transport.checkToken();
      direct ??= import('./direct.ts').then(
        ({ createDirect }) => createDirect(transport),
        (cause) => {
          direct = undefined;
          throw new RowkeyClientError('network', 'A module of the client could not be loaded.', { cause });
        },
      );
      return direct;
    },
    directNames: options.direct ?? [],
    async entity(name) {
      const { entities } = await loadModel();
      const entity = Object.hasOwn(entities, name) ? entities[name] : undefined;
      if (!entity) throw invalidInput(`The model of the API has no entity "${name}".`);
      return entity;
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
      remember(cache, path, { etag, text, freshUntil: Date.now() + Number(age) * 1_000 }, cacheSize);
      noteEtag(entityPath, etag);
      return { etag, values: JSON.parse(text) };
    },
    lastEtag: (path) => etags.get(path),
    noteEtag,
    forget(path) {
      for (const key of cache.keys()) if (key === path || key.startsWith(`${path}?`)) cache.delete(key);
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

export function isNotFound(error: unknown): boolean {
  return error instanceof RowkeyClientError && error.code === 'not-found';
}

/** A path below the API root. Throws `invalid-input` for a value that no path can have. */
export function toPath(parts: readonly unknown[]): string {
  return parts
    .map((part) => {
      const text = String(part);
      // A browser would resolve dots, and the request would reach another entity.
      if (text === '' || text === '.' || text === '..') throw invalidInput(`A key field cannot be "${text}".`);
      return `/${encodeURIComponent(text)}`;
    })
    .join('');
}

/** The values of fields in their order. Throws `invalid-input` if one is missing. */
export function valuesOf(fields: readonly string[], given: Values): unknown[] {
  return fields.map((field) => {
    const value = given[field];
    if (value === undefined || value === null) throw invalidInput(`The key field "${field}" is missing.`);
    return value;
  });
}
