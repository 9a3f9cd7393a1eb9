import { beforeAll, describe, expect, test } from 'vitest';
import { storageAccounts, storageKeys, storageRows, storageTables, type TableSasRequest } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

describe('a grant sent to storage', () => {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  const signer = storageKeys.tableSasSigner(storage);
  // Characters that a key from a template can contain and that have a meaning in a URL, except `%`, which Azurite
  // decodes twice.
  const address = { table: 'granted', partition: "O'Neil & Söhne (50+)", row: "empid_1 'a'=b;c,d" };
  const { row, ...indexEntry } = address;
  const headers = { accept: 'application/json;odata=nometadata', 'content-type': 'application/json' };
  const minutesFromNow = (minutes: number) => new Date(Date.now() + minutes * 60_000);

  function sign(over: Partial<TableSasRequest> = {}): Promise<string> {
    const rows = { table: address.table, partition: address.partition, firstRow: row, lastRow: row };
    const times = { startsAt: minutesFromNow(-15), expiresAt: minutesFromNow(15) };
    return signer.sign({ ...rows, ...times, permissions: 'r', ...over });
  }

  async function call(query: string, method = 'GET'): Promise<Response> {
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{"Age":1}' };
    return fetch(`${(await storageKeys.locateRow(storage, address)).url}?${query}`, {
      method,
      headers: { ...headers, 'if-match': '*' },
      ...body,
    });
  }

  beforeAll(async () => {
    await storageTables.createTable(storage, address.table);
    await storageRows.submit(storage, {
      ...indexEntry,
      actions: [{ kind: 'insert', row, properties: { Name: 'Ann' } }],
    });
  });

  test('reads its row by its URL alone', async () => {
    const response = await call(await sign());
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ PartitionKey: address.partition, RowKey: row, Name: 'Ann' });
  });

  test('does not allow a write', async () => {
    const query = await sign();
    for (const method of ['MERGE', 'PUT', 'DELETE']) expect((await call(query, method)).status).toBe(403);
    expect(await (await call(query)).json()).not.toHaveProperty('Age');
  });

  test('is rejected before it begins and after it ends', async () => {
    expect((await call(await sign({ expiresAt: minutesFromNow(-1) }))).status).toBe(403);
    expect((await call(await sign({ startsAt: minutesFromNow(1) }))).status).toBe(403);
  });

  test('is rejected if its query was altered', async () => {
    const query = await sign();
    const longer = query.replace(/se=[^&]+/, `se=${encodeURIComponent('2099-01-01T00:00:00Z')}`);
    const more = query.replace('sp=r', 'sp=raud');
    const other = query.replace(/erk=[^&]+/, 'erk=z');
    for (const changed of [longer, more, other]) {
      expect(changed).not.toBe(query);
      expect((await call(changed)).status).toBe(403);
    }
  });

  test('is rejected for another table', async () => {
    expect((await call(await sign({ table: 'another' }))).status).toBe(403);
  });
});

test('has a row address with doubled quotes and encoded characters', async () => {
  const storage = storageAccounts.openStorage({ connectionString: 'UseDevelopmentStorage=true' });
  const endpoint = 'http://127.0.0.1:10002/devstoreaccount1';
  expect(await storageKeys.locateRow(storage, { table: 'employees', partition: "O'Neil & Co", row: 'a/b%é' })).toEqual({
    url: `${endpoint}/employees(PartitionKey='O''Neil%20%26%20Co',RowKey='a%2Fb%25%C3%A9')`,
    endpoint,
    table: 'employees',
  });
});

test('is signed for the short name of the emulator, over HTTP', async () => {
  const startsAt = new Date();
  const rows = { table: 'employees', partition: 'Sales', firstRow: 'a', lastRow: 'a' };
  const signer = storageKeys.tableSasSigner(
    storageAccounts.openStorage({ connectionString: 'UseDevelopmentStorage=true' }),
  );
  const sas = new URLSearchParams(await signer.sign({ ...rows, startsAt, expiresAt: startsAt, permissions: 'r' }));
  expect([sas.get('spr'), sas.has('sig')]).toEqual(['https,http', true]);
});
