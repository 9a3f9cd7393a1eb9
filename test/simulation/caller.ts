import { createClient, RowkeyClientError } from '../../lib/client/index.ts';
import type { Values } from '../../lib/index.ts';
import type { Entity } from '../kit/define.ts';
// Loaded now, because the client would read them from files when it needs them first.
import '../../lib/client/batches.ts';
import '../../lib/client/direct.ts';
import '../../lib/client/files.ts';
import '../../lib/client/query.ts';
import '../../lib/client/series.ts';
import '../../lib/client/totals.ts';
import '../../lib/client/transfers.ts';
import { PNG } from '../../local/walk/png.ts';
import type { Step } from '../../local/walk/steps.ts';
import type { Chance } from './world/chance.ts';
import { currentChance } from './world/virtual-world.ts';

/** A caller of the API, who uses the typed client. */

export interface Outcome {
  /** `ok`, the code of the error, or `unknown` if the write may have been executed, or be executed yet. */
  readonly code: string;
  /** How often the client has sent the request. */
  readonly sent: number;
  readonly values?: Values | undefined;
  /** The end of a grant. */
  readonly until?: string;
  /** Of a list. */
  readonly items?: readonly Values[];
  /** Where the next page begins. */
  readonly next?: string | undefined;
  /** The version that was read or written. */
  readonly etag?: string | undefined;
  /** The version that a change requires. */
  readonly ifMatch?: string | undefined;
  /** Of each action of a batch. */
  readonly parts?: readonly string[];
  readonly message?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: the values follow from the model of the seed
type AnyCalls = any;

export interface Caller {
  write(entity: Entity, step: Step): Promise<Outcome>;
  read(entity: Entity, key: Values): Promise<Outcome>;
  /** Asks for a new grant of the caller's own row. */
  grant(entity: Entity): Promise<Outcome>;
  /** All entities of a partition, by pages. */
  list(entity: Entity, partition: Values): Promise<Outcome>;
  /** A page of one entity of a partition. */
  page(entity: Entity, partition: Values, after?: string): Promise<Outcome>;
  /** Creates entities of one partition in one transaction. */
  transact(actions: readonly Readonly<Record<string, { readonly create: Values }>>[]): Promise<Outcome>;
}

/** Errors after which a write may have been executed. */
const UNKNOWN = new Set(['network', 'storage-unavailable', 'internal', 'unexpected-response']);
const PAGE = 3;
const URL = 'http://localhost/api';

export function createCaller(token: string, fetch: typeof globalThis.fetch): Caller {
  // Several operations run concurrently, each with random numbers of its own.
  const sent = new WeakMap<Chance, number>();
  const required = new WeakMap<Chance, string>();
  const counting: typeof globalThis.fetch = (input, init) => {
    const ifMatch = new Headers(init?.headers).get('if-match');
    if (init?.method !== 'GET') {
      sent.set(currentChance(), countSent() + 1);
      if (ifMatch !== null && ifMatch !== '*') required.set(currentChance(), ifMatch);
    }
    return fetch(input, init);
  };
  const countSent = () => sent.get(currentChance()) ?? 0;
  const client = createClient({ url: URL, token, fetch: counting, cacheSize: 0 }) as AnyCalls;

  async function outcomeOf(work: () => Promise<Partial<Outcome> | undefined>): Promise<Outcome> {
    try {
      const done = await work();
      return { code: 'ok', sent: countSent(), ifMatch: required.get(currentChance()), ...done };
    } catch (error) {
      if (!(error instanceof RowkeyClientError)) throw error;
      const code = UNKNOWN.has(error.code) ? 'unknown' : error.code;
      const ifMatch = required.get(currentChance());
      return { code, sent: countSent(), ifMatch, message: `${error.code}: ${error.message}` };
    }
  }

  return {
    grant: (entity) =>
      outcomeOf(async () => {
        // The typed client keeps a grant, and so does a process.
        const body = JSON.stringify({ entity: entity.name, scope: 'own', permissions: 'r', renew: true });
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
        const response = await counting(`${URL}/grants`, { method: 'POST', headers, body }).catch(() => undefined);
        if (!response?.ok) return { code: response ? `status ${response.status}` : 'unknown' };
        return { until: Object(await response.json()).expiresAt };
      }),
    write: (entity, step) => outcomeOf(() => perform(client, entity, step)),
    list: (entity, partition) =>
      outcomeOf(async () => ({ items: await Array.fromAsync(client[entity.name].range(partition, { top: PAGE })) })),
    page: (entity, partition, after) =>
      outcomeOf(async () => {
        const { items, next } = await client[entity.name].range(partition).page({ top: 1, after });
        return { items, next };
      }),
    transact: (actions) =>
      outcomeOf(async () => {
        await client.transact(actions);
        return undefined;
      }),
    read: (entity, key) =>
      outcomeOf(async () => versionOf(await client[entity.name].get(key, { include: Object.keys(entity.split) }))),
  };
}

async function perform(client: AnyCalls, entity: Entity, step: Step): Promise<Partial<Outcome> | undefined> {
  const { key = {}, values = {}, actions = [], field = '' } = step;
  const calls = client[entity.name];
  // With the ETags that it has seen, most changes of a client are rejected beside other clients.
  const options = currentChance().isTrue(step.do === 'delete' ? 0.4 : 0.7) ? { ifMatch: '*' } : {};
  switch (step.do) {
    case 'create':
      return versionOf(await calls.create(values));
    case 'put': {
      const own = Object.entries(values).filter(([name]) => !entity.keyFields.includes(name));
      return versionOf(await calls.put(key, Object.fromEntries(own), options));
    }
    case 'update':
      return versionOf(await calls.update(key, values, options));
    case 'merge':
      await calls.update(key, values, { return: 'minimal', ...options });
      return undefined;
    case 'delete':
      return follow(await calls.delete(key, options));
    case 'deleteRange':
      await calls.deleteRange(key, { all: true });
      return undefined;
    case 'batch':
    case 'atomic':
      return { parts: (await calls.batch(actions, { atomic: step.do === 'atomic' })).map(nameResult) };
    case 'set':
      await calls.set(key, values);
      return undefined;
    case 'increment':
      await Promise.all(Object.entries(values).map(([slot, by]) => calls.increment(key, Number(slot), by)));
      return undefined;
    case 'move':
      return follow(await calls.move(key, values));
    case 'archive':
      return follow(await calls.archive(key));
    case 'deleteArchived':
      await calls.archived.delete(key);
      return undefined;
    case 'putFile':
      await calls.files[field].put(key, new Blob([PNG], { type: 'image/png' }));
      return undefined;
    case 'deleteFile':
      await calls.files[field].delete(key);
      return undefined;
    default:
      return undefined;
  }
}

const versionOf = (found: { values?: Values; etag?: string } | undefined) => ({
  values: found?.values,
  etag: found?.etag,
});

/** Waits for an operation that the queue does. */
async function follow(operation: { done(): Promise<unknown> } | undefined): Promise<undefined> {
  await operation?.done();
  return undefined;
}

/** The result of an action: `ok` or the code of its error. */
function nameResult(result: { readonly error?: { readonly code: string } } | Error): string {
  const error = result instanceof Error ? (result as RowkeyClientError) : result.error;
  if (!error) return 'ok';
  return UNKNOWN.has(error.code) ? 'unknown' : error.code;
}
