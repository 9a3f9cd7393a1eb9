import type { Entities } from '../api/entity-types.ts';
import { MINUTE_MS } from '../base/time.ts';
import { withShapes } from '../define/codec/existing-rows.ts';
import type { Model } from '../define/define-model.ts';
import type { Operations } from '../define/define-operation.ts';
import { consumerOf } from '../engine/consume/consume.ts';
import { createEngine } from '../engine/engine.ts';
import { listParts } from '../engine/reconcile/queues.ts';
import { resourcesOf } from '../operations/resources.ts';
import type { KeyRing } from '../storage/key-ring.ts';
import { deleteMessage, receiveMessages } from '../storage/messages.ts';
import { provision } from '../storage/provision.ts';
import { FIRST_ACCOUNT, openStorage } from '../storage/storage.ts';
import { checkImplementations, createExecute, type Implementations } from '../store/app-operations.ts';
import type { StoreSource } from '../store/call.ts';
import { createStore, type UnlimitedStore } from '../store/store.ts';
import { createMemoryStorage, type MemoryStorage } from './memory-storage.ts';

/** A store on its own storage account in memory, for the tests of an app. */
export interface TestStore<All extends Entities, Own extends Operations = Operations> {
  /** A store like `rowkey.store` of an app. Writes are not recorded in an audit log. */
  readonly store: UnlimitedStore<All, Own>;
  /**
   * Does the work of the queue functions until none is left, as if time had passed: copies, counts and entries of other partitions,
   * archives and moves. Throws if a part of it can never succeed. Call it when no write is running.
   */
  settle(): Promise<void>;
  /** Moves the clock of the store and of its storage forward. */
  advance(milliseconds: number): void;
  /** Set its `intercept` to inject faults. Of several accounts, the first. */
  readonly storage: MemoryStorage;
  /** All accounts by their names. */
  readonly accounts: ReadonlyMap<string, MemoryStorage>;
}

/** More than all delays of a message together. */
const SETTLE_WITHIN_MS = 2 * 24 * 60 * MINUTE_MS;

/**
 * Creates an empty store of a model: no server, no settings and no files. Its data are gone with the last reference to it.
 *
 * @example
 * const { store, settle } = await createTestStore(rowkey.model);
 * await store.vehicles.create({ depot: 'north', vehicleId: '1', plate: 'AB 12345' });
 * await settle();
 */
export async function createTestStore<All extends Entities, Own extends Operations = Operations>(
  model: Omit<Model, 'entities' | 'operations'> & { readonly entities: All; readonly operations: Own },
  options: {
    /** The implementations that `createRowkey` gets, for tests that call operations: `store.as(caller).operations`. */
    readonly operations?: Implementations<{ readonly entities: All; readonly operations: Own }>;
    /** The names of further storage accounts, such as `['second', 'third']`, over which the partitions are spread. */
    readonly accounts?: readonly string[];
  } = {},
): Promise<TestStore<All, Own>> {
  const { operations, accounts: further = [] } = options;
  if (operations) checkImplementations(model, operations);
  const { queueParts } = model;
  let ahead = 0;
  const now = () => Date.now() + ahead;
  const names = [FIRST_ACCOUNT, ...further];
  const memory = createMemoryStorage({ now });
  const accounts = new Map(
    names.map((name, index) => [name, index === 0 ? memory : createMemoryStorage({ now, account: name })] as const),
  );
  const several = [...accounts].map(([name, { connectionString, httpClient }]) => ({
    name,
    connectionString,
    httpClient,
  }));
  const opened = openStorage(
    further.length > 0 ? { accounts: several, containers: model.containerAccounts } : memory,
    model.prefix,
  );
  const storage = withShapes(opened, model.list);
  await provision(storage, resourcesOf(model.list, now(), model));
  const engine = createEngine(storage, { now, keys: PLAIN_KEYS, rulesMaxAge: model.rulesMaxAge, queueParts });
  const failures: string[] = [];
  const log = { warn: () => undefined, error: (failure: string) => failures.push(failure) };
  const attempts = new Map<string, number>();

  async function handleVisible(): Promise<number> {
    let handled = 0;
    for (const queue of listParts(engine))
      for (const message of await receiveMessages(storage, queue, { limit: 32, hiddenFor: 1 })) {
        const { id, insertedAt, text } = message;
        attempts.set(id, (attempts.get(id) ?? 0) + 1);
        const given = { queue, id, insertedAt, attempts: attempts.get(id) ?? 1, body: JSON.parse(text) };
        const isDone = await consumerOf(queue)({ engine, entities: model.list, log }, given).then(
          () => true,
          // Tried again, and recorded as a failure after the last attempt.
          () => false,
        );
        if (isDone) await deleteMessage(storage, message);
        handled += 1;
      }
    return handled;
  }

  async function countMessages(): Promise<number> {
    const counts = listParts(engine).map((queue) => storage.queue(queue).getProperties());
    return (await Promise.all(counts)).reduce(
      (sum, { approximateMessagesCount = 0 }) => sum + approximateMessagesCount,
      0,
    );
  }

  const source: StoreSource = { engine: async () => engine, limits: model.limits, record: (_, write) => write() };
  const execute = createExecute(model, operations, source);
  return {
    store: createStore<All, Own>(model.list, { ...source, operations: { declared: model.operations, execute } }),
    storage: memory,
    accounts,
    advance(milliseconds) {
      ahead += milliseconds;
    },
    async settle() {
      const end = now() + SETTLE_WITHIN_MS;
      while ((await handleVisible()) > 0 || (await countMessages()) > 0) {
        // A hidden message becomes visible.
        ahead += MINUTE_MS;
        if (now() > end) throw new Error('The work of the queue functions does not end.');
      }
      if (failures.length > 0) throw new Error(failures.splice(0).join('\n'));
    },
  };
}

/** Data keys are kept as they are: the storage in memory needs no protection. */
const PLAIN_KEYS: KeyRing = {
  wrap: async (dataKey) => ({ keyId: 'memory', wrapped: dataKey }),
  unwrap: async (_, wrapped) => wrapped,
  currentKeyId: async () => 'memory',
};
