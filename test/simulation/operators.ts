import type { Internal } from '../kit/internal.ts';
import { operationsMove } from '../kit/operations.ts';
import { type Storage, storageSlots } from '../kit/storage.ts';
import type { Chance } from './world/chance.ts';

/** What operators do with storage accounts while the app serves. */
export const ACCOUNT_WORKS = ['move', 'move', 'move', 'move closed', 'back', 'clean up', 'resume', 'abort'] as const;
export type AccountWork = (typeof ACCOUNT_WORKS)[number];

/** Slots without a partition, which move fast. */
const EMPTY_SLOTS = 3;

/** Throws if another mover works, or if the network fails. */
export async function workOnAccounts(
  work: AccountWork,
  {
    storage,
    to,
    chance,
    options,
  }: {
    readonly storage: Storage;
    readonly to: string;
    readonly chance: Chance;
    readonly options: Internal['MoveOptions'];
  },
): Promise<void> {
  const choose = async () => [{ slots: await chooseSlots(storage, options.resources.tables, chance), to }];
  switch (work) {
    case 'move':
      await operationsMove.moveSlots(storage, await choose(), options);
      return;
    case 'move closed':
      await operationsMove.moveSlots(storage, await choose(), { ...options, isClosed: true });
      return;
    case 'back':
      await operationsMove.moveBack(storage, undefined, options);
      return;
    case 'clean up':
      await operationsMove.cleanUp(storage, options);
      return;
    case 'resume':
      await operationsMove.resumeMoves(storage, options);
      return;
    case 'abort':
      await operationsMove.abortMoves(storage, options);
  }
}

/** Some slots with partitions, and some without. */
async function chooseSlots(storage: Storage, tables: readonly string[], chance: Chance): Promise<string[]> {
  const accounts = operationsMove.severalAccounts(storage);
  const slots = new Set<string>();
  for (const account of accounts.list)
    for (const table of tables) {
      const pages = account.table(table).listEntities().byPage({ maxPageSize: 500 });
      for (const { partitionKey = '' } of (await pages.next()).value ?? [])
        slots.add(storageSlots.slotOf(partitionKey));
    }
  const share = chance.next();
  return [
    ...[...slots].filter(() => chance.isTrue(share)),
    ...Array.from({ length: EMPTY_SLOTS }, () => storageSlots.slotAt(chance.below(storageSlots.SLOTS))),
  ];
}
