import { readFile } from 'node:fs/promises';
import pMap from 'p-map';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  dropPoison,
  listPoison,
  POISON_TABLE,
  Poison,
  recordPoison,
  replayPage,
  replayPoison,
} from '../../../../lib/engine/consume/poison.ts';
import { RowkeyError } from '../../../../lib/index.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineConsume, engineCore, type Message } from '../../../kit/engine.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }));
const unprovisioned = engineCore.createEngine(
  storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }, 'absent'),
);
const logged: string[] = [];
const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };

beforeAll(() => storageTables.createTable(engine.storage, POISON_TABLE));
beforeEach(async () => {
  logged.length = 0;
  for (const { id } of (await listPoison(engine, { limit: 1_000 })).items) await dropPoison(engine, id);
});

const message = (over: Partial<Message> = {}): Message => ({
  queue: 'index-changes',
  id: 'one',
  attempts: 1,
  insertedAt: Date.now(),
  body: { secret: 'of Ann' },
  ...over,
});
const fail = (error: Error) => () => Promise.reject(error);

describe('a failing message', () => {
  test('returns to the queue until its last attempt and is then recorded with the reason', async () => {
    for (let attempts = 1; attempts < engineConsume.MAX_ATTEMPTS; attempts += 1)
      await expect(
        engineConsume.handleMessage(
          engine,
          message({ attempts }),
          log,
          fail(new RowkeyError('needs-repair', 'A list is lost.')),
        ),
      ).rejects.toThrow('A list is lost.');
    expect((await listPoison(engine, { limit: 10 })).items).toEqual([]);
    await engineConsume.handleMessage(
      engine,
      message({ attempts: engineConsume.MAX_ATTEMPTS }),
      log,
      fail(new RowkeyError('needs-repair', 'A list is lost.')),
    );
    expect((await listPoison(engine, { limit: 10 })).items).toMatchObject([
      {
        queue: 'index-changes',
        reason: 'A list is lost.',
        attempts: engineConsume.MAX_ATTEMPTS,
        text: '{"secret":"of Ann"}',
      },
    ]);
  });

  test('is recorded immediately if another attempt is pointless', async () => {
    const errors = [
      new baseValues.NeverSucceeds('It is nonsense.'),
      new RowkeyError('invalid-input', 'A value is wrong.'),
      new RowkeyError('too-large', 'A row is too large.'),
    ];
    for (const [index, error] of errors.entries())
      await engineConsume.handleMessage(engine, message({ id: String(index) }), log, fail(error));
    const { items } = await listPoison(engine, { limit: 10 });
    expect(items.map(({ reason }) => reason).sort()).toEqual(errors.map((error) => error.message).sort());
  });

  test('leaves no value and no SDK message in the log or in the error that the host logs', async () => {
    const error = new Error('RestError about PartitionKey=Ann');
    await expect(engineConsume.handleMessage(engine, message(), log, fail(error))).rejects.not.toThrow(/Ann/);
    await engineConsume.handleMessage(engine, message({ attempts: engineConsume.MAX_ATTEMPTS }), log, fail(error));
    expect(logged).toHaveLength(2);
    expect(logged.join()).not.toContain('Ann');
  });

  test('is not acknowledged if it cannot be recorded', async () => {
    const attempt = engineConsume.handleMessage(
      unprovisioned,
      message({ attempts: engineConsume.MAX_ATTEMPTS }),
      log,
      fail(new RowkeyError('needs-repair', 'A list is lost.')),
    );
    await expect(attempt).rejects.toThrow();
  });
});

test('keeps the full text of every message, lists the newest first and records each message once', async () => {
  const text = `x${'ß🙂"\\'.repeat(5_000)}`;
  await recordPoison(engine, message({ id: 'old', insertedAt: 1_000, body: text }), 'a');
  await recordPoison(engine, message({ id: 'new', insertedAt: 2_000 }), 'b');
  await recordPoison(engine, message({ id: 'new', insertedAt: 2_000 }), 'c');
  const { items } = await listPoison(engine, { limit: 10 });
  expect(items.map(({ reason }) => reason)).toEqual(['c', 'a']);
  expect(items[1]?.text === text).toBe(true);
});

test('lists page by page, and says whether more follows, also beyond the last page', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const [age, id] of names.entries())
    await recordPoison(engine, message({ id, insertedAt: 5_000 - age, attempts: age }), id);
  const pages: string[][] = [];
  let page: Awaited<ReturnType<typeof listPoison>> | undefined;
  do {
    page = await listPoison(engine, { limit: 2, after: page?.items.at(-1)?.id });
    pages.push(page.items.map(({ reason, attempts }) => `${reason}${attempts}`));
  } while (page.more);
  expect(pages).toEqual([['a0', 'b1'], ['c2', 'd3'], ['e4']]);
  expect(await listPoison(engine, { limit: 5 })).toMatchObject({ more: false, away: [] });
  expect(await listPoison(engine, { limit: 4 })).toMatchObject({ more: true });
  const last = (await listPoison(engine, { limit: 5 })).items.at(-1)?.id;
  expect(await listPoison(engine, { limit: 5, after: last })).toEqual({ items: [], more: false, away: [] });
});

test('does not record a message whose id no record can have', async () => {
  await expect(recordPoison(engine, message({ id: 'a/b' }), 'why')).rejects.toThrow('cannot be recorded');
  expect((await listPoison(engine, { limit: 5 })).items).toEqual([]);
});

describe('the list of poison messages', () => {
  const COUNT = 60;
  const earlier = `${String(8_640_000_000_000_000 - 500).padStart(16, '0')}_earlier`;

  beforeEach(async () => {
    const all = Array.from({ length: COUNT }, (_, age) => message({ id: `one-${age}`, insertedAt: 1_000 + age }));
    await pMap(all, (one) => recordPoison(engine, one, one.id), { concurrency: 8 });
    // Earlier releases recorded every message in this partition.
    const table = engine.storage.table(POISON_TABLE);
    const [newest] = (await listPoison(engine, { limit: 1 })).items;
    const row = (await Array.fromAsync(table.listEntities())).find(({ rowKey }) => rowKey === newest?.id);
    const InsertedAt = new Date(500).toISOString();
    await table.createEntity({ ...row, partitionKey: 'poison', rowKey: earlier, InsertedAt, Reason: 'earlier' });
  });

  test('is spread over partitions and pages through all of them, newest first', { tags: ['slow'] }, async () => {
    const rows = await Array.fromAsync(engine.storage.table(POISON_TABLE).listEntities());
    expect(new Set(rows.map(({ partitionKey }) => partitionKey)).size).toBeGreaterThan(10);
    const newestFirst = [...Array.from({ length: COUNT }, (_, age) => `one-${COUNT - 1 - age}`), 'earlier'];
    for (const limit of [1, 7, 60, 61, 1_000]) {
      const reasons: string[] = [];
      let page: Awaited<ReturnType<typeof listPoison>> | undefined;
      do {
        page = await listPoison(engine, { limit, after: page?.items.at(-1)?.id });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        reasons.push(...page.items.map(({ reason }) => reason));
      } while (page.more);
      expect(reasons).toEqual(newestFirst);
    }
  });

  test('contains messages of earlier releases, which can be replayed and dropped', async () => {
    await engine.storage.queue('index-changes').createIfNotExists();
    const [one] = (await listPoison(engine, { limit: COUNT + 1 })).items.slice(-1);
    expect(one).toMatchObject({ id: earlier, reason: 'earlier', insertedAt: '1970-01-01T00:00:00.500Z' });
    expect((await replayPoison(engine, earlier)).text).toBe('{"secret":"of Ann"}');
    await expect(dropPoison(engine, earlier)).rejects.toMatchObject({ code: 'not-found' });
  });
});

describe('a replayed message', () => {
  const queue = engine.storage.queue('again');
  const idOf = async () => (await listPoison(engine, { limit: 1 })).items[0]?.id ?? '';

  test('is sent once by concurrent replays', async () => {
    await queue.createIfNotExists();
    await recordPoison(engine, message({ queue: 'again' }), 'a');
    const id = await idOf();
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => replayPoison(engine, id)));
    const others = all.filter((one) => one.status === 'rejected').map(({ reason }) => reason.code);
    expect(others).toHaveLength(7);
    expect(['busy', 'not-found']).toEqual(expect.arrayContaining(others));
    expect((await queue.receiveMessages({ numberOfMessages: 8 })).receivedMessageItems).toHaveLength(1);
    expect(await idOf()).toBe('');
  });

  test('is no failure of a page if another request replays it', async () => {
    await queue.createIfNotExists();
    for (const id of ['1', '2', '3', '4']) await recordPoison(engine, message({ queue: 'again', id }), 'a');
    const pages = await Promise.all([1, 2].map(() => replayPage(engine, { limit: 10, queue: 'again' })));
    expect(pages.flatMap(({ replayed }) => replayed)).toHaveLength(4);
    expect(pages.flatMap(({ failed }) => failed)).toEqual([]);
  });

  test('is selected by its queue, whichever part it was in', async () => {
    await engine.storage.queue('index-changes').createIfNotExists();
    await recordPoison(engine, message({ queue: 'index-changes-3' }), 'of a part');
    const page = { limit: 10, reason: 'of a part' };
    expect((await replayPage(engine, { ...page, queue: 'transfers' })).replayed).toEqual([]);
    expect((await replayPage(engine, { ...page, queue: 'index-changes' })).replayed).toHaveLength(1);
  });

  test('that cannot be sent, or whose record was changed by hand, does not keep the others from being sent', async () => {
    await engine.storage.queue('index-changes').createIfNotExists();
    for (const id of ['1', '2', '3', '4']) await recordPoison(engine, message({ id }), 'beside');
    const items = (await listPoison(engine, { limit: 10 })).items;
    const [lost, changed] = items.map(({ id }) => id);
    const table = engine.storage.table(POISON_TABLE);
    for await (const { partitionKey = '', rowKey = '' } of table.listEntities()) {
      const wrong = { Queue: 'nowhere-at-all' };
      if (rowKey === lost) await table.updateEntity({ partitionKey, rowKey, ...wrong }, 'Merge');
      const typed = { Attempts: 'lots', InsertedAt: 5, RecordedAt: 'soon' };
      if (rowKey === changed) await table.updateEntity({ partitionKey, rowKey, ...typed }, 'Merge');
    }
    const listed = (await listPoison(engine, { limit: 10 })).items;
    expect(listed.map((one) => Poison.safeParse(one).success)).toEqual([true, true, true, true]);
    const { replayed, failed } = await replayPage(engine, { limit: 10 });
    expect(failed).toEqual([lost]);
    expect(replayed.sort()).toEqual(
      items
        .map(({ id }) => id)
        .filter((id) => id !== lost)
        .sort(),
    );
    expect((await listPoison(engine, { limit: 10 })).items.map(({ id }) => id)).toEqual([lost]);
  });

  test('stays on the list if the replay fails, and can be replayed after a delay', async () => {
    await recordPoison(engine, message({ queue: 'nowhere' }), 'a');
    const id = await idOf();
    await expect(replayPoison(engine, id)).rejects.not.toMatchObject({ code: 'busy' });
    await expect(replayPoison(engine, id)).rejects.toMatchObject({ code: 'busy' });
    await engine.storage.queue('nowhere').create();
    await replayPoison({ ...engine, now: () => Date.now() + 61_000 }, id);
    expect((await engine.storage.queue('nowhere').receiveMessages()).receivedMessageItems).toHaveLength(1);
  });
});

test('host.json has the attempts and the encoding that the code expects', async () => {
  const { extensions } = JSON.parse(await readFile(new URL('../../../../host.json', import.meta.url), 'utf8'));
  expect(extensions.queues.maxDequeueCount).toBe(engineConsume.MAX_ATTEMPTS);
  expect(extensions.queues.messageEncoding).toBe('none');
});
