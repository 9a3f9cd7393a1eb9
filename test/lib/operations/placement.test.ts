import { expect, test } from 'vitest';
import { requireContainers } from '../../../lib/operations/placement.ts';
import { deleteBlob, writeBlob } from '../../../lib/storage/blobs.ts';
import { openStorage } from '../../../lib/storage/storage.ts';
import { createMemoryStorage } from '../../../lib/testing/memory-storage.ts';
import { provisionAccounts } from '../storage/several-accounts.ts';

/** A process of a release that places the container, or that places none. */
async function createReleases() {
  const { openWith } = await provisionAccounts(['first', 'second']);
  const { options } = openWith(undefined, 0);
  return (account?: string) =>
    openStorage({ accounts: options, ...(account ? { containers: { files: account } } : {}) });
}
const blob = { container: 'files', name: '000/a' };
const write = (storage: ReturnType<typeof openStorage>) =>
  writeBlob(storage, blob, Buffer.from('a'), { type: 'text/plain' });

test('accepts another account of a container while it is empty', async () => {
  const release = await createReleases();
  for (const account of [undefined, 'second', 'first', undefined, 'second'])
    await requireContainers(release(account), ['files']);
  await write(release('second'));
  await requireContainers(release('second'), ['files']);
});

test('rejects another account of a container that has blobs, and accepts it when they are gone from the former one', async () => {
  const release = await createReleases();
  await write(release());
  await expect(requireContainers(release('second'), ['files'])).rejects.toThrow(
    'The model moved the container files to the storage account second, and first has blobs of it that nothing would find.',
  );
  await deleteBlob(release(), blob);
  await requireContainers(release('second'), ['files']);
  await write(release('second'));
  await expect(requireContainers(release(), ['files'])).rejects.toThrow('to the accounts of the slots, and second has');
  await expect(requireContainers(release('first'), ['files'])).rejects.toThrow('account first, and second has blobs');
});

test('sends nothing with one account', async () => {
  const memory = createMemoryStorage();
  memory.intercept = async () => {
    throw new Error('A request was sent.');
  };
  await requireContainers(openStorage(memory), ['files']);
});
