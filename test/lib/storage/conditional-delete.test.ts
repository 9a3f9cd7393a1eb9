import { expect, test } from 'vitest';
import { withDeleteIf } from '../../../lib/storage/conditional-delete.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

test('deletes in a transaction only the version with the ETag', async () => {
  const account = { name: storageAccounts.FIRST_ACCOUNT, connectionString: testStorage(import.meta.url) };
  const client = storageAccounts.openStorage({ accounts: [account] }).table('versions');
  await client.createTable();
  const key = { partitionKey: "DELETE o'p", rowKey: 'a\u00e9' };
  const { etag: former = '' } = await client.createEntity(key);
  const { etag = '' } = await client.updateEntity({ ...key, value: 1 }, 'Replace', { etag: former });
  const remove = () =>
    client.submitTransaction([
      ['update', { ...key, rowKey: 'b' }, 'Merge', { etag: '*' }],
      ['delete', key],
    ]);
  await client.createEntity({ ...key, rowKey: 'b' });
  await expect(withDeleteIf([former], remove)).rejects.toMatchObject({ code: 'UpdateConditionNotSatisfied' });
  expect(await client.getEntity(key.partitionKey, key.rowKey)).toMatchObject({ value: 1 });
  await withDeleteIf([etag], remove);
  await expect(client.getEntity(key.partitionKey, key.rowKey)).rejects.toMatchObject({ statusCode: 404 });
});
