import { engineRead } from '../kit/engine.ts';
import { type Address, storageAccounts, storageRows } from '../kit/storage.ts';
import type { GrowthWorld } from './growth-world.ts';
import { compare, type Result, repeat } from './measure.ts';
import { createPlainList } from './plain-shared.ts';

/** A list in another partition that grows: what one more member writes. */

const EFFORT = { rounds: 5, milliseconds: 300, callers: 1 };
const TABLE = 'playersbytown';

export interface ListGrown {
  readonly members: number;
  /** Of one create of an entity, its list included. */
  readonly transactions: number;
  readonly bytes: number;
  readonly result: Result;
}

let created = 0;

export async function measureLists(world: GrowthWorld, sizes: readonly number[]): Promise<ListGrown[]> {
  const grown: ListGrown[] = [];
  for (const members of sizes) {
    const town = `Town${members}`;
    const names = Array.from({ length: members }, (_, index) => `Team/${toId(index)}`);
    await writeList(world, { table: TABLE, partition: town, row: 'ids' }, names);
    const plain = await createPlainList(world, { players: 'players', lists: TABLE, town: `Plain${town}` }, names);
    const product = () => world.store.players.create({ team: 'Team', playerId: toId(1_000_000 + created++), town });
    const before = world.bytes();
    const { transactions } = await storageAccounts.measureCost(async (cost) => {
      await product();
      return cost;
    });
    const bytes = world.bytes() - before;
    const sides = { plain: repeat({ operation: plain }), product: repeat({ operation: product }) };
    const result = await compare(`list of ${members}`, sides, EFFORT);
    grown.push({ members, transactions, bytes, result });
  }
  return grown;
}

/** Writes a list as the product stores it. Its entities need not exist: a create reads only its own entity. */
async function writeList({ storage }: GrowthWorld, address: Address, members: readonly string[]): Promise<void> {
  const action = engineRead.LIST_FORM.change(undefined, address.row, { add: members, remove: [] });
  if (action)
    await storageRows.tryAction(
      storage,
      address,
      await engineRead.LIST_FORM.write(storage, address, { action, former: undefined }),
    );
}

function toId(index: number): string {
  return String(index).padStart(7, '0');
}
