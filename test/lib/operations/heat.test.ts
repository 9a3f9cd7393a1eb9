import { expect, test } from 'vitest';
import { readHeat } from '../../../lib/operations/heat.ts';
import { model } from '../../fixtures/model.ts';
import type { Internal } from '../../kit/internal.ts';
import { type Storage, storageAccounts, storageSlots } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }, 'shop');

/** The same storage with one busy partition. */
function withHeat(one: Partial<Internal['HotPartition']>, name?: string): Storage {
  const busy = { service: 'table', partition: '', load: 60, error: 0, requests: 60, written: 60, throttled: 0, ...one };
  const heat = { top: () => [busy as Internal['HotPartition']], total: () => busy.load * 2 };
  return { ...storage, heat, ...(name === undefined ? {} : { name }) };
}

const describe = (one: Partial<Internal['HotPartition']>) => readHeat(withHeat(one), model.list, 20).items[0];

test.each<[string, Partial<Internal['HotPartition']>, object, RegExp]>([
  [
    'an entity that is written',
    { resource: 'shop0employees', partition: 'Sales' },
    { kind: 'entity', index: undefined },
    /^Spread the key .* '\{department\}_\{employeeId%8\}' in place of '\{department\}'/,
  ],
  [
    'an entity that is read',
    { resource: 'shop0employees', partition: 'Sales', written: 1 },
    { kind: 'entity' },
    /maxAge/,
  ],
  [
    'a table of a period',
    { resource: 'shop0logins20261121', partition: '000123' },
    { kind: 'entity' },
    /^Spread the key/,
  ],
  [
    'an index by a hash',
    { resource: 'shop0employeesbyemail', partition: 'email_00' },
    { kind: 'index', index: 'emailCompanyWide' },
    /^Give each value a partition of its own: partition '\{email\}' in place of 'email_\{email#\}'/,
  ],
  [
    'an index of many',
    { resource: 'shop0customersbylastname', partition: 'Oslo' },
    { kind: 'index', index: 'cityAndLastName' },
    /^Spread the index: partition '.*%8\}' in place of '.*', .* npm run reindex -- customers <index>/,
  ],
  [
    'totals',
    { resource: 'shop0salesbymonth', partition: 'Oslo' },
    { kind: 'totals', index: 'byMonth' },
    /^Spread the totals "byMonth" over buckets: .*%8\}'.* npm run reindex -- sales byMonth/,
  ],
  [
    'totals in buckets',
    { resource: 'shop0salesbyday', partition: 'all_3' },
    { kind: 'totals', index: 'byDay' },
    /%8\}'/,
  ],
  ['a queue', { service: 'queue', resource: 'shop-index-changes' }, { kind: 'queue' }, /queueParts/],
  ['rows of the engine', { resource: 'shop0poison' }, { kind: 'engine' }, /engine/],
  ['a table of another app', { resource: 'employees', partition: 'Sales' }, { kind: 'engine', entities: [] }, /engine/],
])('says what is in the partition and what to do: %s', (_, one, expected, advice) => {
  const found = describe(one);
  expect(found).toMatchObject({ ...expected, share: 0.5, slot: storageSlots.slotOf(one.partition ?? '') });
  expect(found?.advice[0]).toMatch(advice);
});

test('names the entities that the partition may have rows of', () => {
  const names = describe({ resource: 'shop0employees', partition: 'Sales' })?.entities.map(({ name }) => name);
  expect(names).toContain('employees');
  expect(describe({ resource: 'shop0logins20261121', partition: '000123' })?.entities.map(({ name }) => name)).toEqual([
    'logins',
  ]);
});

test('is hot at a tenth of the limit, which the error does not reach, or if storage rejects requests', () => {
  expect(describe({ resource: 'shop0employees', load: 11_999 })?.isHot).toBe(false);
  expect(describe({ resource: 'shop0employees', load: 12_000 })?.isHot).toBe(true);
  expect(describe({ resource: 'shop0employees', load: 12_000, error: 1 })?.isHot).toBe(false);
  expect(describe({ resource: 'shop0employees', load: 5, throttled: 2 })?.isHot).toBe(true);
});

test('joins the partitions of several accounts', () => {
  const list = [
    withHeat({ resource: 'shop0employees', load: 5 }, 'first'),
    withHeat({ resource: 'shop0movies', load: 15 }, 'second'),
  ];
  const { load, items } = readHeat({ ...storage, accounts: { list } } as unknown as Storage, model.list, 20);
  expect(load).toBe(40);
  expect(items.map(({ account, share }) => [account, share])).toEqual([
    ['second', 15 / 40],
    ['first', 5 / 40],
  ]);
});
