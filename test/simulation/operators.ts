import { abortMoves, cleanUp, moveBack, moveSlots, resumeMoves } from '../../lib/operations/move-slots.ts';
import { severalAccounts } from '../../lib/operations/placement.ts';
import type { MoveOptions } from '../../lib/operations/slot-mover.ts';
import { SLOTS, slotAt, slotOf } from '../../lib/storage/slots.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import type { Chance } from '../kit/chance.ts';

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
    readonly options: MoveOptions;
  },
): Promise<void> {
  const choose = async () => [{ slots: await chooseSlots(storage, options.resources.tables, chance), to }];
  switch (work) {
    case 'move':
      await moveSlots(storage, await choose(), options);
      return;
    case 'move closed':
      await moveSlots(storage, await choose(), { ...options, isClosed: true });
      return;
    case 'back':
      await moveBack(storage, undefined, options);
      return;
    case 'clean up':
      await cleanUp(storage, options);
      return;
    case 'resume':
      await resumeMoves(storage, options);
      return;
    case 'abort':
      await abortMoves(storage, options);
  }
}

/** Some slots with partitions, and some without. */
async function chooseSlots(storage: Storage, tables: readonly string[], chance: Chance): Promise<string[]> {
  const accounts = severalAccounts(storage);
  const slots = new Set<string>();
  for (const account of accounts.list)
    for (const table of tables) {
      const pages = account.table(table).listEntities().byPage({ maxPageSize: 500 });
      for (const { partitionKey = '' } of (await pages.next()).value ?? []) slots.add(slotOf(partitionKey));
    }
  const share = chance.next();
  return [
    ...[...slots].filter(() => chance.isTrue(share)),
    ...Array.from({ length: EMPTY_SLOTS }, () => slotAt(chance.below(SLOTS))),
  ];
}
