import { createHttpHeaders } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { storageAccounts, storageRows } from '../../kit/storage.ts';

/** Storage of which each request has a response of this status. */
function storageThatReturns(status: number) {
  const { connectionString } = createMemoryStorage();
  const seen = { requests: 0 };
  const storage = storageAccounts.openStorage({
    connectionString,
    httpClient: {
      async sendRequest(request) {
        seen.requests += 1;
        return { request, status, headers: createHttpHeaders(), bodyAsText: '' };
      },
    },
  });
  return { storage, seen };
}
const row = { table: 'things', partition: 'p', row: 'r' };

test.each([400, 403, 404, 405, 409, 412, 413])('a response of status %i is not asked for again', async (status) => {
  const { storage, seen } = storageThatReturns(status);
  await storageRows.readRow(storage, row).catch(() => undefined);
  expect(seen.requests).toBe(1);
  await storageRows
    .submit(storage, { ...row, actions: [{ kind: 'insert', row: 'r', properties: {} }] })
    .catch(() => undefined);
  expect(seen.requests).toBe(2);
});

test('a response of status 500 is asked for again', { tags: ['slow'] }, async () => {
  const { storage, seen } = storageThatReturns(500);
  await expect(storageRows.readRow(storage, row)).rejects.toThrow();
  expect(seen.requests).toBeGreaterThan(1);
});
