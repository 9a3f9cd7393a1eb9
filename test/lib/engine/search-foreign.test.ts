import { beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../../lib/define.ts';
import { searchForeign } from '../../../lib/engine/search-foreign.ts';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { allPages } from '../../all-pages.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { engineCore } from '../../kit/engine.ts';
import { operationsCheck, operationsModel, type VerifyPosition } from '../../kit/operations.ts';
import { storageAccounts, storageSlots, storageTables } from '../../kit/storage.ts';

const declaration = {
  schema: z.object({ id: z.string(), city: z.string() }),
  table: 'notes',
  key: { partition: '{id}', row: 'r' },
  access: { read: [], write: [] },
} as const;
const city = interPartitionIndex({ table: 'notesbycity', partition: '{city}', row: '{id}' });
const { notes: before } = deploy(defineEntity('notes', { ...declaration, indexes: { city } }));
const { notes: after } = deploy(defineEntity('notes', declaration));
const TABLE = 'notesbycity';
/** In each, the service reads for five seconds. */
const PAGES = 9;
const PAGE_MS = 5_000;

let time = 0;
let memory = createMemoryStorage();
let engine = engineCore.createEngine(storageAccounts.openStorage(memory));
/** The position of each page that was read. */
let read: number[] = [];

beforeEach(async () => {
  time = Date.now();
  read = [];
  memory = createMemoryStorage();
  engine = { ...engineCore.createEngine(storageAccounts.openStorage(memory)), now: () => time };
  await storageTables.provision(engine.storage, {
    ...operationsModel.resourcesOf([before]),
    queues: [],
    containers: [],
  });
  await operationsModel.guardModel(engine, [before], undefined);
  await operationsModel.guardModel(engine, [after], undefined);
  memory.intercept = async (request, send) => {
    const reply = await send();
    if (request.method !== 'GET' || !request.url.includes(`/${TABLE}(`)) return reply;
    time += PAGE_MS;
    const at = Number(new URL(request.url).searchParams.get('NextRowKey') ?? 0);
    read.push(at);
    if (at + 1 === PAGES) return reply;
    reply.headers.set('x-ms-continuation-nextpartitionkey', 'p');
    reply.headers.set('x-ms-continuation-nextrowkey', String(at + 1));
    return { ...reply, bodyAsText: JSON.stringify({ value: [] }) };
  };
});

test('a search of a large table ends after its time, and another process continues it', async () => {
  expect(await searchForeign(engine, TABLE, time + 2 * PAGE_MS)).toBe('unfinished');
  const positions = async () => {
    const rows = await Array.fromAsync(engine.storage.table(storageSlots.SYSTEM_TABLE).listEntities());
    return rows.filter(({ rowKey }) => rowKey === TABLE);
  };
  expect(await positions()).toHaveLength(1);
  engine = { ...engineCore.createEngine(storageAccounts.openStorage(memory)), now: () => time };
  expect(await searchForeign(engine, TABLE)).toBe('none');
  // The first page tells that the table is large.
  expect(read).toEqual([0, 1, 0, 2, 3, 4, 5, 6, 7, 8]);
  expect(await positions()).toEqual([]);
});

test('the clean-up of a removed index searches its table for a limited time in each page', async () => {
  const times: number[] = [];
  const pages = await allPages(async (position: VerifyPosition | undefined) => {
    const since = time;
    const page = await operationsCheck.cleanUpIndex(engine, after, 'city', { entities: [after], position, top: 100 });
    times.push(time - since);
    return page;
  });
  expect(pages.length).toBeGreaterThan(1);
  expect(Math.max(...times)).toBeLessThanOrEqual(20_000 + PAGE_MS);
  expect(await storageTables.listTables(engine.storage, TABLE)).toEqual([]);
});
