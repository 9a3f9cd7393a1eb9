import { createHttpHeaders, type HttpClient, type PipelineRequest } from '@azure/core-rest-pipeline';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { createHeat, partitionOf } from '../../../lib/storage/heat.ts';
import { storageAccounts, storageRows, storageSlots } from '../../kit/storage.ts';
import { countedMetrics } from '../../metrics.ts';

const counted = countedMetrics();
afterEach(() => vi.useRealTimers());

const services = ['Table', 'Queue', 'Blob'].map((service) => `${service}Endpoint=http://127.0.0.1:1/me;`).join('');
const connectionString = `DefaultEndpointsProtocol=http;AccountName=me;AccountKey=a2V5;${services}`;
/** An account that rejects every request with the status. */
function account(status = 404) {
  const requests: PipelineRequest[] = [];
  const httpClient: HttpClient = {
    async sendRequest(request) {
      requests.push(request);
      return { request, status, headers: createHttpHeaders(), bodyAsText: '' };
    },
  };
  return { requests, storage: storageAccounts.openStorage({ connectionString, httpClient }) };
}

/** Texts that keys may have, with all that a URL, a filter or JSON writes in another way. */
const keys = fc
  .string({
    unit: fc.constantFrom('a', "'", "''", ',', '"', '%27', ' and ', 'é', '𝒳', '(', ')', '=', '&', "',RowKey="),
    minLength: 1,
  })
  .filter((key) => key.length <= 400);

test('finds the partition in every request of an operation on rows', { tags: ['slow'] }, async () => {
  await fc.assert(
    fc.asyncProperty(keys, keys, async (partition, row) => {
      const { requests, storage } = account();
      const at = { table: 'employees', partition };
      const properties = { note: `"PartitionKey":"${row}"`, key: row };
      const put = { kind: 'upsert', row, properties } as const;
      const remove = { kind: 'delete', row } as const;
      const operations = [
        () => storageRows.readRow(storage, { ...at, row }),
        () => storageRows.readRange(storage, { ...at, from: row }),
        () => storageRows.submit(storage, { ...at, actions: [{ kind: 'insert', row, properties }] }),
        () => storageRows.submit(storage, { ...at, actions: [put] }),
        () => storageRows.submit(storage, { ...at, actions: [{ kind: 'merge', row, properties, etag: '*' }] }),
        () => storageRows.submit(storage, { ...at, actions: [remove] }),
        () =>
          storageRows.submit(storage, {
            ...at,
            actions: [
              { kind: 'insert', row, properties },
              { ...put, row: `${row}2` },
            ],
          }),
        () => storageRows.submit(storage, { ...at, actions: [remove, { ...remove, row: `${row}2` }] }),
      ];
      for (const operation of operations) await operation().catch(() => undefined);
      expect(requests.map(partitionOf)).toEqual(operations.map(() => partition));
      const [found, ...others] = storage.heat.top(10);
      expect(others).toEqual([]);
      expect(found).toMatchObject({ service: 'table', resource: 'employees', partition });
      // Two reads, four single writes and two transactions of two. Older requests weigh less, which shows if the test is slow.
      expect((found?.load ?? 0) / (found?.requests ?? 1)).toBeCloseTo(10 / 8, 1);
      expect((found?.written ?? 0) / (found?.requests ?? 1)).toBeCloseTo(8 / 8, 1);
    }),
    { numRuns: 25 },
  );
});

test('counts queues, and neither blobs, scans nor operations on tables', async () => {
  const { storage } = account();
  const work = [
    () => storage.queue('transfers').sendMessage('x'),
    () => storage.tables.createTable('employees'),
    () => storage.table('employees').listEntities().byPage().next(),
    () => storage.container('photos').getBlobClient('a').getProperties(),
  ];
  for (const one of work) await one().catch(() => undefined);
  expect(storage.heat.top(10)).toMatchObject([{ service: 'queue', resource: 'transfers', partition: '' }]);
});

test('counts each rejected attempt', async () => {
  const { storage, requests } = account(429);
  const abort = AbortSignal.timeout(300);
  await storageRows
    .submit(storage, {
      table: 'employees',
      partition: 'Sales',
      actions: [{ kind: 'delete', row: '1' }],
      signal: abort,
    })
    .catch(() => undefined);
  const [{ throttled = 0, requests: rate = 1 } = {}] = storage.heat.top(1);
  expect(requests.length).toBeGreaterThan(0);
  expect(throttled / rate).toBe(1);
});

test('names a partition above a hundredth of the target in metrics by its slot, once a minute, and no other', async () => {
  // Each look at a metric forgets the others.
  const [load, ...others] = await metricsOfMinute('rowkey.partition.load');
  expect(others).toEqual([]);
  expect(load?.by).toEqual({ resource: 'logins', slot: storageSlots.slotOf('ann@contoso.com') });
  expect(Math.abs((load?.much ?? 0) - 3_000)).toBeLessThan(100);
  const throttled = await metricsOfMinute('rowkey.partition.throttled');
  expect(throttled.map(({ by }) => by)).toEqual([{ resource: 'logins', slot: storageSlots.slotOf('bob@contoso.com') }]);
  expect(storageSlots.slotOf('bob@contoso.com')).toMatch(/^[0-9a-f]{3}$/);
});

/** The points of a metric after a minute with 50 requests a second to one partition, and one to another, of which some are throttled. */
async function metricsOfMinute(name: string) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'Date'] });
  const heat = createHeat(() => Date.now());
  const note = (partition: string, status = '200') =>
    heat.note({ method: 'GET', url: `/t(PartitionKey='${partition}',RowKey='')` } as PipelineRequest, {
      service: 'table',
      resource: 'logins20261121',
      status,
    });
  for (let second = 0; second < 60; second += 1) {
    for (let each = 0; each < 50; each += 1) note('ann@contoso.com');
    note('bob@contoso.com', second % 10 === 0 ? '503' : '200');
    vi.advanceTimersByTime(1_000);
  }
  vi.useRealTimers();
  return counted(name);
}
