// @module-tag long

import { createPipelineRequest } from '@azure/core-rest-pipeline';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { operationsMove } from '../../kit/operations.ts';
import {
  type Row,
  type Storage,
  storageAccounts,
  storageKeys,
  storageRows,
  storageSlots,
  storageTables,
} from '../../kit/storage.ts';
import { PATIENCE_MS } from '../../patience.ts';
import { createAccounts, NAMES, provisionAccounts, RESOURCES, TABLE } from './several-accounts.ts';

const insert = (storage: Storage, partition: string, row = 'r') =>
  storageRows.submit(storage, {
    table: TABLE,
    partition,
    actions: [{ kind: 'insert', row, properties: { EntityType: 'thing' } }],
  });

const keysOf = (rows: readonly Row[]) => rows.map(({ partition, row }) => `${partition}/${row}`);

test('spreads the slots of empty storage over the accounts, the same for every process', async () => {
  const { open, storage } = await provisionAccounts();
  const owners = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => (await storageSlots.ownerOf(storage, String(index))).name),
  );
  expect(new Set(owners)).toEqual(new Set(NAMES));
  const other = open();
  for (const [index, owner] of owners.entries())
    expect((await storageSlots.ownerOf(other, String(index))).name).toBe(owner);
});

test('leaves the slots of storage that has rows in the first account', async () => {
  const { open, openWith } = createAccounts();
  const [account] = openWith(undefined, 0).options;
  const alone = storageAccounts.openStorage(account as NonNullable<typeof account>);
  await storageTables.provision(alone, RESOURCES);
  await insert(alone, 'old');
  const storage = open();
  await storageTables.provision(storage, RESOURCES);
  for (let index = 0; index < 60; index += 1)
    expect((await storageSlots.ownerOf(storage, String(index))).name).toBe('first');
  expect(await storageRows.readRow(storage, { table: TABLE, partition: 'old', row: 'r' })).toBeDefined();
});

test('gives no slot to an account that is added to others', async () => {
  const { open } = createAccounts();
  const two = open(2);
  await storageTables.provision(two, RESOURCES);
  const before = (await storageSlots.ownerOf(two, 'a')).name;
  const three = open(3);
  await storageTables.provision(three, RESOURCES);
  const placements = await operationsMove.readPlacement(operationsMove.severalAccounts(three));
  const countSlots = (owned: (typeof placements)[number]['owned']) =>
    Array.from({ length: storageSlots.SLOTS }, (_, slot) => storageSlots.isOwned(owned, slot)).filter(Boolean).length;
  expect(placements.map(({ account, owned }) => [account.name, countSlots(owned)])).toEqual([
    ['first', storageSlots.SLOTS / 2],
    ['second', storageSlots.SLOTS / 2],
    ['third', 0],
  ]);
  expect((await storageSlots.ownerOf(three, 'a')).name).toBe(before);
});

test('sends each request to the account of its partition, and reads the map once in five seconds', async () => {
  const { requests, storage } = await provisionAccounts();
  await storageSlots.ownerOf(storage, 'a');
  requests.length = 0;
  for (let index = 0; index < 20; index += 1) {
    await insert(storage, `p${index}`);
    expect(await storageRows.readRow(storage, { table: TABLE, partition: `p${index}`, row: 'r' })).toBeDefined();
    expect(
      (await storageRows.readRange(storage, { table: TABLE, partition: `p${index}`, from: '' })).rows,
    ).toHaveLength(1);
  }
  expect(requests).toHaveLength(60);
  expect(new Set(requests.map(({ account }) => account))).toEqual(new Set(NAMES));
});

test.each(['performance', 'Date'] as const)('reads the map again after five seconds by %s', async (clock) => {
  const { requests, storage } = await provisionAccounts();
  await storageSlots.ownerOf(storage, 'a');
  requests.length = 0;
  await storageSlots.ownerOf(storage, 'a');
  expect(requests).toHaveLength(0);
  const now = { performance, Date }[clock].now();
  const spy = vi.spyOn({ performance, Date }[clock], 'now').mockReturnValue(now + storageSlots.LEASE_MS);
  await storageSlots.ownerOf(storage, 'a');
  spy.mockRestore();
  expect(requests).toHaveLength(1);
});

test('merges a scan in the order of keys, with pages of any size', async () => {
  const { storage } = await provisionAccounts();
  const keys = Array.from({ length: 40 }, (_, index) => [`p${index % 23}`, `r${index}`] as const);
  for (const [partition, row] of keys) await insert(storage, partition, row);
  const wanted = keysOf((await storageRows.scanTable(storage, { table: TABLE, limit: 1_000 })).rows);
  expect(wanted).toEqual(keys.map((key) => key.join('/')).sort());
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 45 }), async (limit) => {
      const read: Row[] = [];
      for (let more = true; more; ) {
        const page = await storageRows.scanTable(storage, { table: TABLE, after: read.at(-1), limit });
        expect(page.rows.length).toBeLessThanOrEqual(limit);
        if (page.more) expect(page.rows).toHaveLength(limit);
        read.push(...page.rows);
        more = page.more;
      }
      expect(keysOf(read)).toEqual(wanted);
    }),
    { numRuns: 8 },
  );
});

test('serves the slots of the other accounts while one is away, and names it', async () => {
  const { open, stopped, storage } = await provisionAccounts();
  const partitions = Array.from({ length: 12 }, (_, index) => `p${index}`);
  for (const partition of partitions) await insert(storage, partition);
  stopped.add('second');
  // A process that starts now knows no owner yet.
  for (const process of [storage, open()])
    for (const partition of partitions) {
      const owner = await storageSlots.ownerOf(storage, partition);
      const read = storageRows.readRow(process, { table: TABLE, partition, row: 'r' });
      if (owner.name !== 'second') expect(await read).toBeDefined();
      else await expect(read).rejects.toThrow('the account second does not respond');
    }
  await expect(storageRows.scanTable(storage, { table: TABLE, limit: 1 })).rejects.toThrow('the account second');
  stopped.clear();
  expect((await storageRows.scanTable(storage, { table: TABLE, limit: 100 })).rows).toHaveLength(partitions.length);
});

test.each(['callers', 'background'] as const)(
  'serves %s of the other accounts while one does not answer, also if it is asked more than once',
  async (who) => {
    const { memoryOf, storage } = await provisionAccounts();
    const placed = new Map<string | undefined, string>();
    for (let index = 0; placed.size < NAMES.length; index += 1)
      placed.set((await storageSlots.ownerOf(storage, `p${index}`)).name, `p${index}`);
    const read = (account: string) =>
      storageRows.readRow(storage, { table: TABLE, partition: placed.get(account) ?? '', row: 'r' });
    const held = Promise.withResolvers<void>();
    const second = memoryOf('second');
    let waiting = 0;
    second.intercept = async (_, execute) => {
      waiting += 1;
      await held.promise;
      return execute();
    };
    const run = who === 'background' ? storageAccounts.inBackground : (work: () => Promise<unknown>) => work();
    const order: string[] = [];
    // More than the background work that is allowed at first.
    const slow = Array.from({ length: 20 }, () => run(() => read('second').then(() => order.push('second'))));
    await vi.waitUntil(() => waiting >= 8, PATIENCE_MS);
    for (const name of ['first', 'third']) await run(() => read(name).then(() => order.push(name)));
    held.resolve();
    await Promise.all(slow);
    expect(order.slice(0, 2)).toEqual(['first', 'third']);
  },
);

test('fails instead of waiting for an account that has responded to no request for ten seconds', {
  tags: ['slow'],
}, async () => {
  const { memories, storage } = await provisionAccounts();
  const [second] = memories.slice(1);
  if (!second) throw new Error('There is no second account.');
  let partition = 'p';
  while ((await storageSlots.ownerOf(storage, partition)).name !== 'second') partition += 'p';
  const read = () => storageRows.readRow(storage, { table: TABLE, partition, row: 'r' });
  const held = Promise.withResolvers<void>();
  let sent = 0;
  second.intercept = async (_, execute) => {
    sent += 1;
    await held.promise;
    return execute();
  };
  const first = read();
  await vi.waitUntil(() => sent === 1, PATIENCE_MS);
  const now = performance.now();
  const spy = vi.spyOn(performance, 'now').mockReturnValue(now + 10_500);
  await expect(read()).rejects.toThrow('the account second does not respond');
  expect(sent).toBe(1);
  spy.mockRestore();
  held.resolve();
  expect([await first, await read()]).toEqual([undefined, undefined]);
});

test('lists, drops and misses tables of any account', async () => {
  const { storage } = await provisionAccounts();
  await storage.accounts?.list[2]?.table('things2026').createTable();
  expect(await storageTables.listTables(storage, TABLE)).toEqual(['things', 'things2026']);
  await storageTables.dropTable(storage, 'things2026');
  expect(await storageTables.listTables(storage, TABLE)).toEqual([TABLE]);
  await storage.accounts?.list[1]?.queue('work').delete();
  expect((await storageTables.compareResources(storage, RESOURCES)).missing).toEqual(['queue work (account second)']);
});

test('reads the rows of the accounts that have a table, and creates it in those that are there', async () => {
  const { storage, stopped } = await provisionAccounts();
  const partitions = Array.from({ length: 9 }, (_, index) => `p${index}`);
  const table = 'things2027';
  await storageSlots.ownerOf(storage, 'p0');
  stopped.add('second');
  await storageTables.createTable(storage, table);
  const put = (partition: string) =>
    storageRows.submit(storage, { table, partition, actions: [{ kind: 'upsert', row: 'r', properties: {} }] });
  const written: string[] = [];
  for (const partition of partitions)
    if ((await storageSlots.ownerOf(storage, partition)).name !== 'second') {
      await put(partition);
      written.push(partition);
    }
  stopped.clear();
  expect((await storageRows.scanTable(storage, { table, limit: 10 })).rows.map(({ partition }) => partition)).toEqual(
    written,
  );
  for (const partition of partitions.filter((each) => !written.includes(each)))
    await expect(put(partition)).rejects.toMatchObject({ code: 'not-provisioned' });
  await storageTables.createTable(storage, table);
  for (const partition of partitions) await put(partition);
  expect((await storageRows.scanTable(storage, { table, limit: 10 })).rows).toHaveLength(partitions.length);
  await expect(storageRows.scanTable(storage, { table: 'nowhere', limit: 1 })).rejects.toMatchObject({
    code: 'not-provisioned',
  });
});

test('rejects accounts that were exchanged', async () => {
  const { open, openWith } = await provisionAccounts();
  await storageSlots.ownerOf(open(), 'a');
  const { options } = openWith(undefined, 0);
  const [first, second, third] = options as [(typeof options)[0], (typeof options)[0], (typeof options)[0]];
  const other = storageAccounts.openStorage({
    accounts: [first, { ...third, name: 'second' }, { ...second, name: 'third' }],
  });
  await expect(
    (async () => {
      for (let index = 0; index < 60; index += 1) await storageSlots.ownerOf(other, String(index));
    })(),
  ).rejects.toThrow('the storage account second has the data of the account third');
});

test('signs for the account of the partition', async () => {
  const { storage, memories } = await provisionAccounts();
  const signer = storageKeys.tableSasSigner(storage);
  const now = Date.now();
  const owners = new Set<string | undefined>();
  for (let index = 0; index < 12; index += 1) {
    const partition = `p${index}`;
    await insert(storage, partition);
    const { name } = await storageSlots.ownerOf(storage, partition);
    owners.add(name);
    const [startsAt, expiresAt] = [new Date(now), new Date(now + 60_000)];
    const query = await signer.sign({ table: TABLE, partition, permissions: 'r', startsAt, expiresAt });
    const url = `${(await storageKeys.locateRow(storage, { table: TABLE, partition, row: 'r' })).url}?${query}`;
    const account = memories[NAMES.indexOf(name ?? '')];
    expect(await account?.httpClient.sendRequest(createPipelineRequest({ url }))).toMatchObject({ status: 200 });
  }
  expect(owners).toEqual(new Set(NAMES));
});
