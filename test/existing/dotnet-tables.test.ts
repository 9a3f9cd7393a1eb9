import { expect, test } from 'vitest';
import { openApp } from '../open-app.ts';
import { testStorage } from '../storage.ts';
import { identity, log, shop } from './models.ts';
import { asOfService, type ExistingTable, existingRows, loadRows, openTable, readRows } from './tables.ts';

/** The tables that .NET wrote, in place: each row of a declared kind is read and written, and every other value stays byte for byte. */

const connection = testStorage(import.meta.url);

/** Loads rows of some partitions of a table. */
async function load(table: ExistingTable, isWanted: (row: string) => boolean): Promise<readonly string[]> {
  const rows = existingRows(table).filter(isWanted);
  await loadRows(openTable(connection, table), rows);
  return rows;
}

/** The rows as they are now, without what Rowkey stores beside the properties of the other program. */
async function rowsNow(table: ExistingTable): Promise<Record<string, unknown>[]> {
  const rows = await readRows(openTable(connection, table));
  return rows.map((row) =>
    Object.fromEntries(Object.entries(JSON.parse(withTextNumbers(row))).filter(([name]) => !name.startsWith('Rowkey'))),
  );
}
/** A number keeps its text: 3.0 is a Double and 3 an Int32. */
const withTextNumbers = (row: string) => row.replace(/":(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[,}])/g, '":"#$1"');
const parsed = (rows: readonly string[]): Record<string, unknown>[] =>
  rows.map((row) => JSON.parse(withTextNumbers(row)));

test('customers and orders of a shop', { tags: ['slow'] }, async () => {
  const rows = parsed(await load('ShopData', (row) => /"PartitionKey":"C-0000[01]\d"/.test(row)));
  const app = openApp(import.meta.url, shop);
  await app.provision();
  const kindOf = ({ RowKey }: Record<string, unknown>) => String(RowKey).split('-', 1)[0];
  const { store } = app;
  for (const { PartitionKey, RowKey } of rows) {
    const key = { customerId: Number(String(PartitionKey).slice(2)) };
    if (RowKey === 'customer') {
      const { values } = (await store.customers.get(key).catch(() => undefined)) ?? {};
      // The customer with a Double that is no number.
      if (key.customerId === 13) expect(values).toBeUndefined();
      else await store.customers.update(key, { phone: '1' });
    } else if (kindOf({ RowKey }) === 'order') {
      const order = { ...key, orderNo: Number(String(RowKey).slice(6)) };
      await store.orders.update(order, { note: 'seen' });
    }
  }
  const expected = rows.map((row) => {
    if (row.PartitionKey !== 'C-000013' && row.RowKey === 'customer') return { ...row, Phone: '1' };
    return kindOf(row) === 'order' ? { ...row, Note: 'seen' } : row;
  });
  expect(await rowsNow('ShopData')).toEqual(expected);
});

test('a log with the newest first', { tags: ['slow'] }, async () => {
  const rows = parsed(await load('RequestLog', (row) => row.includes('"PartitionKey":"20240301"'))).slice(0, 40);
  const app = openApp(import.meta.url, log);
  await app.provision();
  const items = await Array.fromAsync(app.store.requests.range({ day: '20240301' }));
  expect(items.slice(0, 40).map(({ requestId, message, loggedOn }) => [requestId, message, loggedOn])).toEqual(
    rows.map((row) => [row.RequestId, row.Message, asOfService(row.LoggedOn)]),
  );
  const { loggedOn = '', requestId = '' } = items[7] ?? {};
  const one = await app.store.requests.get({ day: '20240301', loggedOn, requestId });
  expect(one?.values.message).toBe(rows[7]?.Message);
});

test('users of an identity store, and their logins and claims', { tags: ['slow'] }, async () => {
  const some = /"PartitionKey":"(user_0000[01]\d|(email|name)_USER[01]?\d@?.*)"/i;
  const rows = parsed(await load('Identity', (row) => some.test(row)));
  const app = openApp(import.meta.url, identity);
  await app.provision();
  const { store } = app;
  for (const { PartitionKey, RowKey } of rows) {
    const [kind, userId = ''] = String(PartitionKey).split('_');
    const [of, id = ''] = String(RowKey).split('_');
    if (kind !== 'user') continue;
    if (of === 'profile') await store.users.update({ userId }, { accessFailedCount: 9 });
    else if (of === 'login') await store.logins.update({ userId, provider: id }, { displayName: 'Seen' });
    else await store.claims.update({ userId, number: Number(id) }, { value: 'seen' });
  }
  const expected = rows.map((row) => {
    if (row.RowKey === 'profile') return { ...row, AccessFailedCount: '#9' };
    if (/^login_/.test(String(row.RowKey))) return { ...row, DisplayName: 'Seen' };
    return /^claim_/.test(String(row.RowKey)) ? { ...row, Value: 'seen' } : row;
  });
  expect(await rowsNow('Identity')).toEqual(expected);
});
