import type { GrowthWorld } from './growth-world.ts';
import { compare, type Result, repeat } from './measure.ts';
import { createPlainList, plainCounted, plainIncrement } from './plain-shared.ts';

/** Many writers of one process on one list, one series, one partition and one count. */

const EFFORT = { rounds: 3, milliseconds: 500 };
const DAY = '2026-11-20';

export interface Written {
  readonly target: string;
  readonly writers: number;
  readonly result: Result;
}

let created = 2_000_000;

export async function measureWriters(world: GrowthWorld, writers: readonly number[]): Promise<Written[]> {
  const { store, plainTable } = world;
  await store.wards.create({ ward: 'Ward' });
  await plainTable('voters').createEntity({ partitionKey: 'PlainWard', rowKey: 'ward', voterCount: 0 });
  const plainList = { players: 'players', lists: 'playersbytown', town: 'PlainShared' };
  const targets = {
    'one list': {
      product: () => store.players.create({ team: 'Shared', playerId: toId(created++), town: 'Shared' }),
      plain: await createPlainList(world, plainList, []),
    },
    'one series': {
      product: () => store.visits.increment({ place: 'Hall', day: DAY }, 9, 1),
      plain: plainIncrement(plainTable('visits'), 'PlainHall', DAY),
    },
    'one partition': {
      product: () => store.notes.create({ board: 'Board', noteId: toId(created++), text: 'A note' }),
      plain: () =>
        plainTable('notes').createEntity({ partitionKey: 'PlainBoard', rowKey: toId(created++), text: 'A note' }),
    },
    'one count': {
      product: () => store.voters.create({ ward: 'Ward', voterId: toId(created++) }),
      plain: plainCounted(plainTable('voters'), 'PlainWard'),
    },
  };
  const written: Written[] = [];
  for (const [target, { product, plain }] of Object.entries(targets))
    for (const callers of writers) {
      const sides = { plain: repeat({ operation: plain }), product: repeat({ operation: product }) };
      written.push({ target, writers: callers, result: await compare(target, sides, { ...EFFORT, callers }) });
    }
  return written;
}

function toId(index: number): string {
  return String(index).padStart(7, '0');
}
