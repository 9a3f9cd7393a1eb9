import type { TableClient } from '@azure/data-tables';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, total, type Values } from '../../../lib/index.ts';
import { createMemoryStorage, type MemoryStorage } from '../../../lib/testing/index.ts';
import { readPublished } from '../../../local/capacity/published.ts';
import { createCopyCommand } from '../../../local/cli/copy-command.ts';
import type { OpenCopy } from '../../../local/cli/open-copy.ts';
import { DOLLARS } from '../../../local/copy/plan-copy.ts';
import { shop } from '../../existing/models.ts';
import { asOfService, existingRows, loadRows, readRows } from '../../existing/tables.ts';
import { IS_EVERY_CALL } from '../../fault-driver.ts';
import type { Entity } from '../../kit/define.ts';
import { engineCore, engineRead, engineWrite } from '../../kit/engine.ts';
import { operationsCheck, operationsModel } from '../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../kit/storage.ts';
import { samplePoints } from '../../points.ts';

/** What the app declares for the customers and orders of .NET, in tables of its own. */
const access = { read: ['reader'], write: ['editor'] } as const;
const shapeOf = (name: 'customers' | 'orders') =>
  shop.list.find((entity) => entity.name === name)?.schema.shape as never;
const customers = defineEntity('customers', {
  schema: z.object(
    shapeOf('customers') as { customerId: z.ZodInt; email: z.ZodString; tier: z.ZodString; orderCount: z.ZodInt },
  ),
  table: 'customers',
  key: { partition: 'c{customerId:6}', row: 'customer' },
  indexes: {
    byEmail: interPartitionIndex({ table: 'byemail', partition: '{email}', row: 'customer', unique: true }),
  },
  totals: { perTier: total({ table: 'tiers', partition: 'all', row: '{tier}', sum: ['orderCount'] }) },
  access,
});
const orders = defineEntity('orders', {
  schema: z.object(shapeOf('orders') as { customerId: z.ZodInt; orderNo: z.ZodInt }),
  table: 'orders',
  key: { partition: '{customerId:6}', row: '{orderNo:8}' },
  access,
});
const app = defineModel({ roles: ['reader', 'editor'], operatorRole: 'editor', entities: [customers, orders] });

/** Rows of some partitions, with the customer 13, whose doubles are no numbers. */
const all = existingRows('ShopData');
const SOME = all.filter((row, index) => index < 120 || row.includes('"NaN"'));
const ODD = 'C-000013';

const START = Date.parse('2026-11-29T08:00:00Z');

async function openShop(
  rows: readonly string[] = SOME,
  maps: Pick<OpenCopy, 'maps' | 'mapsBack'> = { maps: {}, mapsBack: {} },
) {
  let time = START;
  const now = () => time;
  const open = async (memory: MemoryStorage, model: typeof app | typeof shop) => {
    const list = model.list as readonly Entity[];
    const storage = storageAccounts.withShapes(storageAccounts.openStorage(memory), list);
    await storageTables.provision(storage, operationsModel.resourcesOf(list, now()));
    return engineCore.createEngine(storage, { now });
  };
  const there = createMemoryStorage({ now, account: 'shop' });
  const here = createMemoryStorage({ now, account: 'app' });
  const source = storageAccounts.openStorage(there).table('ShopData');
  await loadRows(source, rows);
  const [from, to] = [await open(there, shop), await open(here, app)];
  const opened: OpenCopy = { from, to, source: shop, model: app, ...maps };
  return {
    ...{ there, here, source, from, to },
    advance: (minutes: number) => {
      time += minutes * 60_000;
    },
    /** The lines of a run, without the last one, and its exit code. */
    async run(...given: string[]): Promise<{ lines: string[]; cost: string; code: unknown }> {
      const printed = vi.spyOn(console, 'log').mockImplementation(() => {});
      try {
        await createCopyCommand(async () => opened)
          .exitOverride()
          .configureOutput({ writeErr: () => {} })
          .parseAsync(['--from', 'shop', '--source', 'shop.ts', ...given], { from: 'user' });
        const lines = printed.mock.calls.map(([line]) => String(line));
        return { lines: lines.slice(0, -1), cost: lines.at(-1) ?? '', code: process.exitCode };
      } finally {
        printed.mockRestore();
        process.exitCode = undefined;
      }
    },
    rowsOf: async (table: string) => readRows(storageAccounts.openStorage(here).table(table)),
  };
}

type Shop = Awaited<ReturnType<typeof openShop>>;
type Sent = Readonly<Record<string, unknown>>;

/** The property of each field, with its exact text. */
function propertiesOf(name: string): (row: string) => Sent {
  const { properties = {} } = (shop.list as readonly Entity[]).find((entity) => entity.name === name)?.existing ?? {};
  const names = Object.entries(properties).map(([field, given]) => [field, Object(given).name ?? given] as const);
  const toText = (value: unknown, type: unknown) => (type === 'Edm.DateTime' ? asOfService(value) : value);
  return (row) => {
    const exact = exactly(row);
    return Object.fromEntries(
      names.map(([field, property]) => [field, toText(exact[property], exact[`${property}@odata.type`])]),
    );
  };
}

const exactly = (row: string): Sent => JSON.parse(row.replace(/":(-?\d+(\.\d+)?(E[-+]?\d+)?)(?=[,}])/gi, '":"#$1"'));
const keyed = (rows: readonly string[], kind: RegExp) => rows.filter((row) => kind.test(row) && !row.includes('"NaN"'));

const CUSTOMER = /"RowKey":"customer"/;
const ORDER = /"RowKey":"order-/;
const customersIn = (rows: readonly string[]) => keyed(rows, CUSTOMER).length;
const ordersIn = (rows: readonly string[]) => keyed(rows, ORDER).length;
const linesIn = (rows: readonly string[]) => rows.length - customersIn(rows) - ordersIn(rows) - 1;

async function findingsOf({ to }: Shop): Promise<string[]> {
  const pages = (app.list as readonly Entity[]).map((entity) =>
    operationsCheck.verifyPage(to, entity, { top: 1_000, repair: false, patience: 0 }),
  );
  return (await Promise.all(pages)).flatMap(({ findings }) => findings.map(({ kind }) => kind));
}

test('copies all entities with the values that .NET wrote, leaves other rows, and says what it rejects', async () => {
  const copy = await openShop();
  const { lines, code } = await copy.run();
  const [customerCount, orderCount] = [customersIn(SOME), ordersIn(SOME)];
  expect(lines).toEqual([
    expect.stringContaining(
      `${SOME.length} rows; ${linesIn(SOME)} are of no entity and are left out, with keys such as C-# / line-#-# (`,
    ),
    `customers: ${customerCount + 1} rows, ${customerCount} created, 0 changed, 0 unchanged, 0 left out by map, 1 rejected.`,
    `customers "${ODD} / customer" is rejected: The stored value of discount, rating is of another type than declared.`,
    `orders: ${orderCount} rows, ${orderCount} created, 0 changed, 0 unchanged, 0 left out by map, 0 rejected.`,
    'orders: the property LegacyFlag of 4 rows is not copied, because no field names it.',
  ]);
  expect(code).toBe(1);
  for (const [name, kind] of [
    ['customers', CUSTOMER],
    ['orders', ORDER],
  ] as const) {
    const stored = await copy.rowsOf(name);
    const wanted = keyed(SOME, kind).map(propertiesOf(name));
    const fields = Object.keys(wanted[0] ?? {});
    expect(stored.map(exactly).map((row) => Object.fromEntries(fields.map((field) => [field, row[field]])))).toEqual(
      wanted,
    );
  }
  expect(await readRows(copy.source)).toEqual(SOME);
  expect(await findingsOf(copy)).toEqual([]);
});

const change = (client: TableClient, row: Sent) => client.upsertEntity(row as never, 'Merge');
const FIRST = { partitionKey: 'C-000001', rowKey: 'customer' };

test('a later run copies only what the other program has changed since', async () => {
  const copy = await openShop(SOME.filter((row) => !row.includes('"NaN"')));
  // The mark is later than the other rows by more than the margin.
  copy.advance(10);
  await change(copy.source, { ...FIRST, Name: 'Bob' });
  expect((await copy.run()).code).toBeUndefined();
  copy.advance(60);
  expect((await copy.run()).lines[0]).toContain(': 1 rows since 2026-11-29T08:05:00.0000000Z');
  await change(copy.source, { ...FIRST, Name: 'Ann' });
  await copy.source.deleteEntity('C-000002', 'customer');
  copy.advance(60);
  const { lines } = await copy.run();
  expect(lines).toEqual([
    expect.stringContaining(': 1 rows since 2026-11-29T08:05:00'),
    'customers: 1 rows, 0 created, 1 changed, 0 unchanged, 0 left out by map, 0 rejected.',
    'orders: 0 rows, 0 created, 0 changed, 0 unchanged, 0 left out by map, 0 rejected.',
  ]);
  // Only rows five minutes before the last one are read again.
  expect((await copy.run()).lines.slice(0, 2)).toEqual([
    expect.stringContaining(': 1 rows since 2026-11-29T09:05:00'),
    'customers: 1 rows, 0 created, 0 changed, 1 unchanged, 0 left out by map, 0 rejected.',
  ]);
  const compared = await copy.run('--compare');
  expect(compared).toMatchObject({ lines: ['customers "2" is extra.', '1 differences.'], code: 1 });
  expect(await copy.run('--compare', '--delete')).toMatchObject({
    lines: ['customers "2" is extra.', '1 differences.', '1 extra entities deleted.'],
    code: undefined,
  });
  expect(await copy.run('--compare')).toMatchObject({ lines: ['0 differences.'], code: undefined });
});

test('a row that changes after the scan has read it is copied by the next run, however long the scan takes', async () => {
  // More than a page.
  const rows = all.slice(0, 1_050).filter((row) => !row.includes('"NaN"'));
  const [partitionKey, rowKey] = /"PartitionKey":"([^"]+)","RowKey":"([^"]+)"/.exec(rows.at(-1) ?? '')?.slice(1) ?? [];
  const copy = await openShop(rows);
  let isChanged = false;
  copy.there.intercept = async (request, send) => {
    const response = await send();
    if (request.method === 'GET' && !isChanged) {
      isChanged = true;
      copy.advance(10);
      await change(copy.source, { ...FIRST, Name: 'Ann' });
      // Later than the change by more than the margin, and on the page that the scan reads next.
      copy.advance(10);
      await change(copy.source, { partitionKey, rowKey, LegacyFlag: true });
    }
    return response;
  };
  await copy.run();
  copy.there.intercept = undefined;
  expect((await copy.run()).lines[1]).toContain(' 1 changed');
  expect(await copy.run('--compare')).toMatchObject({ lines: ['0 differences.'] });
});

test('names each difference, and deletes nothing of an entity with rejected rows', async () => {
  const copy = await openShop();
  await copy.run();
  await change(copy.source, { ...FIRST, Name: 'Ann', Discount: { type: 'Double', value: 9 } });
  await engineWrite.deleteEntity(copy.to, app.entities.orders as never, { customerId: 1, orderNo: 451 });
  await copy.source.deleteEntity('C-000002', 'customer');
  const { lines, code } = await copy.run('--compare', '--delete');
  expect(lines.toSorted()).toEqual(
    [
      'customers "1" differs in name, discount.',
      'customers "2" is extra.',
      `customers "${ODD} / customer" is rejected: The stored value of discount, rating is of another type than declared.`,
      'orders "1/451" is missing.',
      '4 differences.',
      '0 extra entities deleted.',
      '1 were left: some rows of customers are not accepted, and may be theirs.',
    ].toSorted(),
  );
  expect(code).toBe(1);
});

test('a dry run writes nothing and says what a run would do', async () => {
  const copy = await openShop();
  const written: string[] = [];
  const note = async (request: { method: string }, send: () => Promise<never>) => {
    if (request.method !== 'GET') written.push(request.method);
    return send();
  };
  copy.here.intercept = note as never;
  copy.there.intercept = note as never;
  const { lines, code } = await copy.run('--dry-run');
  expect(written).toEqual([]);
  expect(code).toBe(1);
  expect(lines).toContain(`orders: ${ordersIn(SOME)} rows, ${ordersIn(SOME)} to write, 0 left out by map, 0 rejected.`);
  expect(lines.at(-1)).toMatch(
    /^A run would take about \d+ storage transactions, for about \$0\.\d{4}\. Nothing was written\.$/,
  );
});

test('the transactions that a dry run says are those of the run', async () => {
  const rows = keyed(all, CUSTOMER).slice(0, 200);
  const copy = await openShop(rows);
  const numberIn = (text = '') => Number(/([\d,]+) storage transactions/.exec(text)?.[1]?.replaceAll(',', ''));
  const planned = numberIn((await copy.run('--dry-run')).lines.at(-1));
  const spent = numberIn((await copy.run()).cost);
  expect(planned / spent).toBeGreaterThan(0.8);
  expect(planned / spent).toBeLessThan(1.25);
});

test('a mapping changes values and leaves rows out, and one back is needed to copy back', async () => {
  const rows = SOME.filter((row) => !row.includes('"NaN"'));
  const maps: Record<string, (values: Values) => Values | undefined> = {
    customers: (values) => (values.tier === 'Gold' ? undefined : { ...values, name: `${values.name}!` }),
  };
  const copy = await openShop(rows, { maps, mapsBack: {} });
  const gold = keyed(rows, CUSTOMER).filter((row) => row.includes('"Tier":"Gold"')).length;
  const { lines } = await copy.run();
  expect(lines[1]).toContain(
    `${customersIn(rows) - gold} created, 0 changed, 0 unchanged, ${gold} left out by map, 0 rejected.`,
  );
  expect((await copy.run('--compare')).lines).toEqual(['0 differences.']);
  await expect(copy.run('--back')).rejects.toThrow(
    'The source maps customers: to copy back, it must export mapBack for it.',
  );
});

test('names rows that a mapping brings to one key, and never replaces one by another', async () => {
  const rows = SOME.filter((row) => !row.includes('"NaN"'));
  const map = (values: Values): Values => ({ ...values, customerId: Math.max(Number(values.customerId), 2) });
  const copy = await openShop(rows, { maps: { customers: map }, mapsBack: {} });
  const rejected = 'customers "C-000002 / customer" is rejected: Its key is that of C-000001 / customer.';
  expect(await copy.run('--dry-run')).toMatchObject({ lines: expect.arrayContaining([rejected]), code: 1 });
  expect(await copy.run()).toMatchObject({ lines: expect.arrayContaining([rejected]), code: 1 });
  copy.advance(60);
  // Alone, it would be no second one.
  await change(copy.source, { partitionKey: 'C-000002', rowKey: 'customer', Name: 'Bob' });
  expect(await copy.run()).toMatchObject({ lines: expect.arrayContaining([rejected]), code: 1 });
  expect(await copy.run('--compare')).toMatchObject({ lines: [rejected, '1 differences.'], code: 1 });
  const { values } = await engineRead.readEntity(copy.to, app.entities.customers as never, { customerId: 2 });
  expect(rows[0]).toContain(`"Name":"${values.name}"`);
});

test('copies back what changed in the app, and no other row', async () => {
  const rows = SOME.filter((row) => !row.includes('"NaN"'));
  const copy = await openShop(rows);
  await copy.run();
  expect(await copy.run('--back')).toMatchObject({ code: undefined });
  expect(await readRows(copy.source)).toEqual(rows);
  const { customers: kind } = app.entities as never as Record<string, Entity>;
  await engineWrite.patchEntity(copy.to, kind as Entity, { customerId: 1 }, { name: 'Ann' });
  const { values } = await engineRead.readEntity(copy.to, kind as Entity, { customerId: 1 });
  await engineWrite.createEntity(copy.to, kind as Entity, { ...values, customerId: 999_999, email: 'new@example.org' });
  expect((await copy.run('--back', '--compare')).lines.toSorted()).toEqual([
    '2 differences.',
    'customers "1" differs in name.',
    'customers "999999" is missing.',
  ]);
  expect((await copy.run('--back')).lines).toContainEqual(expect.stringContaining('1 created, 1 changed'));
  const back = await readRows(copy.source);
  const without = (row: string) =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(JSON.parse(row))
          .filter(([name]) => !name.startsWith('Rowkey'))
          .sort(),
      ),
    );
  const sorted = (row: string) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(row)).sort()));
  const others = (all: readonly string[]) =>
    all.filter((row) => !row.includes('"Ann"') && !/C-999999|"C-000001","RowKey":"customer"/.test(row));
  expect(others(back)).toEqual(others(rows));
  const changed = back.find((row) => /"C-000001","RowKey":"customer"/.test(row)) ?? '';
  const before = rows.find((row) => /"C-000001","RowKey":"customer"/.test(row)) ?? '';
  expect(without(changed)).toBe(sorted(before.replace(/"Name":"[^"]*"/, '"Name":"Ann"')));
  expect((await copy.run('--compare')).lines).toEqual(['0 differences.']);
});

test('names entities that a mapping back brings to one row, and writes the first of them', async () => {
  const rows = SOME.filter((row) => !row.includes('"NaN"'));
  const back = (values: Values): Values => ({ ...values, customerId: Math.max(Number(values.customerId), 2) });
  const copy = await openShop(rows, { maps: {}, mapsBack: { customers: back } });
  await copy.run();
  const { lines, code } = await copy.run('--back');
  expect(lines).toContain('customers "2" is not accepted: Another row has the same key.');
  expect(code).toBe(1);
  const { values } = await engineRead.readEntity(copy.to, app.entities.customers as never, { customerId: 1 });
  expect((await copy.source.getEntity('C-000002', 'customer')).Name).toBe(values.name);
});

test('deletes in the old tables only what the app has deleted, and no row that was never copied', async () => {
  const isWanted = (values: Values) => (values.tier === 'Gold' ? undefined : values);
  const copy = await openShop(SOME, { maps: { customers: isWanted }, mapsBack: { customers: (values) => values } });
  await copy.run();
  await engineWrite.deleteEntity(copy.to, app.entities.orders as never, { customerId: 1, orderNo: 451 });
  const { lines, code } = await copy.run('--back', '--delete');
  const extra = lines.filter((line) => line.includes('extra'));
  expect(extra).toEqual(['orders "1/451" is extra.', '1 extra entities deleted.']);
  expect(code).toBeUndefined();
  expect(await readRows(copy.source)).toEqual(SOME.filter((row) => !row.includes('"order-00000451"')));
});

test.each(['before', 'after'] as const)(
  'a copy that dies right %s a call is completed by a second one',
  { tags: ['slow'] },
  async (side) => {
    const rows = all.filter((row, index) => index < 8 || (index < 300 && CUSTOMER.test(row)));
    const whole = await openShop(rows);
    let calls = 0;
    const count = (_: unknown, send: () => Promise<never>) => {
      calls += 1;
      return send();
    };
    whole.here.intercept = count as never;
    whole.there.intercept = count as never;
    await whole.run();
    expect(calls).toBeGreaterThan(10);
    for (const at of samplePoints(calls, IS_EVERY_CALL ? calls : 6)) {
      const copy = await openShop(rows);
      let call = 0;
      const die = async (_: unknown, send: () => Promise<never>) => {
        call += 1;
        if (call > at || (call === at && side === 'before')) throw new Error('This process is dead.');
        const response = await send();
        if (call === at) throw new Error('This process is dead.');
        return response;
      };
      copy.here.intercept = die as never;
      copy.there.intercept = die as never;
      await copy.run().catch(() => undefined);
      copy.here.intercept = undefined;
      copy.there.intercept = undefined;
      // Between the runs, the other program changes a row that may have been copied.
      copy.advance(60);
      await change(copy.source, { ...FIRST, Name: 'Ann' });
      expect((await copy.run()).code, `call ${at}`).toBeUndefined();
      expect((await copy.run('--compare')).lines, `call ${at}`).toEqual(['0 differences.']);
      expect(await findingsOf(copy), `call ${at}`).toEqual([]);
    }
  },
);

test('estimates at the published prices of requests', async () => {
  const { prices } = await readPublished();
  expect(DOLLARS).toEqual({ tables: prices.tableRequests.value, queues: prices.queueRequests.value });
});

test('a row that the first run rejects is tried again by the next run', async () => {
  const rows = SOME.filter((row) => !row.includes('"NaN"'));
  const [one, other] = keyed(rows, CUSTOMER).map((row) => JSON.parse(row));
  const copy = await openShop(rows.map((row) => row.replace(`"Email":"${other.Email}"`, `"Email":"${one.Email}"`)));
  copy.advance(60);
  // Later than all other rows by more than the margin.
  const [order] = keyed(rows, ORDER).map((row) => JSON.parse(row));
  await change(copy.source, { partitionKey: order.PartitionKey, rowKey: order.RowKey, Note: 'later' });
  expect((await copy.run()).code).toBe(1);
  copy.advance(60);
  await change(copy.source, { ...FIRST, Email: other.Email });
  // The row may be tried before the value is free.
  await copy.run();
  expect((await copy.run()).code).not.toBe(1);
  expect(await copy.run('--compare')).toMatchObject({ lines: ['0 differences.'] });
});

test('a rejected row is tried again by the next run', async () => {
  const rows = SOME.filter((row) => !row.includes('"NaN"'));
  const opened = await openShop(rows);
  await opened.run();
  const [one, other] = keyed(rows, CUSTOMER).map((row) => JSON.parse(row));
  const [order] = keyed(rows, ORDER).map((row) => JSON.parse(row));
  const change = ({ PartitionKey, RowKey }: { PartitionKey: string; RowKey: string }, fields: object) =>
    opened.source.updateEntity({ partitionKey: PartitionKey, rowKey: RowKey, ...fields }, 'Merge');
  opened.advance(20);
  // The first one in the order of keys takes the value that the second one leaves.
  await change(one, { Email: other.Email });
  await change(other, { Email: 'new@contoso.com' });
  opened.advance(20);
  // More than the margin later than those.
  await change(order, { Note: 'later' });
  expect((await opened.run()).code).toBe(1);
  opened.advance(20);
  expect((await opened.run()).code).not.toBe(1);
  expect((await opened.run('--compare')).code).not.toBe(1);
});
