import { expect, test } from 'vitest';
import { createTestStore } from '../../../lib/testing/index.ts';
import type { ProposedKind } from '../../../local/inspect/propose-kind.ts';
import { asOfService } from '../../existing/tables.ts';
import { defineKeys } from '../../kit/define.ts';
import { type Row, storageAccounts, storageRows } from '../../kit/storage.ts';
import { describe, evaluate, propose } from './samples.ts';
import { existingTableRows, identityRows, logRows, nameIndexRows, type StoredRow, shopRows, typed } from './shapes.ts';

/** The model that is printed for rows is valid, and reads each of them. */

/** A store of the model, as far as the tests call it. */
type Store = Readonly<Record<string, { get(key: object): Promise<{ readonly values: object } | undefined> }>>;

/** Opens the model on a storage account that has the rows. */
async function openOn(rows: readonly StoredRow[], text: string): Promise<Store> {
  const { store, storage } = await createTestStore(evaluate(text));
  const account = storageAccounts.openStorage(storage);
  for (const table of new Set(rows.map((row) => row.table))) await account.table(table).createTable();
  for (const ofPartition of Map.groupBy(rows, ({ table, partition }) => JSON.stringify([table, partition])).values())
    for (let from = 0; from < ofPartition.length; from += 100) {
      const some = ofPartition.slice(from, from + 100);
      const actions = some.map(({ row, properties }) => ({ kind: 'upsert', row, properties }) as const);
      const [{ table, partition } = { table: '', partition: '' }] = some;
      await storageRows.submit(account, { table, partition, actions });
    }
  return store as unknown as Store;
}

const plain = (stored: unknown) => {
  const { type, value = stored } = Object(stored);
  return type === 'DateTime' ? asOfService(value) : value;
};

/** The entity that a row is, by the proposal. */
function valuesOf({ partition, row, fields }: ProposedKind, stored: Row): Record<string, unknown> {
  const keys = {
    ...defineKeys.parseKey(defineKeys.compileTemplate(partition), stored.partition),
    ...defineKeys.parseKey(defineKeys.compileTemplate(row), stored.row),
  };
  const values = fields.map(({ field, property, schema }) => {
    const value = property === undefined ? keys[field] : plain(stored.properties[property]);
    return [field, value === undefined || !/^z\.(int|int32|number)\(/.test(schema) ? value : Number(value)] as const;
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

async function expectToReadAll(rows: readonly StoredRow[]): Promise<void> {
  const store = await openOn(rows, describe(rows));
  const { tables, indexes } = propose(rows);
  const byHand = new Set(indexes.map(({ index }) => index));
  for (const kind of tables.flatMap(({ kinds }) => kinds).filter((each) => !byHand.has(each)))
    for (const row of kind.rows) {
      const values = valuesOf(kind, row);
      const key = Object.fromEntries(kind.keyFields.map((field) => [field, values[field]]));
      expect((await store[kind.name]?.get(key))?.values, `${row.partition} ${row.row}`).toEqual(values);
    }
}

test('reads each row of which it was proposed', async () => {
  await expectToReadAll([...shopRows(5), ...logRows(2, 3), ...identityRows(5), ...nameIndexRows(5)]);
  const kinds = Array.from({ length: 12 }, (_, at) => ({
    table: 'Things',
    partition: 'all',
    row: `${'cb'[at % 2]}_${at + 1}`,
    properties: at % 2 ? { Kind: 'Car', Wheels: at } : { Kind: 'Boat', Length: typed('Double')(`${at}.0`) },
  }));
  await expectToReadAll(kinds);
});

test('reads rows that .NET wrote', { tags: ['slow'] }, async () => {
  await expectToReadAll([
    // One of the customers has numbers that no JSON has.
    ...existingTableRows('ShopData', 300).filter(({ partition }) => partition !== 'C-000013'),
    ...existingTableRows('RequestLog').slice(0, 50),
    ...existingTableRows('Employees', 60),
  ]);
});

test('is valid with the indexes of the comments, once it is no longer read-only', () => {
  const text = describe([
    ...shopRows(40),
    ...nameIndexRows(40),
    ...identityRows(40),
    ...existingTableRows('Employees'),
    ...existingTableRows('EmployeeIndex'),
  ]);
  const declared = text
    .replace(/^ {4}readOnly: true,\n/gm, '')
    .replace(/^ {2}\/\/ ((?: {2}\w+: .*|indexes: \{|\},))$/gm, '  $1');
  const { entities } = evaluate(declared);
  const indexes = Object.values(entities).flatMap((entity) => Object.keys(Object(entity).indexes));
  expect(indexes).toEqual(['lastName', 'email', 'userName', 'lastName', 'lastNameInDepartment']);
});
