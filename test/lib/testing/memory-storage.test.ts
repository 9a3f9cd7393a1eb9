import { RestError } from '@azure/core-rest-pipeline';
import { BlobSASPermissions } from '@azure/storage-blob';
import { expect, test } from 'vitest';
import { createMemoryStorage } from '../../../lib/testing/memory-storage.ts';
import { baseValues } from '../../kit/base.ts';
import { type Storage, storageAccounts, storageQueues, storageRows, storageTables } from '../../kit/storage.ts';

const insert = {
  table: 'things',
  partition: 'p',
  actions: [{ kind: 'insert', row: 'r', properties: { a: 1 } }],
} as const;

test('shows and forgets messages by its own clock', async () => {
  let time = Date.parse('2030-01-01T00:00:00Z');
  const { connectionString, httpClient } = createMemoryStorage({ now: () => time });
  const storage = storageAccounts.openStorage({ connectionString, httpClient });
  await storage.queue('things').createIfNotExists();
  const { sentAt, hiddenUntil } = await storageQueues.sendMessage(storage, 'things', 'x', 3_600);
  expect([sentAt, hiddenUntil]).toEqual([time, time + baseValues.HOUR_MS]);
  const receive = () => storageQueues.receiveMessages(storage, 'things', { limit: 1, hiddenFor: 60 });
  expect(await receive()).toEqual([]);
  time += baseValues.HOUR_MS;
  const [message] = await receive();
  expect(message?.text).toBe('x');
  if (message) await storageQueues.deleteMessage(storage, message);
  await storage.queue('things').sendMessage('short', { messageTimeToLive: 5 });
  time += 5_000;
  expect(await receive()).toEqual([]);
});

test('has a new ETag for each write while its clock stands still', async () => {
  const { connectionString, httpClient } = createMemoryStorage({ now: () => 0 });
  const storage = storageAccounts.openStorage({ connectionString, httpClient });
  await storageTables.createTable(storage, 'things');
  const etags = [];
  for (let write = 0; write < 3; write += 1) {
    const actions = [{ kind: 'upsert', row: 'r', properties: { write } }] as const;
    etags.push((await storageRows.submit(storage, { ...insert, actions })).get('r'));
  }
  expect(new Set(etags).size).toBe(3);
});

test('loses a request or its reply, as told', async () => {
  const memory = createMemoryStorage();
  const storage = storageAccounts.openStorage(memory);
  await storageTables.createTable(storage, 'things');
  const lose = (isExecuted: boolean) => {
    memory.intercept = async (request, send) => {
      memory.intercept = undefined;
      if (isExecuted) await send();
      throw new RestError('The connection was lost.', { code: 'ECONNRESET', request });
    };
  };
  lose(false);
  await expect(storageRows.submit(storage, insert)).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(await storageRows.readRow(storage, { ...insert, row: 'r' })).toBeUndefined();
  lose(true);
  await expect(storageRows.submit(storage, insert)).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(await storageRows.readRow(storage, { ...insert, row: 'r' })).toMatchObject({ properties: { a: 1 } });
});

test('does not execute a request that was given up on its way', async () => {
  const memory = createMemoryStorage();
  const storage = storageAccounts.openStorage(memory);
  await storageTables.createTable(storage, 'things');
  const giveUp = new AbortController();
  memory.intercept = async (_, send) => {
    giveUp.abort();
    return send();
  };
  await expect(storageRows.submit(storage, { ...insert, signal: giveUp.signal })).rejects.toMatchObject({
    code: 'storage-unavailable',
  });
  memory.intercept = undefined;
  expect(await storageRows.readRow(storage, { ...insert, row: 'r' })).toBeUndefined();
});

test('is reached only through its client', { tags: ['slow'] }, async () => {
  const { connectionString } = createMemoryStorage();
  await expect(storageAccounts.openStorage({ connectionString }).tables.getProperties()).rejects.toMatchObject({
    code: 'ECONNREFUSED',
  });
});

test('copies a blob of an account of its own, although others have the name of that account', async () => {
  const openBoth = () =>
    ['first', 'second'].map((account) => storageAccounts.openStorage(createMemoryStorage({ account })));
  const [first, second] = openBoth();
  openBoth();
  const files = (storage: Storage | undefined) => (storage as Storage).container('files');
  await files(first).create();
  await files(second).create();
  await files(first).getBlockBlobClient('a').upload('text', 4);
  const permissions = BlobSASPermissions.parse('r');
  const url = await files(first)
    .getBlobClient('a')
    .generateSasUrl({ permissions, expiresOn: new Date(Date.now() + baseValues.HOUR_MS) });
  const copy = files(second).getBlobClient('b');
  expect((await copy.syncCopyFromURL(url)).copyStatus).toBe('success');
  // A firewall or a role: the work is repeated, and a person sees why.
  const refused = storageAccounts.storageCall(copy.syncCopyFromURL(url.replace(/sig=[^&]+/, 'sig=AAAA')), 'files');
  await expect(refused).rejects.toMatchObject({
    code: 'storage-unavailable',
    message: 'Storage is unavailable: it may not copy from files (403).',
  });
});
