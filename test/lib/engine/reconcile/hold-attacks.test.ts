import { setTimeout as sleep } from 'node:timers/promises';
import { createDefaultHttpClient } from '@azure/core-rest-pipeline';
import { beforeEach, expect, test } from 'vitest';
import { faultyHttpClient, interruptedHttpClient } from '../../../faulty-http-client.ts';
import { customers, employees } from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import { definePlaces } from '../../../kit/define.ts';
import { type Engine, engineConsume, engineReconcile, engineWrite } from '../../../kit/engine.ts';
import { samplePoints } from '../../../points.ts';
import { receiveMessage } from '../../../receive-message.ts';
import { log } from '../../../silent-log.ts';
import { expectIndexesToAgree, openWorld, QUICK, somebody } from '../../../world.ts';

const QUEUE = 'index-changes';
const LAST_INSTANT = 8_640_000_000_000_000;
const work = { version: 1, intent: 'one', entity: 'employees', table: 'employees', items: [] };

const world = await openWorld(import.meta.url);
beforeEach(async () => {
  await world.storage.queue(QUEUE).clearMessages();
});

const receive = async () => (await receiveMessage(world.storage, QUEUE)).message;
const recorded = async (name: string) =>
  (await engineConsume.listPoison(world.engine, { limit: 100 })).items.filter(({ id }) => id.includes(name));

/** Creates an engine that records its requests to the queue service. */
function recording(): { engine: Engine; requests: { method: string; path: string; body: string }[] } {
  const requests: { method: string; path: string; body: string }[] = [];
  const client = createDefaultHttpClient();
  const engine = world.engineThrough({
    async sendRequest(request) {
      const { pathname } = new URL(request.url);
      if (pathname.includes(QUEUE))
        requests.push({ method: request.method, path: pathname, body: String(request.body) });
      return client.sendRequest(request);
    },
  });
  return { engine, requests };
}

// Runs first, because the tests below leave poison messages.
test('a writer that stalls at any call until its intent is settled, and then dies, leaves no difference', {
  tags: ['slow'],
}, async () => {
  const play = async (at: number) => {
    const overtake = async () => {
      await sleep((QUICK.hideIntentForSeconds + 1) * 1_000);
      await world.settleInTime();
    };
    const dying = interruptedHttpClient(at, overtake, 'before', faultyHttpClient('crash after', at));
    const timing = at === 0 ? undefined : QUICK;
    await engineWrite.createEntity(world.engineThrough(dying, timing), employees, somebody()).catch(() => undefined);
    return dying.calls;
  };
  const count = await play(0);
  expect(count).toBeGreaterThan(3);
  await Promise.all(samplePoints(count).map(play));
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
});

test('a reconciler that fails at one entity has stopped all its writes when it throws', {
  tags: ['slow'],
}, async () => {
  const entities = await Promise.all(
    ['R1', 'R2', 'R3'].map((customerId) =>
      engineWrite.createEntity(world.engine, customers, {
        city: 'Bern',
        customerId,
        companyName: 'A',
        contactName: 'Ann First',
      }),
    ),
  );
  const items = entities.map(({ values }) => {
    return {
      partition: 'Bern',
      row: String(values.customerId),
      indexEntries: definePlaces.indexEntriesOf(customers, values),
    };
  });
  for (const { row } of items) await world.storage.table('customersbylastname').deleteEntity('Bern', `First_${row}`);
  let calls = 0;
  let hasThrown = false;
  let late = 0;
  const hold = {
    async keep() {
      calls += 1;
      if (calls === 1) throw baseValues.busy('The hold is lost.');
      await sleep(200);
      if (hasThrown) late += 1;
      return AbortSignal.timeout(10_000);
    },
  };
  const reconciling = engineReconcile.reconcile(
    world.engine,
    customers,
    { intent: 'one', table: 'customers', items },
    { hold },
  );
  await expect(reconciling).rejects.toMatchObject({ code: 'busy' });
  hasThrown = true;
  await sleep(600);
  expect(late).toBe(0);
});

test('a reconciler throws "storage-unavailable" if a write may still arrive', async () => {
  const items = ['U1', 'U2'].map((row) => ({ partition: 'Bern', row, indexEntries: [] }));
  let calls = 0;
  const hold = { keep: () => Promise.reject(new Error('No write is due.')) };
  const storage = {
    ...world.storage,
    table: () => {
      calls += 1;
      throw calls === 1
        ? baseValues.busy('Others are writing.')
        : baseValues.unavailable('Storage does not answer now.', undefined);
    },
  };
  const reconciling = engineReconcile.reconcile(
    { ...world.engine, storage },
    customers,
    { intent: 'one', table: 'customers', items },
    { hold },
  );
  await expect(reconciling).rejects.toMatchObject({ code: 'storage-unavailable' });
});

test.each(['', '.', '..'])('a reminder with the forged id "%s" makes no request to the queue itself', async (id) => {
  const { engine, requests } = recording();
  await world.storage.queue(QUEUE).sendMessage(JSON.stringify({ ...work, reminder: { id, popReceipt: 'forged' } }));
  await engineConsume.handleMessage(engine, await receive(), log, async (take) => {
    await take();
  });
  // A copy becomes the reminder and is deleted by its id.
  expect(requests.map(({ method, path }) => `${method} ${path.replace(/^.*messages\/?/, '')}`)).toEqual([
    'POST ',
    expect.stringMatching(/^DELETE [\w-]{36}$/),
  ]);
});

test('hides a message without characters that XML cannot represent', async () => {
  const { engine, requests } = recording();
  await engineReconcile.sendWork(world.engine, QUEUE, { ...work, intent: 'a\uffffb\ufffe' });
  let hold: unknown;
  await engineConsume.handleMessage(engine, { ...(await receive()), attempts: 2 }, log, async (take) => {
    hold = await take();
  });
  expect(hold).toBeDefined();
  expect(requests.map(({ method }) => method)).toEqual(['PUT', 'DELETE']);
  expect(requests[0]?.body).toContain('a\\uffffb\\ufffe');
});

test('a message with a first attempt in the future is recorded after a day', async () => {
  const history = { id: 'future', since: LAST_INSTANT, attempts: 0, waits: 0 };
  await engineReconcile.sendWork(world.engine, QUEUE, { ...work, history });
  const tomorrow = { ...world.engine, now: () => Date.now() + 25 * 3_600_000 };
  await engineConsume.handleMessage(tomorrow, await receive(), log, async (take) => {
    await take();
    throw baseValues.unavailable('Storage does not answer now.', undefined);
  });
  expect(await recorded('future')).toHaveLength(1);
});
