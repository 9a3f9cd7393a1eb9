import type { Values } from '../../lib/index.ts';
import { addComputed } from '../../local/packs/example-values.ts';
import type { Step } from '../../local/walk/steps.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { type Event, STEWARD_CLIENT } from './event.ts';
import { type Chance, createChance } from './world/chance.ts';
import { MOST_HELD_MS, MOST_LATE_MS, type Trap } from './world/network.ts';

/**
 * Drills: scenes whose steps stop one after another where a rule of the protocol matters. One stop has to end while another lasts, which
 * scenes of any steps rarely do. Everything else is random: the entity, the times, the change of the other client.
 */

/** What is hidden for a minute is received, and its work is done. */
const REMINDED_MS = 60_500;
const LONGEST_PAUSE_MS = 95_000;
/** What the first write needs is written so long before. */
const BEFORE_MS = 3_000;
const MOST_APART_MS = 20_000;
/** The consistency check looks again before it repairs. */
const LOOKS_AGAIN_MS = 3_000;

/** The processes know of a move by then. It copies about 40 seconds after it has begun. */
const FENCED_MS = 7_000;
/** A move hands partitions over so soon after it has copied the first table. */
const HANDS_OVER_MS = 1_500;
const HANDED_OVER = 6;
/** Nobody waits for the traps beside moves. */
const BESIDE = -1;

type Timed = { readonly at: number; readonly event: Event };
type Stop = Omit<Trap, 'scene' | 'nth' | 'then'>;
type Pause = Pick<Trap, 'end' | 'forMs'>;

/** A field of the small model that an index in another table has. */
interface Target {
  readonly of: string;
  readonly field: string;
}
const OWNED: readonly Target[] = [
  { of: 'guests', field: 'name' },
  { of: 'films', field: 'stars' },
  { of: 'tickets', field: 'owner' },
  { of: 'books', field: 'author' },
];
const UNIQUE: readonly Target[] = [{ of: 'cars', field: 'plate' }];
const QUEUED: readonly Target[] = [{ of: 'tickets', field: 'topic' }];

/** What the first client does, by default an update, where it stops, and what the others do so many milliseconds after its first stop. */
interface Drill {
  readonly first?: 'update' | 'create' | 'delete' | 'read' | 'grant';
  readonly stops: readonly Stop[];
  readonly others: readonly {
    readonly ms: number;
    readonly act: 'restore' | 'update' | 'delete' | 'repair';
    readonly stops?: readonly Stop[];
  }[];
}

const stop = (request: Trap['request'], { end, forMs }: Pause): Stop => ({ request, end, forMs });
const pause = (forMs: number): Pause => ({ end: 'pauses after', forMs });
const DIES_BEFORE: Pause = { end: 'dies before', forMs: 0 };
const DIES_AFTER: Pause = { end: 'dies after', forMs: 0 };

interface Kind {
  readonly targets: readonly Target[];
  /** True if its entity is in no drill before: its writes would cover the traces of those. */
  readonly isApart?: boolean;
  readonly create: (chance: Chance) => Drill;
}

const DRILLS: readonly Kind[] = [
  {
    /** A client takes a unique value back while the former change is about to remove the row. */
    targets: UNIQUE,
    create(chance) {
      const first = delay(chance, MOST_HELD_MS * 0.7);
      const second = delay(chance, MOST_HELD_MS, first.forMs);
      return {
        stops: [stop('read other', first)],
        others: [{ ms: chance.next() * first.forMs * 0.8, act: 'restore', stops: [stop('write entity', second)] }],
      };
    },
  },
  {
    /** Another change while a claim is being confirmed. */
    targets: UNIQUE,
    create(chance) {
      const first = delay(chance, MOST_HELD_MS);
      return {
        stops: [stop('change other', first)],
        others: [{ ms: chance.next() * first.forMs, act: chance.pick(['restore', 'update']) }],
      };
    },
  },
  {
    /** An insert of a claim or of an index entry arrives when others have done its work, and more. */
    targets: [...UNIQUE, ...OWNED],
    create(chance) {
      const forMs = chance.between(2_000, MOST_LATE_MS);
      return {
        first: chance.pick(['update', 'create']),
        stops: [stop('insert other', { end: 'late', forMs })],
        others: [{ ms: chance.next() * forMs, act: chance.pick(['delete', 'delete', 'update', 'restore']) }],
      };
    },
  },
  {
    /** Another change between a transaction whose reply is lost and its repetition. */
    targets: [...OWNED, ...UNIQUE],
    create: (chance) => ({
      stops: [stop('write entity', { end: 'replyLost', forMs: 0 })],
      others: [{ ms: chance.next() * 200, act: chance.pick(['update', 'update', 'delete']) }],
    }),
  },
  {
    /** A writer sleeps until others have done its work, and dies when it has written an index entry. */
    targets: OWNED,
    create(chance) {
      const slept = sleep(chance);
      return {
        stops: [stop('write entity', slept), dieAfterInsert(chance)],
        others: [{ ms: chance.between(REMINDED_MS, slept.forMs), act: chance.pick(['delete', 'update', 'restore']) }],
      };
    },
  },
  {
    /** A function sleeps until the reminder of its work is about to be received, and writes an index entry after that. */
    targets: QUEUED,
    create(chance) {
      const forMs = chance.between(REMINDED_MS - MOST_HELD_MS, REMINDED_MS - 500);
      const stops = chance.isTrue(0.5)
        ? [stop('receive message', pause(forMs))]
        : [stop('receive message', pause(chance.between(11_000, 16_000))), stop('hide message', pause(forMs))];
      const held = chance.between(MOST_HELD_MS / 2, MOST_HELD_MS);
      const before = stops.reduce((sum, one) => sum + one.forMs, 0);
      return {
        stops: [...stops, stop('insert other', { end: 'held', forMs: held }), stop('read entity', DIES_BEFORE)],
        others: [
          { ms: before + chance.between(held / 4, held), act: chance.pick(['delete', 'delete', 'update', 'restore']) },
        ],
      };
    },
  },
  {
    /** A repair that has died deletes an entry late, which another change needs again. */
    targets: OWNED,
    create(chance) {
      const checks = chance.between(REMINDED_MS - MOST_LATE_MS, REMINDED_MS - 2 * LOOKS_AGAIN_MS);
      const late = { end: 'late', forMs: MOST_LATE_MS } as const;
      return {
        stops: [stop('read other', DIES_BEFORE)],
        others: [
          { ms: checks, act: 'repair', stops: [stop('change other', late), stop('change other', DIES_BEFORE)] },
          { ms: chance.between(checks + LOOKS_AGAIN_MS, REMINDED_MS), act: 'restore' },
        ],
      };
    },
  },
  {
    /** A process dies before the record of what it did is in the audit log. */
    targets: UNIQUE,
    create: (chance) => ({
      first: chance.pick(['create', 'delete', 'read', 'grant']),
      stops: [
        ...(chance.isTrue(0.5) ? [stop('append record', { end: 'lost', forMs: 0 })] : []),
        stop('append record', DIES_BEFORE),
      ],
      others: [],
    }),
  },
];

/** A writer sleeps until others have ended its intent, and dies when it has written. With unique values, it would cover the traces of others. */
const SLEEP: Kind = {
  targets: OWNED,
  create: (chance) => ({
    first: chance.pick(['update', 'update', 'create']),
    stops: [stop('send message', sleep(chance)), stop('write entity', DIES_AFTER)],
    others: [],
  }),
};
/** A writer sleeps until others have ended its intent, and dies when it has claimed a value. */
const CLAIMING_SLEEP: Kind = {
  targets: UNIQUE,
  isApart: true,
  create: (chance) => ({
    first: chance.pick(['update', 'create']),
    stops: [stop('send message', sleep(chance)), stop('insert other', DIES_AFTER)],
    others: [],
  }),
};
const SLEEPS = [SLEEP, SLEEP, CLAIMING_SLEEP] as const;
/** So many come after the other drills. Each takes a minute and more, and a world that lasts until the hourly check of the app loses traces. */
const SLEEPS_PER_DRILL = 0.2;

function delay(chance: Chance, mostMs: number, leastMs = 100): Pause {
  return { end: chance.pick(['held', 'pauses before']), forMs: chance.between(leastMs, mostMs) };
}

/** Until others have done the work. */
function sleep(chance: Chance): Pause {
  return pause(chance.between(REMINDED_MS + 2_000, LONGEST_PAUSE_MS));
}

function dieAfterInsert(chance: Chance): Stop {
  return chance.isTrue(0.5) ? stop('insert other', DIES_AFTER) : stop('read entity', DIES_BEFORE);
}

interface DrillsOptions {
  readonly seed: number;
  readonly steps: readonly Step[];
  /** When the first drill begins. */
  readonly from: number;
  /** How many, beside those in which a writer sleeps. */
  readonly drills: number;
}

/** Drills one after another: a process that sleeps takes part in no other. */
export function drillsOf(entities: readonly Entity[], { seed, steps, from, drills }: DrillsOptions): Timed[] {
  let next = from;
  const drilled = new Set<string | undefined>();
  const length = drills + Math.ceil(drills * SLEEPS_PER_DRILL);
  return Array.from({ length }).flatMap((_, scene) => {
    const chance = createChance(seed, 'drill', scene);
    const sleeping = scene < drills ? undefined : SLEEPS[(scene - drills) % SLEEPS.length];
    const { targets, isApart, create } = sleeping ?? chance.pick(DRILLS);
    const target = chance.pick(targets);
    const drill = create(chance);
    const at = next + 2 * BEFORE_MS;
    next = at + lengthOf(drill) + chance.between(BEFORE_MS, MOST_APART_MS);
    const entity = entities.find(({ name }) => name === target.of);
    const addressOf = ({ values = {} }: Step) =>
      entity && JSON.stringify(definePlaces.addressOf(entity, addComputed(entity, values)));
    const creations = steps
      .filter(({ do: write, of, values }) => write === 'create' && values && of === target.of)
      .filter((step) => !isApart || !drilled.has(addressOf(step)));
    if (!entity || creations.length === 0) return [];
    const creation = chance.pick(creations);
    drilled.add(addressOf(creation));
    return sceneOf(entity, { at, scene, field: target.field, values: creation.values ?? {}, chance, drill });
  });
}

function lengthOf({ stops, others }: Drill): number {
  const lasts = (of: readonly Stop[] = []) => of.reduce((sum, { forMs }) => sum + forMs, 0);
  return Math.max(lasts(stops), ...others.map((other) => other.ms + lasts(other.stops)));
}

/** Writes to partitions that a move has opened, which take long to arrive while the move hands the partitions over. */
export function handoverOf(
  entities: readonly Entity[],
  { seed, steps, at }: { readonly seed: number; readonly steps: readonly Step[]; readonly at: number },
): Timed[] {
  const creations = steps.filter(({ do: write, values }) => write === 'create' && values);
  return Array.from({ length: HANDED_OVER }).flatMap((_, nth): Timed[] => {
    const chance = createChance(seed, 'handover', at, nth);
    const { of, values = {} } = chance.pick(creations);
    const entity = entities.find(({ name }) => name === of);
    if (!entity) return [];
    const key = baseValues.pick(addComputed(entity, values), entity.keyFields);
    const client = chance.below(3);
    const put = () =>
      ({
        of,
        do: 'put',
        key,
        values: { ...chance.pick(creations.filter((one) => one.of === of)).values, ...key },
      }) satisfies Step;
    const opensAt = at + chance.between(FENCED_MS, FENCED_MS * 3);
    const held = {
      scene: BESIDE - nth,
      request: 'write entity',
      nth: 1,
      end: 'held',
      forMs: chance.next() * MOST_HELD_MS,
    } as const;
    const afterOperatorMs = chance.next() * HANDS_OVER_MS;
    return [
      { at: opensAt, event: { do: 'write', client, step: { of, do: 'create', values } } },
      { at: opensAt + 2 * MOST_HELD_MS, event: { do: 'write', client, step: put(), traps: [held], afterOperatorMs } },
      {
        at: opensAt + 2 * MOST_HELD_MS,
        event: { do: 'read', client: client + 1, of, key, afterOperatorMs: afterOperatorMs + held.forMs + 1_000 },
      },
    ];
  });
}

function sceneOf(
  entity: Entity,
  {
    at,
    scene,
    field,
    values,
    chance,
    drill,
  }: {
    readonly at: number;
    readonly scene: number;
    readonly field: string;
    readonly values: Values;
    readonly chance: Chance;
    readonly drill: Drill;
  },
): Timed[] {
  const { name: of } = entity;
  const key = baseValues.pick(addComputed(entity, values), entity.keyFields);
  const [first, ...further] = chance.shuffle(['1', '2', '3', '4']).map((digit) => {
    // No other entity has such a value.
    const isText = entity.schema.shape[field]?.safeParse(`${digit}x${scene}`).success === true;
    return { [field]: isText ? `${digit}x${scene}` : digit };
  });
  const [second, third] = further;
  // Of another process, whether there are two or three.
  const client = chance.below(3);
  const traps = trapsOf(scene, drill.stops);
  const create = { of, do: 'create', values: { ...values, ...first } } satisfies Step;
  const update = (to: Values = {}) => ({ of, do: 'update', key, values: to }) satisfies Step;
  const remove = { of, do: 'delete', key } satisfies Step;
  const firsts = {
    create: { do: 'write', client, step: create, traps },
    update: { do: 'write', client, step: update(second), traps },
    delete: { do: 'write', client, step: remove, traps },
    read: { do: 'read', client: STEWARD_CLIENT, of, key, traps },
    grant: { do: 'grant', client, of, traps },
  } as const satisfies Record<string, Event>;
  const begin = drill.first ?? 'update';
  // Who has a car whose plate is the subject of the token gets grants of it.
  const prepare = update(begin === 'grant' ? { [field]: `client${client}` } : first);
  const events: Timed[] = [
    { at: at - 2 * BEFORE_MS, event: { do: 'write', client, step: begin === 'create' ? remove : create } },
    // An earlier drill may have created the entity.
    ...(begin === 'create' ? [] : [{ at: at - BEFORE_MS, event: { do: 'write', client, step: prepare } as const }]),
    { at, event: firsts[begin] },
  ];
  for (const { ms, act, stops = [] } of drill.others) {
    const after = { scene, ms };
    const more = stops.length > 0 ? { traps: trapsOf(scene, stops) } : {};
    if (act === 'repair') events.push({ at, event: { do: 'verify', of, after, ...more } });
    else {
      const acts = { restore: update(first), update: update(third), delete: remove };
      events.push({ at, event: { do: 'write', client: client + 1, step: acts[act], after, ...more } });
    }
  }
  return events;
}

/** The first stop, after which the same operation comes to the others. */
function trapsOf(scene: number, stops: readonly Stop[]): Trap[] {
  return stops.reduceRight<Trap[]>(([then], one) => [{ ...one, scene, nth: 1, ...(then && { then }) }], []);
}
