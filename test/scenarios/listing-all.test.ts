import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { httpDoor } from '../kit/http.ts';
import { testApp, testContext } from '../lib/http/request.ts';
import { openApp } from '../open-app.ts';

/** A small entity of one row in each partition, listed as a whole by an index with one partition. */

const topics = defineEntity('topics', {
  schema: z.object({ topic: z.string().min(1), title: z.string(), rank: z.int32(), text: z.string().optional() }),
  table: 'topics',
  key: { partition: '{topic}', row: 'topic' },
  indexes: {
    all: interPartitionIndex({ table: 'topiclist', partition: 'all', row: '{topic}', copies: ['title', 'rank'] }),
  },
  access: { read: ['reader'], write: ['reader'] },
});
const model = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [topics] });
const rowkey = openApp(import.meta.url, model);
const app = testApp(import.meta.url, { entities: model.list });
const routes = httpDoor.createRoutes(model);
const listed = ['art', 'law', 'sea'].map((topic, rank) => ({ topic, title: topic.toUpperCase(), rank }));

beforeAll(async () => {
  await rowkey.provision();
  for (const one of listed) await rowkey.store.topics.create({ ...one, text: 'long' });
});

function handle(path: string, over: Parameters<typeof testContext>[1] = {}) {
  const route = routes.find((one) => one.path === path);
  return route?.handle(testContext(app, { route, ...over }));
}

test('is one query over HTTP, in the store and in a query', async () => {
  expect(await Array.fromAsync(rowkey.store.topics.by.all.range({}))).toEqual(listed);
  expect(await Array.fromAsync(rowkey.store.topics.by.all({}, { where: { rank: { ge: 1 } } }))).toEqual(
    listed.slice(1),
  );
  expect(await handle('topics/by/all')).toMatchObject({ status: 200, body: { items: listed } });
  const query = new URLSearchParams('rank=lt:2&select=title');
  expect(await handle('topics/by/all', { query })).toMatchObject({
    body: { items: [{ title: 'ART' }, { title: 'LAW' }] },
  });
  const reads = { all: { by: 'all', entity: 'topics', values: {}, where: { rank: 2 } } };
  expect(await handle('query', { json: async () => ({ reads }) })).toMatchObject({
    body: { reads: { all: { status: 200, transactions: 1, items: listed.slice(2) } } },
  });
});
