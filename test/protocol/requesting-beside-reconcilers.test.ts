import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { httpClient as shared } from '../../local/walk/known-messages.ts';
import { customers, employees } from '../fixtures/model.ts';
import { type Engine, engineConsume, engineRead, engineWrite } from '../kit/engine.ts';
import { samplePoints } from '../points.ts';
import { log } from '../silent-log.ts';
import { openWorld, somebody } from '../world.ts';

/** The most messages of a queue that one process of the host handles concurrently: a batch of 16, and 8 of the next one. */
const MESSAGES = 24;
const { emailCompanyWide } = employees.indexes;

const world = await openWorld(import.meta.url);

/** The calls of one reconciler. The call `at` waits for `released`. */
interface Held {
  readonly at: number;
  calls: number;
  readonly reached: PromiseWithResolvers<void>;
  readonly released: Promise<void>;
}

const reconciling = new AsyncLocalStorage<Held>();

/** One process: its requests and its reconcilers share the engine and the clients of storage. */
function openProcess(): Engine {
  return world.engineThrough({
    async sendRequest(request) {
      const held = reconciling.getStore();
      if (held && ++held.calls === held.at) {
        held.reached.resolve();
        await held.released;
      }
      return shared.sendRequest(request);
    },
  });
}

const hire = () => {
  const one = somebody();
  return engineWrite.createEntity(world.queued, employees, one).then(() => one);
};

/** Reconciles a new employee. Returns the number of storage calls. */
async function reconcile(engine: Engine, one: Values, held: Held): Promise<number> {
  const message = await world.take('index-changes', String(one.employeeId));
  await reconciling.run(held, () =>
    engineConsume.consumeIntent({ engine, entities: [employees, customers], log }, message),
  );
  return held.calls;
}

const holdAt = (at: number, released: Promise<void>): Held => ({
  at,
  calls: 0,
  reached: Promise.withResolvers<void>(),
  released,
});

test('no request waits for reconcilers, whichever storage call they wait for', { tags: ['slow'] }, async () => {
  const engine = openProcess();
  const read = await hire();
  const count = await reconcile(engine, read, holdAt(0, Promise.resolve()));
  expect(count).toBeGreaterThan(3);
  for (const at of samplePoints(count)) {
    const all = await Promise.all(Array.from({ length: MESSAGES }, hire));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const held = all.map(() => holdAt(at, released));
    const done = Promise.all(all.map((one, index) => reconcile(engine, one, held[index] ?? holdAt(0, released))));
    try {
      await Promise.all(held.map(({ reached }) => reached.promise));
      expect((await engineRead.readEntity(engine, employees, read)).values).toMatchObject({ email: read.email });
      expect(await engineRead.readByCopy(engine, employees, emailCompanyWide, { email: read.email })).toMatchObject({
        email: read.email,
      });
      await engineWrite.createEntity(engine, employees, somebody());
      // An entity that a reconciler is working on is not locked either.
      const [one = {}] = all;
      await engineWrite.patchEntity(engine, employees, one, { jobTitle: 'Clerk' });
    } finally {
      release();
      await done;
    }
  }
});
