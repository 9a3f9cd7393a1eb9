import { join } from 'node:path';
import pMap from 'p-map';
import { keptFor } from '../../lib/base/once.ts';
import type { Values } from '../../lib/base/values.ts';
import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { Model } from '../../lib/define/define-model.ts';
import { createEngine, type Engine } from '../../lib/engine/engine.ts';
import type { RequestContext } from '../../lib/http/route.ts';
import { createRoutes } from '../../lib/http/routes.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { createLocalKeyRing, rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { dropTable, listTables, provision } from '../../lib/storage/provision.ts';
import { FIRST_ACCOUNT, openStorage } from '../../lib/storage/storage.ts';
import { createStore } from '../../lib/store/store.ts';
import { httpClient } from './known-messages.ts';
import { createQueueWorker, type QueueWorker } from './queue-worker.ts';

/** An app in this process, on a storage account that belongs to the walk. */
export interface WalkWorld {
  readonly model: Model;
  readonly engine: Engine;
  /** The store, whose types a walk does not know. */
  readonly store: Readonly<Record<string, AnyStore>>;
  /** Handles a request of a route: for what the store lacks. */
  call(route: string, key: Values, body?: Values | Uint8Array): Promise<unknown>;
  readonly worker: QueueWorker;
  /** The errors that the queue functions logged. */
  readonly logged: readonly string[];
}

// biome-ignore lint/suspicious/noExplicitAny: the values follow from the model of the walk
type AnyStore = any;

export interface WalkStorage {
  readonly connectionString: string;
  /** The connection strings of further accounts. */
  readonly further?: readonly string[];
  /** For a file of keys, which encrypts fields. */
  readonly folder: string;
}

/** Long enough for a writer on a busy machine. */
export const TIMING = { commitWithinMs: 30_000, claimForMs: 40_000, hideIntentForSeconds: 45, settleWithinMs: 36_000 };
const CONCURRENCY = 8;

/** Returns a function that opens the model on empty storage. A new world remembers nothing of the one before. */
export async function prepareWorlds(
  model: Model,
  { connectionString, further = [], folder }: WalkStorage,
): Promise<() => Promise<WalkWorld>> {
  const keyFile = join(folder, 'walk-keys.json');
  await rotateLocalKey(keyFile);
  const keys = createLocalKeyRing(keyFile);
  const resources = () => resourcesOf(model.list, Date.now(), model);
  const connections = [connectionString, ...further];
  const accounts = connections.map((connection, index) => {
    return { name: index === 0 ? FIRST_ACCOUNT : `account${index + 1}`, connectionString: connection, httpClient };
  });
  const open = () =>
    withShapes(
      openStorage(further.length > 0 ? { accounts } : { connectionString, httpClient }, model.prefix),
      model.list,
    );
  await provision(open(), resources());
  return async () => {
    await clear(connections);
    const storage = open();
    await provision(storage, { ...resources(), queues: [], containers: [] });
    return openWorld(model, createEngine(storage, { timing: TIMING, keys, queueParts: model.queueParts }));
  };
}

/** Opens the model as a process of its own does. */
export function openWorld(model: Model, engine: Engine): WalkWorld {
  const routes = routesOf(model);
  const logged: string[] = [];
  // Warnings announce another attempt.
  const log = { warn: () => undefined, error: (text: string) => logged.push(text) };
  const store: unknown = createStore(model.list, { engine: async () => engine, record: (_, write) => write() });
  return {
    model,
    engine,
    store: store as WalkWorld['store'],
    logged,
    worker: createQueueWorker(
      { engine, entities: model.list, log },
      { lastLogged: () => logged.slice(-3).join(' | ') },
    ),
    async call(name, key, body) {
      const route = routes.get(name);
      if (!route) throw new Error(`The model has no route ${name}.`);
      const params = Object.fromEntries(Object.entries(key).map(([field, value]) => [field, String(value)]));
      const caller = { subject: 'walk', roles: model.roles, claims: {} };
      const context = {
        app: { engine, entities: model.list },
        engine,
        route,
        root: '/api',
        log,
        caller,
        params,
        record: (write: () => Promise<unknown>) => write(),
      };
      const request = {
        query: new URLSearchParams(),
        headers: new Headers({ 'content-type': 'image/png' }),
        json: async () => body,
        bytes: async () => body,
      };
      return route.handle({ ...context, ...request } as unknown as RequestContext);
    },
  };
}

const routesOf = keptFor((model: Model) => new Map(createRoutes(model).map((route) => [route.name, route])));

/**
 * Deletes all tables that have rows in one of the accounts. Messages are left to their owners, who have handled them; blobs that no row
 * refers to do no harm.
 */
async function clear(connections: readonly string[]): Promise<void> {
  const accounts = connections.map((connectionString) => openStorage({ connectionString, httpClient }));
  const lists = await Promise.all(accounts.map((account) => listTables(account, '')));
  await pMap(
    new Set(lists.flat()),
    async (name) => {
      const owners = accounts.filter((_, index) => lists[index]?.includes(name));
      const firsts = await Promise.all(owners.map((account) => account.table(name).listEntities().next()));
      if (firsts.some(({ done }) => !done)) await Promise.all(owners.map((account) => dropTable(account, name)));
    },
    { concurrency: CONCURRENCY },
  );
}
