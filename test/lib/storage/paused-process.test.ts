import { createHttpHeaders, type HttpClient } from '@azure/core-rest-pipeline';
import { beforeAll, expect, test } from 'vitest';
import { httpClient } from '../../../local/walk/known-messages.ts';
import { storageAccounts, storageRows, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

/** The SDK repeats a request after 200 ms. */
const TIME_LIMIT_MS = 500;

const connectionString = testStorage(import.meta.url);
const table = 'paused';
beforeAll(() => storageTables.createTable(storageAccounts.openStorage({ connectionString }), table));

test('a process that was paused does not repeat a write after its time limit', async () => {
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TIME_LIMIT_MS);
  let calls = 0;
  const client: HttpClient = {
    async sendRequest(request) {
      calls += 1;
      if (calls > 1) return httpClient.sendRequest(request);
      // The timer of the repetition has started by then.
      setTimeout(pause, 20);
      return { request, status: 503, headers: createHttpHeaders(), bodyAsText: '' };
    },
  };
  const storage = storageAccounts.openStorage({ connectionString, httpClient: client });
  const actions = [{ kind: 'insert', row: 'row', properties: {} }] as const;
  const writing = storageRows.submit(storage, { table, partition: 'partition', actions, signal });
  await expect(writing).rejects.toMatchObject({ code: 'storage-unavailable' });
  const found = storageAccounts.openStorage({ connectionString }).table(table).getEntity('partition', 'row');
  await expect(found).rejects.toMatchObject({ statusCode: 404 });
});
