import { expect, test } from 'vitest';
import { blockUser, listBlocked, requireUnblocked, unblockUser } from '../../../lib/access/blocked.ts';
import { type FaultyHttpClient, faultyHttpClient, interruptedHttpClient } from '../../faulty-http-client.ts';
import { type Engine, engineCore } from '../../kit/engine.ts';
import { storageAccounts, storageSlots, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const clock = { now: Date.parse('2026-11-20T12:00:00Z') };

/** A process of the app. */
function openProcess(httpClient: FaultyHttpClient = faultyHttpClient()) {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient });
  return { httpClient, engine: engineCore.createEngine(storage, { now: () => clock.now }) };
}

await storageTables.provision(openProcess().engine.storage, {
  tables: [storageSlots.SYSTEM_TABLE],
  queues: [],
  containers: [],
});

const ask = (engine: Engine, subject: string) => requireUnblocked(engine, { subject, roles: [], claims: {} });
const blocked = { code: 'forbidden', message: 'The user is blocked.' };

test('a user is blocked at once in one process, and after ten seconds in the others', async () => {
  const [here, there] = [openProcess().engine, openProcess().engine];
  for (const engine of [here, there]) await ask(engine, 'ann');
  await blockUser(here, 'ann');
  await expect(ask(here, 'ann')).rejects.toMatchObject(blocked);
  clock.now += 9_999;
  await ask(there, 'ann');
  clock.now += 1;
  await expect(ask(there, 'ann')).rejects.toMatchObject(blocked);
  await ask(there, 'bob');
  await unblockUser(there, 'ann');
  await ask(there, 'ann');
  await expect(unblockUser(there, 'ann')).rejects.toMatchObject({ code: 'not-found' });
});

test('the list is read once in ten seconds, whatever the number of requests and users', async () => {
  const { engine, httpClient } = openProcess();
  const before = httpClient.calls;
  await Promise.all(Array.from({ length: 100 }, (_, number) => ask(engine, `user ${number}`)));
  expect(httpClient.calls - before).toBe(1);
  clock.now += 10_000;
  await ask(engine, 'ann');
  expect(httpClient.calls - before).toBe(2);
});

test('more users are blocked than one page has', { tags: ['slow'] }, async () => {
  const { engine } = openProcess();
  const subjects = Array.from({ length: 1_100 }, (_, number) => `many ${number}`);
  for (const subject of subjects) await blockUser(engine, subject);
  for (const subject of [subjects[0], subjects.at(-1)])
    await expect(ask(openProcess().engine, String(subject))).rejects.toMatchObject(blocked);
  for (const subject of subjects) await unblockUser(engine, subject);
});

test('while storage is away, the last list decides for five minutes, and then nobody is accepted', async () => {
  let isAway = false;
  const works = faultyHttpClient();
  const { engine } = openProcess({
    calls: 0,
    sendRequest: (request) => (isAway ? faultyHttpClient('refused', 1) : works).sendRequest(request),
  });
  await blockUser(engine, 'ann');
  await ask(engine, 'bob');
  isAway = true;
  clock.now += 4 * 60_000;
  await ask(engine, 'bob');
  await expect(ask(engine, 'ann')).rejects.toMatchObject(blocked);
  await expect(blockUser(engine, 'eve')).rejects.toMatchObject({ code: 'storage-unavailable' });
  await ask(engine, 'bob');
  clock.now += 60_000;
  await expect(ask(engine, 'bob')).rejects.toMatchObject({ code: 'storage-unavailable' });
  isAway = false;
  await unblockUser(engine, 'ann');
  await ask(engine, 'ann');
});

test('a visitor is nobody who could be blocked, and costs no read', async () => {
  const { engine, httpClient } = openProcess();
  await ask(engine, '');
  expect(httpClient.calls).toBe(0);
});

test('a list that was read before a block does not count after it', async () => {
  const isRead = Promise.withResolvers<void>();
  const isBlocked = Promise.withResolvers<void>();
  const { engine } = openProcess(
    interruptedHttpClient(
      ({ method }) => method === 'GET',
      async () => {
        isRead.resolve();
        await isBlocked.promise;
      },
      'after',
    ),
  );
  const reading = ask(engine, 'ann');
  await isRead.promise;
  await blockUser(engine, 'ann');
  isBlocked.resolve();
  await reading;
  await expect(ask(engine, 'ann')).rejects.toMatchObject(blocked);
  await unblockUser(engine, 'ann');
});

test('the list has whom and since when, by pages', async () => {
  const { engine } = openProcess();
  for (const subject of ['ann@example.org/1', 'bob']) await blockUser(engine, subject);
  const first = await listBlocked(engine, { limit: 1, after: undefined });
  const second = await listBlocked(engine, { limit: 1, after: first.next });
  expect([...first.items, ...second.items].map(({ subject }) => subject).toSorted()).toEqual([
    'ann@example.org/1',
    'bob',
  ]);
  expect(first.items[0]?.blockedAt).toBe(new Date(clock.now).toISOString());
  expect(second.next).toBeUndefined();
  for (const subject of ['ann@example.org/1', 'bob']) await unblockUser(engine, subject);
});
