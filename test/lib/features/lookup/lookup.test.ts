import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../../../lib/define.ts';
import { lookupList } from '../../../../lib/features/lookup/lookup.ts';
import { interruptedHttpClient } from '../../../faulty-http-client.ts';
import { engineCore } from '../../../kit/engine.ts';
import { httpDoor } from '../../../kit/http.ts';
import type { Internal } from '../../../kit/internal.ts';
import { storageAccounts, storageRows } from '../../../kit/storage.ts';
import { openApp } from '../../../open-app.ts';
import { testStorage } from '../../../storage.ts';
import { testApp, testContext } from '../../http/request.ts';

/** The list that a process keeps. test/scenarios/looking-up.test.ts reads it over HTTP. */

const topics = defineEntity('topics', {
  schema: z.object({ topic: z.string().min(1), title: z.string(), tags: z.array(z.string()).optional() }),
  table: 'topics',
  key: { partition: '{topic}', row: 'topic' },
  indexes: { all: interPartitionIndex({ table: 'topiclist', partition: 'all', row: '{topic}' }) },
  lookup: { index: 'all', maxAge: 60 },
  access: { read: ['reader'], write: ['reader'] },
});
const prefix = 'topics';
const model = defineModel({ prefix, roles: ['reader'], operatorRole: 'reader', entities: [topics] });
const connectionString = testStorage(import.meta.url);
/** One process of the app. Two of them share the storage and no memory. */
const instance = () => openApp(import.meta.url, model);
const [entity] = model.list as [(typeof model.list)[number]];

beforeAll(() => instance().provision());

test('another process returns a changed list after maxAge at the latest, its own changes at once', async () => {
  const [writer, other] = [instance(), instance()];
  let now = Date.now();
  const late = engineCore.createEngine(storageAccounts.openStorage({ connectionString }, prefix), { now: () => now });
  const titles = async () => (await lookupList.read(late, entity)).items.map(({ title }) => title);
  await writer.store.topics.create({ topic: 'art', title: 'Art' });
  expect(await titles()).toEqual(['Art']);
  expect(await other.store.topics.list()).toEqual([{ topic: 'art', title: 'Art' }]);
  await writer.store.topics.update({ topic: 'art' }, { title: 'Fine art' });
  expect(await writer.store.topics.list()).toEqual([{ topic: 'art', title: 'Fine art' }]);
  expect(await other.store.topics.list()).toEqual([{ topic: 'art', title: 'Art' }]);
  now += 59_999;
  expect(await titles()).toEqual(['Art']);
  now += 1;
  expect(await titles()).toEqual(['Fine art']);
  // A clock that is set back.
  await writer.store.topics.update({ topic: 'art' }, { title: 'Old art' });
  now -= 3_600_000;
  expect(await titles()).toEqual(['Old art']);
  await other.store.topics.update({ topic: 'art' }, { title: 'Modern art', tags: ['new'] });
  const [one] = await other.store.topics.list({ where: { title: 'Modern art' }, select: ['tags'] });
  expect(one).toEqual({ tags: ['new'] });
  // The list in memory is not the caller's to change.
  (one?.tags as string[] | undefined)?.push('mine');
  expect(await other.store.topics.list({ select: ['tags'] })).toEqual([{ tags: ['new'] }]);
});

test('a list that was read before a write ended is not kept', async () => {
  const { store } = instance();
  const hold = Promise.withResolvers<void>();
  const read = Promise.withResolvers<void>();
  const client = interruptedHttpClient(
    1,
    async () => {
      read.resolve();
      await hold.promise;
    },
    'after',
  );
  const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString, httpClient: client }, prefix));
  const before = lookupList.read(engine, entity);
  await read.promise;
  // The write of the same process ends while the response of the read is on its way.
  const row = { EntityType: 'topics', SourcePartition: 'x', SourceRow: 'topic', topic: 'zoo', title: 'Zoo' };
  const at = { table: 'topiclist', partition: 'all' };
  await storageRows.submit(engine.storage, { ...at, actions: [{ kind: 'insert', row: 'zoo', properties: row }] });
  hold.resolve();
  expect((await before).items.map(({ topic }) => topic)).not.toContain('zoo');
  expect((await lookupList.read(engine, entity)).items.map(({ topic }) => topic)).toContain('zoo');
  await storageRows.submit(engine.storage, { ...at, actions: [{ kind: 'delete', row: 'zoo' }] });
  await store.topics.list();
});

test('a failed read is not kept, and concurrent callers share one read', async () => {
  let isFailing = true;
  let calls = 0;
  const plain = interruptedHttpClient(0, async () => undefined);
  const httpClient = {
    sendRequest: async (request: Parameters<typeof plain.sendRequest>[0]) => {
      calls += 1;
      if (isFailing) throw new Error('This connection is broken.');
      return plain.sendRequest(request);
    },
  };
  const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString, httpClient }, prefix));
  const failures = await Promise.allSettled([lookupList.read(engine, entity), lookupList.read(engine, entity)]);
  expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  isFailing = false;
  calls = 0;
  const lists = await Promise.all(Array.from({ length: 50 }, () => lookupList.read(engine, entity)));
  expect(calls).toBe(1);
  expect(new Set(lists).size).toBe(1);
});

test('a list over the limit is not kept: it is paged over HTTP and rejected elsewhere', {
  tags: ['slow'],
}, async () => {
  const { store } = instance();
  const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString }, prefix));
  const app = testApp(import.meta.url, { engine, entities: model.list });
  const route = httpDoor.createRoutes(model).find(({ name }) => name === 'topics-list') ?? expect.fail('No route.');
  const count = 1_001;
  const ids = Array.from({ length: count }, (_, at) => `many${String(at).padStart(4, '0')}`);
  const at = { table: 'topiclist', partition: 'all' };
  for (let from = 0; from < count; from += 100) {
    const actions = ids.slice(from, from + 100).map((topic) => {
      const properties = { EntityType: 'topics', SourcePartition: topic, SourceRow: 'topic', topic, title: 'Many' };
      return { kind: 'upsert', row: topic, properties } as const;
    });
    await storageRows.submit(app.engine.storage, { ...at, actions });
  }
  const seen: unknown[] = [];
  let pages = 0;
  for (let query: URLSearchParams | undefined = new URLSearchParams('title=Many&select=topic'); query; pages += 1) {
    const result: Internal['RouteResult'] | undefined = await route.handle(testContext(app, { route, query }));
    expect(result).toMatchObject({ status: 200 });
    expect(result?.headers).not.toHaveProperty('etag');
    seen.push(...Object(result?.body).items.map(({ topic }: { topic: string }) => topic));
    const next: string | undefined = /<\/api\/topics\?([^>]+)>; rel="next"/.exec(result?.headers?.link ?? '')?.[1];
    query = next === undefined ? undefined : new URLSearchParams(next);
  }
  expect(pages).toBe(2);
  expect(seen).toEqual(ids);
  await expect(store.topics.list()).rejects.toMatchObject({ code: 'too-large' });
  // Not kept: each call reads again.
  for (let time = 0; time < 2; time += 1)
    expect(await storageAccounts.explain(() => lookupList.read(app.engine, entity))).toHaveLength(1);
  await storageRows.submit(app.engine.storage, { ...at, actions: [{ kind: 'delete', row: String(ids[0]) }] });
  // One is from another test.
  await storageRows.submit(app.engine.storage, { ...at, actions: [{ kind: 'delete', row: String(ids[1]) }] });
  expect((await store.topics.list()).length).toBeLessThanOrEqual(1_000);
  expect(await storageAccounts.explain(() => lookupList.read(app.engine, entity))).toHaveLength(1);
  expect(await storageAccounts.explain(() => lookupList.read(app.engine, entity))).toHaveLength(0);
});
