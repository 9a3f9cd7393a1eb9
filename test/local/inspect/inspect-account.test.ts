import { expect, test } from 'vitest';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { inspectAccount } from '../../../local/inspect/inspect-account.ts';
import { storageAccounts, storageRows } from '../../kit/storage.ts';
import { identityRows } from './shapes.ts';

test('reads the rows whose ids others have, if the sample is without them', { tags: ['slow'] }, async () => {
  const storage = storageAccounts.openStorage(createMemoryStorage());
  await storage.table('Identity').createTable();
  // One entry leads to a user who has been deleted.
  const rows = identityRows(90).filter(({ partition }, _, [first]) => partition !== first?.partition);
  for (const { table, partition, row, properties } of rows)
    await storageRows.submit(storage, { table, partition, actions: [{ kind: 'insert', row, properties }] });
  const { signal } = new AbortController();
  const { proposal } = await inspectAccount(storage, { rows: 100, reads: 100, signal, onRead: () => undefined });
  expect(proposal.tables[0]?.sample).toMatchObject({ isWhole: false, rows: { length: 100 } });
  expect(proposal.indexes).toMatchObject([
    { index: { partition: 'email_{email}' }, by: [{ field: 'email' }], dangling: 1, missing: undefined },
    { index: { partition: 'name_{name}' }, by: [{ field: 'userName', change: 'upper' }], missing: undefined },
  ]);
  const few = await inspectAccount(storage, { rows: 100, reads: 2, signal, onRead: () => undefined });
  expect(few.proposal.indexes).toEqual([]);
});

test('ids that are also those of another table lead to the rows that have their values', {
  tags: ['slow'],
}, async () => {
  const storage = storageAccounts.openStorage(createMemoryStorage());
  // A table of things, read first, has a row for the id of each user.
  const users = identityRows(90);
  const things = users
    .filter(({ row }) => row === 'profile')
    .map(({ partition }, at) => ({
      ...{ table: 'AThing', partition: partition.slice('user_'.length), row: 'thing' },
      properties: { Size: at, Color: `color ${at % 3}` },
    }));
  for (const { table, partition, row, properties } of [...things, ...users]) {
    await storage
      .table(table)
      .createTable()
      .catch(() => undefined);
    await storageRows.submit(storage, { table, partition, actions: [{ kind: 'insert', row, properties }] });
  }
  const { signal } = new AbortController();
  const { proposal } = await inspectAccount(storage, { rows: 60, reads: 100, signal, onRead: () => undefined });
  expect(proposal.indexes.map(({ target, by }) => [target.table, by.map(({ field }) => field)])).toEqual([
    ['Identity', ['email']],
    ['Identity', ['userName']],
  ]);
});
