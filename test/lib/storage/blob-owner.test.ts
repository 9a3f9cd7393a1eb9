import { expect, test } from 'vitest';
import { placeOfBlob } from '../../../lib/storage/blob-owner.ts';
import type { Internal } from '../../kit/internal.ts';
import { type Account, type Storage, storageAccounts, storageBlobs, storageSlots } from '../../kit/storage.ts';
import { accountNamed, provisionAccounts, type Several } from './several-accounts.ts';

const [AT_FIRST, AT_SECOND] = ['000/a', 'fff/b'];
const blob = (name: string) => ({ container: 'files', name });
const write = (storage: Storage, name: string, text = name) =>
  storageBlobs.writeBlob(storage, blob(name), Buffer.from(text), { type: 'text/plain' });
const namesIn = async (storage: Storage) =>
  Array.fromAsync(storageBlobs.listContainer(storage, 'files'), ({ name }) => name);
const textOf = async (storage: Storage, name: string) => (await storageBlobs.readBlob(storage, blob(name)))?.toString();

async function set(storage: Several, account: string, state: Internal['SlotState']): Promise<void> {
  await storageSlots.changeSlots(accountNamed(storage, account), ['000'], () => state);
}

test('places a blob by the slot that begins its name, or by the hash of a former name', async () => {
  const { storage } = await provisionAccounts(['first', 'second']);
  for (const name of [AT_SECOND, AT_FIRST]) await write(storage, name);
  expect(await namesIn(accountNamed(storage, 'first'))).toEqual([AT_FIRST]);
  expect(await namesIn(accountNamed(storage, 'second'))).toEqual([AT_SECOND]);
  expect(await namesIn(storage)).toEqual([AT_FIRST, AT_SECOND]);
  expect(['000/a', 'fff/b', 'vehicles/x', 'fff'].map((name) => placeOfBlob(name).slot)).toEqual([
    '000',
    'fff',
    '8a0',
    'f28',
  ]);
  const now = Date.now();
  const request = { permissions: 'r', startsAt: new Date(now), expiresAt: new Date(now + 60_000) };
  expect(await storageBlobs.signBlobUrl(storage, blob(AT_SECOND), request)).toContain('/second/files/');
});

test('copies a blob to another account', async () => {
  const { storage } = await provisionAccounts(['first', 'second']);
  await write(storage, AT_FIRST);
  expect(await storageBlobs.copyBlob(storage, { from: blob(AT_FIRST), to: blob(AT_SECOND) }, { metadata: {} })).toBe(
    true,
  );
  expect(await textOf(accountNamed(storage, 'second'), AT_SECOND)).toBe(AT_FIRST);
  expect(await storageBlobs.copyBlob(storage, { from: blob('000/none'), to: blob(AT_SECOND) }, { metadata: {} })).toBe(
    false,
  );
});

test('finds what a move has left, lists it once, and deletes every copy', async () => {
  const { storage, open } = await provisionAccounts(['first', 'second']);
  for (const name of ['000/a', '000/b', '000/empty']) await write(storage, name);
  await set(storage, 'first', { phase: 'gone', move: 'm1', to: 'second' });
  await set(storage, 'second', { phase: 'at rest' });
  await write(accountNamed(storage, 'second'), '000/a', 'copy');
  await storageBlobs.writeBlob(accountNamed(storage, 'second'), blob('000/empty'), Buffer.from(''), {
    type: 'text/plain',
  });
  const process = open();
  expect(await textOf(process, '000/a')).toBe('copy');
  expect(await textOf(process, '000/b')).toBe('000/b');
  const now = Date.now();
  const times = { startsAt: new Date(now), expiresAt: new Date(now + 60_000) };
  const accountOf = async (name: string, permissions: string) =>
    /(first|second)\/files/.exec(await storageBlobs.signBlobUrl(process, blob(name), { permissions, ...times }))?.[1];
  expect(await accountOf('000/a', 'r')).toBe('second');
  expect(await accountOf('000/b', 'r')).toBe('first');
  for (const name of ['000/b', '000/none']) expect(await accountOf(name, 'c')).toBe('second');
  expect(await accountOf('000/none', 'r')).toBe('second');
  // An empty blob says that the upload was accepted.
  expect(await storageBlobs.readBlobRange(process, blob('000/empty'), { count: 1 })).toBeUndefined();
  const listed = await Array.fromAsync(storageBlobs.listContainer(process, 'files'));
  expect(listed.map(({ name }) => name)).toEqual(['000/a', '000/b', '000/empty']);
  for (const { name, etag } of listed) await storageBlobs.deleteBlob(process, blob(name), etag);
  for (const name of ['first', 'second']) expect(await namesIn(accountNamed(storage, name))).toEqual([]);
});

test('finds what a move has left if the process knows the former owner from before', async () => {
  const { storage, open } = await provisionAccounts(['first', 'second']);
  await write(storage, '000/a');
  const process = open() as Several;
  const [first, second] = process.accounts.list as [Account, Account];
  for (const account of [first, second]) await storageSlots.lookAt(process.accounts, account);
  await set(storage, 'first', { phase: 'gone', move: 'm1', to: 'second' });
  await set(storage, 'second', { phase: 'at rest' });
  // Of the two, only the row of the new owner is read again.
  await storageSlots.lookAt(process.accounts, second);
  expect(await textOf(process, '000/a')).toBe('000/a');
});

test('keeps the blobs of a container that the model places in one account, those that are appended to as well', async () => {
  const { openWith } = await provisionAccounts(['first', 'second']);
  const { options } = openWith(undefined, 0);
  const storage = storageAccounts.openStorage({ accounts: options, containers: { files: 'second' } });
  for (const name of [AT_FIRST, AT_SECOND]) await write(storage, name);
  await storageBlobs.createAppendBlob(storage, blob('log'));
  const [first, second] = storage.accounts?.list ?? [];
  if (!first || !second) throw new Error('There is no second account.');
  expect([await namesIn(first), await namesIn(second)]).toEqual([[], [AT_FIRST, AT_SECOND, 'log']]);
  expect([await namesIn(storage), await textOf(storage, AT_FIRST)]).toEqual([[AT_FIRST, AT_SECOND, 'log'], AT_FIRST]);
  await storageBlobs.deleteBlob(storage, blob(AT_FIRST));
  expect(await namesIn(second)).toEqual([AT_SECOND, 'log']);
  const open = () => storageAccounts.openStorage({ accounts: options, containers: { files: 'third' } });
  expect(open).toThrow('places the container files in the storage account third, which STORAGE_ACCOUNTS does not name');
});

test('replaces an upload that was accepted by an empty blob wherever a move has copied it', async () => {
  const { storage, open } = await provisionAccounts(['first', 'second']);
  await write(storage, '000/a');
  await set(storage, 'first', { phase: 'fencing', move: 'm1', to: 'second' });
  await write(accountNamed(storage, 'second'), '000/a');
  await write(open(), '000/a', '');
  for (const name of ['first', 'second'])
    expect(await storageBlobs.readBlobRange(accountNamed(storage, name), blob('000/a'), { count: 1 })).toBeUndefined();
});
