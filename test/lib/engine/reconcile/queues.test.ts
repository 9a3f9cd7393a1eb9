import { expect, test } from 'vitest';
import { existingPart, isFormerPart, isPartOf, partFor, partNames } from '../../../../lib/engine/reconcile/queues.ts';
import { createMemoryStorage } from '../../../../lib/testing/index.ts';
import { storageAccounts, storageSlots, storageTables } from '../../../kit/storage.ts';

const PARTITIONS = Array.from({ length: 3_000 }, (_, number) => `department ${number}`);
const storage = storageAccounts.openStorage(createMemoryStorage());
const spread = async (queueParts: number, of = storage) => {
  const parts = await Promise.all(
    PARTITIONS.map(
      async (partition) =>
        [
          partition,
          await partFor({ storage: of, queueParts }, 'index-changes', { table: 'things', partition }),
        ] as const,
    ),
  );
  return Map.groupBy(parts, ([, part]) => part);
};

test('a model without parts has the queues of a model that declares none', async () => {
  expect(partNames(1)).toEqual(['index-changes', 'transfers']);
  expect([...(await spread(1)).keys()]).toEqual(['index-changes']);
});

test('partitions are spread evenly over the parts, each always to the same one', async () => {
  const parts = await spread(3);
  expect([...parts.keys()].toSorted()).toEqual(['index-changes', 'index-changes-1', 'index-changes-2']);
  for (const partitions of parts.values()) expect(partitions.length).toBeGreaterThan(900);
  expect(await spread(3)).toEqual(parts);
});

test('only parts beyond the declared number are former ones', () => {
  const isFormer = (name: string) => isFormerPart(name, 2);
  expect(['index-changes-2', 'transfers-7', 'transfers-2-poison'].filter(isFormer)).toHaveLength(3);
  expect([...partNames(2), 'transfers-1-poison', 'transfers-poison', 'mine-7', 'transfers-x'].filter(isFormer)).toEqual(
    [],
  );
});

test('the name of a queue stands for all of its parts in all accounts, and that of another part for itself', () => {
  const parts = [
    'index-changes',
    'index-changes-1',
    'second/index-changes',
    'second/index-changes-1',
    'transfers',
    'x',
  ];
  expect(parts.filter((part) => isPartOf(part, 'index-changes'))).toEqual(parts.slice(0, 4));
  expect(parts.filter((part) => isPartOf(part, 'second/index-changes'))).toEqual(['second/index-changes']);
  expect(parts.filter((part) => isPartOf(part, 'x'))).toEqual(['x']);
});

test('work of a former part goes to a part that exists', () => {
  const names = ['index-changes', 'index-changes-1', 'index-changes-2', 'transfers-5', 'gone/transfers', 'another'];
  expect(names.map((name) => existingPart({ storage, queueParts: 2 }, name))).toEqual([
    'index-changes',
    'index-changes-1',
    'index-changes',
    'transfers-1',
    'transfers',
    'another',
  ]);
});

test('work goes to the account of its partition, the same part in each', { tags: ['slow'] }, async () => {
  const accounts = ['first', 'second'].map((name) => ({ name, ...createMemoryStorage({ account: name }) }));
  const several = storageAccounts.openStorage({ accounts });
  await storageTables.provision(several, { tables: [storageSlots.SYSTEM_TABLE], queues: partNames(2), containers: [] });
  const parts = await spread(2, several);
  expect([...parts.keys()].toSorted()).toEqual([
    'index-changes',
    'index-changes-1',
    'second/index-changes',
    'second/index-changes-1',
  ]);
  for (const [part, partitions] of parts) {
    expect(partitions.length).toBeGreaterThan(600);
    const [[partition]] = partitions as [[string, string]];
    expect((await storageSlots.ownerOf(several, partition)).name).toBe(part.includes('/') ? 'second' : 'first');
  }
  await several.queue('second/index-changes-1').sendMessage('x');
  const { approximateMessagesCount } =
    (await several.accounts?.list[1]?.queue('index-changes-1').getProperties()) ?? {};
  expect(approximateMessagesCount).toBe(1);
  expect(() => several.queue('gone/index-changes')).toThrow('The app has no storage account gone');
});
