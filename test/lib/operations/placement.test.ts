import { expect, test } from 'vitest';
import {
  findOwner,
  planBalance,
  readPlacement,
  requireContainers,
  slotsIn,
} from '../../../lib/operations/placement.ts';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { storageAccounts, storageBlobs, storageRows, storageTables } from '../../kit/storage.ts';
import { createAccounts, provisionAccounts, RESOURCES, type Several, TABLE } from '../storage/several-accounts.ts';

/** A process of a release that places the container, or that places none. */
async function createReleases() {
  const { openWith } = await provisionAccounts(['first', 'second']);
  const { options } = openWith(undefined, 0);
  return (account?: string) =>
    storageAccounts.openStorage({ accounts: options, ...(account ? { containers: { files: account } } : {}) });
}
const blob = { container: 'files', name: '000/a' };
const write = (storage: ReturnType<typeof storageAccounts.openStorage>) =>
  storageBlobs.writeBlob(storage, blob, Buffer.from('a'), { type: 'text/plain' });

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
  await storageBlobs.deleteBlob(release(), blob);
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
  await requireContainers(storageAccounts.openStorage(memory), ['files']);
});

test('spreads the slots evenly over an account that was added, with as few moves as possible', async () => {
  const { open } = createAccounts();
  const two = open(2);
  await storageTables.provision(two, RESOURCES);
  await storageRows.scanTable(two, { table: TABLE, limit: 1 });
  await storageTables.provision(open(), RESOURCES);
  const { accounts } = open() as Several;
  const before = await readPlacement(accounts);
  expect(before.map((placement) => slotsIn(placement, 'at rest').length)).toEqual([2_048, 2_048, 0]);
  const [plan, ...others] = planBalance(before);
  expect(others).toEqual([]);
  expect(plan?.to).toBe('third');
  expect(plan?.slots).toHaveLength(1_365);
  const counts = before.map((placement) => plan?.slots.filter((slot) => findOwner(before, slot) === placement).length);
  expect(counts).toEqual([682, 683, 0]);
});
