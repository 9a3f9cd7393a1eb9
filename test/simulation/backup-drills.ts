import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { CLIENTS, type Event } from './event.ts';
import { smallModel } from './small-model.ts';
import { type Chance, createChance } from './world/chance.ts';
import { MOST_HELD_MS, type Trap } from './world/network.ts';

/**
 * Drills of the backup: operations that stop where a rule of the journal matters. The entities are in no other model, so the worlds without a backup
 * stay as they were, and nothing else stops at their tables.
 */

const access = { read: ['writer'], write: ['writer'] } as const;
const id = z.string().regex(/^[0-9]+$/);

const padOf = (key: { readonly row: string; readonly former?: { readonly partition: string; readonly row: string } }) =>
  defineEntity('pads', {
    schema: z.object({ pad: id, id, text: z.string() }),
    table: 'pads',
    key: { partition: '{pad}', ...key },
    access,
  });

/** Nothing follows from it, so a transaction only deletes. */
const pads = padOf({ row: '{id}' });

/** A change of its owner has an intent, and its weight may be whole. */
const parcels = defineEntity('parcels', {
  schema: z.object({ box: id, id, owner: z.string().min(1), weight: z.number() }),
  table: 'parcels',
  key: { partition: '{box}', row: '{id}' },
  indexes: { owner: interPartitionIndex({ table: 'parcelsbyowner', partition: '{owner}', row: '{box}_{id}' }) },
  access,
});

const modelWith = (pad: typeof pads) =>
  defineModel({
    roles: ['writer', 'operator', 'steward'],
    operatorRole: 'operator',
    steward: 'steward',
    entities: [...smallModel.list, pad, parcels],
  } as never);

/** The small model, and the entities of the drills. */
export const backedUpModel = modelWith(pads);
/** The next release, in which an entity has another key. */
export const rekeyedModel = modelWith(padOf({ row: 'pad_{id}', former: { partition: '{pad}', row: '{id}' } }));

type Timed = { readonly at: number; readonly event: Event };
type Stop = Pick<Trap, 'request' | 'end' | 'forMs'>;

/** Before all scenes of a world, which have numbers from 0 on, and those beside moves. */
const FIRST_SCENE = -1_000;
const BEFORE_MS = 3_000;
const DRILLS = 16;
const FURTHER_DRILLS = 3;
/** After the partitions of the drills and of a move. */
const FURTHER_FROM = 50;
/** So many entities are written in one transaction. */
const TOGETHER = 24;
/** A move to another key begins after about 65 seconds. */
const REKEY_MS = 80_000;
/** Storage responds so long after it has executed a request. */
const MOST_SLOW_MS = 9_000;

/** A message is given up after five attempts whose process stopped. */
const MOST_DEATHS = 4;

/** Returns the drills of a world that lasts so long. */
export function backupDrillsOf({ seed, from, until }: { seed: number; from: number; until: number }): Timed[] {
  let deaths = 0;
  const drills = Array.from({ length: DRILLS }).flatMap((_, nth) => {
    const chance = createChance(seed, 'backup drill', nth);
    const at = from + 2 * BEFORE_MS + chance.next() * Math.max(0, until - from);
    const isDeath = deaths < MOST_DEATHS && chance.isTrue(0.5);
    if (isDeath) deaths += 1;
    return chance.pick(isDeath ? DEATHS : RACES)({ at, nth, chance });
  });
  const further = createChance(seed, 'further backup drills')
    .shuffle(FURTHER)
    .slice(0, FURTHER_DRILLS)
    .flatMap((drill, index) => {
      const nth = FURTHER_FROM + index;
      const chance = createChance(seed, 'backup drill', nth);
      return drill({ at: from + 2 * BEFORE_MS + chance.next() * Math.max(0, until - from), nth, chance });
    });
  return [...drills, ...further];
}

interface Drill {
  readonly at: number;
  readonly nth: number;
  readonly chance: Chance;
}

const RACES: readonly ((drill: Drill) => Timed[])[] = [
  /** Another client changes one of two entities while a transaction that deletes both is on its way. */
  ({ at, nth, chance }) => {
    const [one, other] = [1, 2].map((number) => ({ pad: String(nth), id: String(number) }));
    const forMs = chance.between(100, MOST_HELD_MS);
    const client = chance.below(CLIENTS);
    const create = (key?: object) => ({ of: 'pads', do: 'create', values: { ...key, text: 'first' } }) as const;
    const both = { of: 'pads', do: 'batch', actions: [{ delete: { ...one } }, { delete: { ...other } }] } as const;
    const update = { of: 'pads', do: 'update', key: { ...one }, values: { text: 'second' } } as const;
    return [
      write(at - BEFORE_MS, client, create(one)),
      write(at - BEFORE_MS, client, create(other)),
      write(at, client, both, trapsOf(nth, [{ request: 'write entity', end: 'held', forMs }])),
      after(write(at, client + 1, update), nth, chance.next() * forMs),
    ];
  },
  /** Storage has deleted an entity, and responds only when another client has created it again. */
  ({ at, nth, chance }) => {
    const key = { pad: String(nth), id: '3' };
    const forMs = chance.between(1_500, MOST_SLOW_MS);
    const client = chance.below(CLIENTS);
    const create = (text: string) => ({ of: 'pads', do: 'create', values: { ...key, text } }) as const;
    return [
      write(at - BEFORE_MS, client, create('first')),
      write(
        at,
        client,
        { of: 'pads', do: 'delete', key },
        trapsOf(nth, [{ request: 'write entity', end: 'slow', forMs }]),
      ),
      after(write(at, client + 1, create('second')), nth, chance.between(50, forMs)),
    ];
  },
];

const DEATHS: readonly ((drill: Drill) => Timed[])[] = [
  /** A writer dies before it has appended what it wrote. The function that has its intent appends it, with the types of its values. */
  ({ at, nth, chance }) => {
    const key = { box: String(nth), id: '1' };
    const client = chance.below(CLIENTS);
    const values = (owner: string) => ({ owner: `${owner}${nth}`, weight: chance.pick([1, 2.5, 1_000_000]) });
    const create = { of: 'parcels', do: 'create', values: { ...key, ...values('a') } } as const;
    const update = { of: 'parcels', do: 'update', key, values: values('b') } as const;
    return [
      write(at - BEFORE_MS, client, create),
      write(at, client, update, trapsOf(nth, [{ request: 'write entity', end: 'dies after', forMs: 0 }])),
    ];
  },
  /** A writer dies after it has deleted its intent, while what it wrote cannot be appended. */
  ({ at, nth, chance }) => {
    const key = { box: String(nth), id: '2' };
    const client = chance.below(CLIENTS);
    const create = { of: 'parcels', do: 'create', values: { ...key, owner: `a${nth}`, weight: 1 } } as const;
    const update = { of: 'parcels', do: 'update', key, values: { owner: `b${nth}` } } as const;
    const lost = { request: 'append record', end: 'lost', forMs: 0 } as const;
    const dies = { request: 'delete message', end: 'dies after', forMs: 0 } as const;
    return [
      write(at - BEFORE_MS, client, create),
      // The other losses are those of its next attempts.
      write(at, client, update, [...trapsOf(nth, [lost, dies]), ...[1, 2, 3].flatMap(() => trapsOf(nth, [lost]))]),
    ];
  },
];

const padWith = (nth: number, id: number, text: string) => ({ pad: String(nth), id: String(id), text });
const dies = { request: 'write entity', end: 'dies after', forMs: 0 } as const;
const loses = { request: 'write entity', end: 'replyLost', forMs: 0 } as const;

const FURTHER: readonly ((drill: Drill) => Timed[])[] = [
  /** A writer dies before it has appended what it wrote in one transaction. The function that has its intents appends it. */
  ({ at, nth, chance }) => {
    const actions = Array.from({ length: TOGETHER }, (_, index) => ({
      create: { box: String(nth), id: String(index), owner: `a${nth}`, weight: index },
    }));
    return [write(at, chance.below(CLIENTS), { of: 'parcels', do: 'atomic', actions }, trapsOf(nth, [dies]))];
  },
  /** A writer dies, and its client repeats the request: of a create, of a transaction, or of a change that has no id. */
  ({ at, nth, chance }) => {
    const create = { of: 'pads', do: 'create', values: padWith(nth, 1, 'first') } as const;
    return [write(at, chance.below(CLIENTS), create, trapsOf(nth, [dies]))];
  },
  ({ at, nth, chance }) => {
    const actions = [1, 2].map((id) => ({ create: padWith(nth, id, 'first') }));
    return [write(at, chance.below(CLIENTS), { of: 'pads', do: 'atomic', actions }, trapsOf(nth, [dies]))];
  },
  ({ at, nth, chance }) => {
    const client = chance.below(CLIENTS);
    const values = padWith(nth, 1, 'first');
    const key = { pad: values.pad, id: values.id };
    const update = { of: 'pads', do: 'update', key, values: { text: 'second' } } as const;
    return [
      write(at - BEFORE_MS, client, { of: 'pads', do: 'create', values }),
      write(at, client, update, trapsOf(nth, [dies])),
      after(write(at, client, update), nth, chance.between(500, BEFORE_MS)),
    ];
  },
  /** A writer gets no reply, and finds what it wrote: of a request that is sent once, and of one that is sent again, and refused. */
  ({ at, nth, chance }) => {
    const create = { of: 'pads', do: 'create', values: padWith(nth, 1, 'first') } as const;
    return [write(at, chance.below(CLIENTS), create, trapsOf(nth, [loses]))];
  },
  ({ at, nth, chance }) => {
    const client = chance.below(CLIENTS);
    const values = padWith(nth, 1, 'first');
    const update = { of: 'pads', do: 'update', key: { pad: values.pad, id: values.id } } as const;
    return [
      write(at - BEFORE_MS, client, { of: 'pads', do: 'create', values }),
      write(at, client, { ...update, values: { text: 'second' } }, trapsOf(nth, [loses])),
    ];
  },
  /** A snapshot has a row of which the journal has a merge before. */
  ({ at, nth, chance }) => {
    const client = chance.below(CLIENTS);
    const { pad, id, text } = padWith(nth, 1, 'first');
    const change = (what: 'merge' | 'put', to: string) =>
      ({ of: 'pads', do: what, key: { pad, id }, values: { text: to } }) as const;
    return [
      write(at - BEFORE_MS, client, { of: 'pads', do: 'create', values: { pad, id, text } }),
      write(at, client, change('merge', 'second')),
      write(at + BEFORE_MS, client, change('put', 'third')),
      { at: at + 2 * BEFORE_MS, event: { do: 'snapshot', diesAt: [], forMs: LONG_MS } },
    ];
  },
];
const LONG_MS = 3_600_000;

/** Partitions of a move. */
const MOVED = 6;
/** A move copies rows about 41 seconds after it has begun, and hands slots over so long after that. */
const [WRITTEN_FROM_MS, WRITTEN_UNTIL_MS] = [38_700, 39_900];
const DELETED_AFTER_MS = 300;
const [HANDED_OVER_MS, CREATED_AGAIN_MS] = [500, 1_000];
/** A move has listed partitions by then. The next request to the table copies it. */
const CHOSEN_MS = 10_000;
const MOVED_MS = 60_000;

/**
 * A move to the account whose clock is the furthest behind. Either rows are created right before they are copied, and deleted after the move; or
 * they are deleted before they are copied, and created again at the new account. In another world each: a copy that waits for a clock lets the
 * others wait, too.
 */
export function moveDrillOf(seed: number, clocksMs: readonly number[]): Timed[] {
  const chance = createChance(seed, 'backup drill of a move');
  const isCopied = chance.isTrue(0.5);
  const rows = Array.from({ length: MOVED }).flatMap((_, nth): Timed[] => {
    const pad = String(DRILLS + nth);
    const create = (id: string, text: string) => ({ of: 'pads', do: 'create', values: { pad, id, text } }) as const;
    // The other client does not know the ETag, which a copy changes.
    const remove = (at: number) => write(at, nth + 1, { of: 'pads', do: 'delete', key: { pad, id: '2' } });
    const at = BEFORE_MS + chance.between(WRITTEN_FROM_MS, WRITTEN_UNTIL_MS);
    const again = write(BEFORE_MS + CHOSEN_MS, nth, create('2', 'second'));
    const afterOperatorMs = chance.between(HANDED_OVER_MS, CREATED_AGAIN_MS);
    return [
      // The slots of the move are those that have a partition when it begins.
      write(0, nth, create('1', 'first')),
      write(at, nth, create('2', 'first')),
      ...(isCopied
        ? [remove(BEFORE_MS + MOVED_MS)]
        : [remove(at + DELETED_AFTER_MS), { ...again, event: { ...again.event, afterOperatorMs } }]),
    ];
  });
  const to = clocksMs.indexOf(Math.min(...clocksMs));
  return [{ at: BEFORE_MS, event: { do: 'operate', work: 'move', to, diesAfterMs: undefined } }, ...rows];
}

/** Writes while entities move to another key. */
export function writesBesideRekey(
  chance: Chance,
  writes: number,
): { readonly ms: number; readonly step: Write['step'] }[] {
  return Array.from({ length: writes }, () => {
    const key = { pad: String(chance.below(DRILLS)), id: String(1 + chance.below(4)) };
    const values = { text: `third${chance.below(100)}` };
    const put = { of: 'pads', do: 'put', key, values: { ...key, ...values } } as const;
    const step = chance.isTrue(0.3) ? ({ of: 'pads', do: 'delete', key } as const) : put;
    return { ms: chance.between(0, REKEY_MS), step };
  });
}

type Write = Extract<Event, { do: 'write' }>;

const write = (at: number, client: number, step: Write['step'], traps?: readonly Trap[]) => ({
  at,
  event: { do: 'write' as const, client: client % CLIENTS, step, ...(traps && { traps }) },
});

const after = ({ at, event }: ReturnType<typeof write>, nth: number, ms: number): Timed => ({
  at,
  event: { ...event, after: { scene: FIRST_SCENE - nth, ms } },
});

/** Each stop comes to the same operation as the one before. */
function trapsOf(nth: number, stops: readonly Stop[]): Trap[] {
  return stops.reduceRight<Trap[]>(
    ([then], one) => [{ ...one, scene: FIRST_SCENE - nth, nth: 1, ...(then && { then }) }],
    [],
  );
}
