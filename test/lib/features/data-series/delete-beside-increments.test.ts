import { expect, test } from 'vitest';
import { createEngine } from '../../../../lib/engine/engine.ts';
import { deleteSeries, increment, readSeries } from '../../../../lib/features/data-series/series-counts.ts';
import { resourcesOf } from '../../../../lib/operations/resources.ts';
import { measureCost } from '../../../../lib/storage/cost.ts';
import { provision } from '../../../../lib/storage/provision.ts';
import { openStorage } from '../../../../lib/storage/storage.ts';
import { createMemoryStorage } from '../../../../lib/testing/index.ts';
import { messageyears as entity } from '../../../fixtures/model.ts';

/** A series of two rows, of which the second one has the slots from 184 on. */

const key = { employeeId: '000123', year: 2026 };

async function openSeries() {
  const memory = createMemoryStorage();
  const open = () => createEngine(openStorage(memory));
  await provision(open().storage, { ...resourcesOf([entity]), queues: [], containers: [] });
  await increment(open(), entity, key, { slot: 1, by: 1 });
  return { memory, open };
}

test('a delete of a series takes no increment that adds a row meanwhile for one of an earlier series', async () => {
  const { memory, open } = await openSeries();
  memory.intercept = async (request, send) => {
    if (!/^(DELETE|POST)$/.test(request.method)) return send();
    memory.intercept = undefined;
    await increment(open(), entity, key, { slot: 300, by: 5 });
    return send();
  };
  await deleteSeries(open(), entity, key);
  expect(memory.intercept).toBeUndefined();
  await expect(readSeries(open(), entity, key)).rejects.toMatchObject({ code: 'not-found' });
  await increment(open(), entity, key, { slot: 300, by: 7 });
  expect((await readSeries(open(), entity, key)).counts[299]).toBe(7);
});

test('a delete whose reply is lost succeeds, and a second one finds nothing', async () => {
  const { memory, open } = await openSeries();
  await increment(open(), entity, key, { slot: 300, by: 5 });
  memory.intercept = async (request, send) => {
    if (request.method !== 'POST') return send();
    memory.intercept = undefined;
    const { headers, ...reply } = await send();
    headers.set('retry-after-ms', '1');
    return { ...reply, headers, status: 503 };
  };
  await deleteSeries(open(), entity, key);
  expect(memory.intercept).toBeUndefined();
  await expect(deleteSeries(open(), entity, key)).rejects.toMatchObject({ code: 'not-found' });
});

test('a delete takes a read of each row and one transaction', async () => {
  const { open } = await openSeries();
  await increment(open(), entity, key, { slot: 300, by: 5 });
  const cost = await measureCost(async (spent) => {
    await deleteSeries(open(), entity, key);
    return spent.transactions;
  });
  expect(cost).toBe(3);
});
