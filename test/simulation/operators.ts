import type { Internal } from '../kit/internal.ts';
import { operationsMove } from '../kit/operations.ts';
import { type Storage, storageSlots } from '../kit/storage.ts';
import type { Chance } from './world/chance.ts';

/** What operators do with storage accounts while the app serves. */
export const ACCOUNT_WORKS = ['move', 'move', 'move', 'move closed', 'back', 'clean up', 'resume', 'abort'] as const;
export type AccountWork = (typeof ACCOUNT_WORKS)[number] | 'balance';

/** Slots without a partition, which move fast. */
const EMPTY_SLOTS = 3;

/** Returns the report of a mover, unless its copies of what stays are deleted. Throws if another mover works, or if the network fails. */
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
): Promise<Internal['MoveReport'] | undefined> {
  const choose = async () => [await chooseSlots(storage, options.resources.tables, { to, chance })];
  switch (work) {
    case 'move':
      return operationsMove.moveSlots(storage, await choose(), options);
    case 'move closed':
      return operationsMove.moveSlots(storage, await choose(), { ...options, isClosed: true });
    case 'back':
      return operationsMove.moveBack(storage, undefined, options);
    case 'clean up':
      await operationsMove.cleanUp(storage, options);
      return undefined;
    case 'resume':
      return operationsMove.resumeMoves(storage, options);
    case 'abort':
      await operationsMove.abortMoves(storage, options);
      return undefined;
    case 'balance': {
      const placements = await operationsMove.readPlacement(operationsMove.severalAccounts(storage));
      return operationsMove.moveSlots(storage, operationsMove.planBalance(placements), options);
    }
  }
}

/** Some slots with partitions, and some without. If no other account has a partition, the slots of `to` are for another one. */
async function chooseSlots(
  storage: Storage,
  tables: readonly string[],
  { to, chance }: { readonly to: string; readonly chance: Chance },
): Promise<{ readonly slots: string[]; readonly to: string }> {
  const { list } = operationsMove.severalAccounts(storage);
  const found = new Map(list.map(({ name }) => [name, new Set<string>()]));
  for (const account of list)
    for (const table of tables) {
      const pages = account.table(table).listEntities().byPage({ maxPageSize: 500 });
      for (const { partitionKey = '' } of (await pages.next()).value ?? [])
        found.get(account.name)?.add(storageSlots.slotOf(partitionKey));
    }
  const others = list.map(({ name }) => name).filter((name) => name !== to);
  const isElsewhere = others.some((name) => (found.get(name)?.size ?? 0) > 0);
  const sources = isElsewhere ? others : [to];
  const share = chance.pick([0.1, 0.6, 1, 1]);
  const slots = sources.flatMap((name) => [...(found.get(name) ?? [])]).filter(() => chance.isTrue(share));
  return {
    slots: [
      ...slots,
      ...Array.from({ length: EMPTY_SLOTS }, () => storageSlots.slotAt(chance.below(storageSlots.SLOTS))),
    ],
    to: isElsewhere ? to : chance.pick(others),
  };
}
