import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test, vi } from 'vitest';
import { buildFixtures } from '../fixtures/build.ts';
import { modelWithPrefix } from '../fixtures/model.ts';
import { operationsModel } from '../kit/operations.ts';
import { PATIENCE_MS } from '../patience.ts';
import { useProduct } from '../product.ts';
import { rowsOf, somebody } from '../world.ts';

/** The product on one machine, with a model that has a prefix. */
const app = {
  model: modelWithPrefix,
  folder: fileURLToPath(new URL('../../dist/fixtures-with-prefix', import.meta.url)),
  packs: undefined,
};
beforeAll(() => buildFixtures(app, 'functions-with-prefix.ts'));
const product = useProduct(import.meta.url, { app });
const hr = product.as(['hr', 'operator', 'reader']);

test('serves, archives through its queue, and audits with the routes of a model without a prefix', async () => {
  await expect.poll(() => hr('GET', '/api/health')).toMatchObject({ status: 200, body: { status: 'ok' } });
  const one = somebody({ department: 'Prefixed' });
  const created = await hr('POST', '/api/employees', { body: one });
  const path = `/api/employees/Prefixed/${one.employeeId}`;
  expect(created).toMatchObject({ status: 201 });
  expect(created.headers.get('location')).toBe(path);
  expect((await hr('GET', `/api/employees/by/emailCompanyWide/${one.email}`)).status).toBe(200);
  const explained = await hr('DELETE', `${path}?explain=true`);
  expect(explained.body.steps).toContainEqual(expect.objectContaining({ write: 'rows', table: 'employees' }));

  const { headers } = await hr('POST', `${path}/archive`);
  await vi.waitFor(
    async () => expect((await hr('GET', headers.get('location') ?? '')).body).toMatchObject({ status: 'succeeded' }),
    { timeout: PATIENCE_MS },
  );
  expect((await hr('GET', `/api/formeremployees/Prefixed/${one.employeeId}`)).status).toBe(200);
  const [from, to] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
  const { items } = (await hr('GET', `/api/operations/audit?from=${from}&to=${to}`)).body;
  expect(items).toContainEqual(expect.objectContaining({ operation: 'create', table: 'employees' }));
  expect(await rowsOf(product.storage, 'poison')).toEqual([]);
});

test('runs its timers, and keeps everything under its prefix', async () => {
  expect(await product.runTimer('shop-roll-periods')).toBe(202);
  expect(await product.runTimer('roll-periods')).toBe(404);
  const { tables, queues, containers } = operationsModel.resourcesOf(modelWithPrefix.list, Date.now());
  const names = async (listed: AsyncIterable<{ name?: string }>) =>
    (await Array.fromAsync(listed, ({ name = '' }) => name)).toSorted();
  const { storage } = product;
  expect(await names(storage.tables.listTables())).toEqual(tables.map((name) => `shop0${name}`).toSorted());
  expect(await names(storage.queues.listQueues())).toEqual(queues.map((name) => `shop-${name}`).toSorted());
  // The real host keeps locks, the state of timers and keys in containers of its own.
  const ownContainers = (await names(storage.blobs.listContainers())).filter((name) => !/^azure-webjobs-/.test(name));
  expect(ownContainers).toEqual(containers.map((name) => `shop-${name}`).toSorted());
});
