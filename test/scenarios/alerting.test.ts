import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFaultProxy } from '../fault-proxy.ts';
import { alertRules } from '../infra/alert-rules.ts';
import { type MetricRow, startIngestion } from '../ingestion.ts';
import { PATIENCE_MS } from '../patience.ts';

/** Drives the app into the state of each alert, and checks that what the alert reads arrives at Application Insights. */

const ingestion = await startIngestion();
// Set before the product starts, because it inherits the environment.
for (const [name, value] of Object.entries(ingestion.environment)) vi.stubEnv(name, value);

import { appFunctions } from '../kit/api.ts';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

type Proxy = Awaited<ReturnType<typeof startFaultProxy>>;
let proxy: Proxy;
const product = useProduct(import.meta.url, {
  hasTelemetry: true,
  through: async (connectionString) => {
    proxy = await startFaultProxy(connectionString);
    return proxy.connectionString;
  },
});
afterAll(async () => {
  await proxy.stop();
  ingestion.stop();
});

/** Metrics are sent every minute. */
const SENT_WITHIN = { timeout: PATIENCE_MS + 120_000, interval: 500 };
const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);

/** The model has no backup, and no table of another program. */
const TIMERS = Object.keys(appFunctions.TIMERS).filter((timer) => !timer.startsWith('backup') && timer !== 'follow');

/** How each alert judges the rows of its metric, as its query and its threshold do. */
const FIRES: Readonly<Record<string, (rows: readonly MetricRow[], threshold: number) => boolean>> = {
  poison: (rows, threshold) => sum(rows.filter(by('queue', 'index-changes')).map(({ Sum }) => Sum)) > threshold,
  'reconcile-lag': (rows, threshold) => Math.max(...rows.map(({ Max }) => Max)) > threshold,
  'server-errors': (rows, threshold) => {
    const failed = rows.filter(({ Properties }) => Properties.status?.startsWith('5'));
    const [some, all] = [failed, rows].map((counted) => sum(counted.map(({ ItemCount }) => ItemCount)));
    return all !== undefined && some !== undefined && all >= 20 && (100 * some) / all > threshold;
  },
  // This alert fires for a timer that does not appear.
  'timer-missed': (rows) => TIMERS.every((timer) => rows.some(by('timer', timer))),
  // This alert fires if no metric appears.
  'telemetry-missing': (rows) => rows.length > 0,
  inconsistent: (rows, threshold) =>
    Math.max(...rows.filter(by('entity', 'employees')).map(({ Sum }) => Sum)) > threshold,
  'storage-throttled': (rows, threshold) =>
    sum(rows.filter((row) => by('resource', 'movies')(row) && by('status', '503')(row)).map(({ Sum }) => Sum)) >
    threshold,
  // The first part of the measure, the load, needs more requests than a test can send.
  'hot-partition': (rows, threshold) =>
    5 *
      sum(
        rows
          .filter((row) => by('resource', 'movies')(row) && row.Name === 'rowkey.partition.throttled')
          .map(({ Sum }) => Sum),
      ) >
    threshold,
};

function by(property: string, value: string) {
  return ({ Properties }: MetricRow) => Properties[property] === value;
}

/** The rows that the query of an alert reads: it names the metric and its properties. */
function rowsFor(body: string): MetricRow[] {
  const [, operator, name = ''] = /where Name (==|startswith) '([\w.]+)'/.exec(body) ?? [];
  // With one account, no metric names it.
  const named = [...body.matchAll(/Properties\.(\w+)/g)].map(([, property = '']) => property);
  const properties = named.filter((property) => property !== 'account');
  return ingestion.metrics.filter(
    ({ Name, Properties }) =>
      (operator === '==' ? Name === name : Name.startsWith(name)) &&
      properties.every((property) => Properties[property] !== undefined),
  );
}

beforeAll(async () => {
  const hr = product.as('hr');
  const one = somebody({ department: 'Alerted' });
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  await product.storage.queue('index-changes').sendMessage('not JSON');
  // The weekly check repairs most findings, and no row that its key does not lead to.
  const rows = product.storage.table('employees');
  const row = await rows.getEntity('Alerted', `empid_${one.employeeId}`);
  await rows.createEntity({ ...row, partitionKey: 'Alerted', rowKey: `${row.rowKey}x` });
  proxy.throttle('/movies(');
  const read = product.as('reader');
  const failed = await Promise.all(Array.from({ length: 25 }, () => read('GET', '/api/movies/Western')));
  expect(failed.map(({ status }) => status)).toEqual(failed.map(() => 503));
  proxy.throttle(undefined);
  for (const timer of TIMERS) expect(await product.runTimer(timer)).toBe(202);
});

/** The cap of ingestion is an event of the workspace. The app has no backup. */
const NOT_HERE = ['ingestion-capped', 'backup-old'];

test('every alert on the app has its state here', () => {
  const expected = alertRules.map(({ name }) => name).filter((name) => !NOT_HERE.includes(name));
  expect(Object.keys(FIRES).toSorted()).toEqual(expected.toSorted());
});

describe('what an alert reads arrives', () => {
  const rules = alertRules.filter(({ name }) => FIRES[name]);
  // The limit of the lag is a parameter, in seconds. Here a message takes less.
  test.each(rules)('$name', async ({ name, body, threshold = 0 }) => {
    await vi.waitFor(() => expect(FIRES[name]?.(rowsFor(body), threshold)).toBe(true), SENT_WITHIN);
  });
});
