import type { Values } from '../../lib/index.ts';
import { addComputed } from '../../local/packs/example-values.ts';
import type { Step } from '../../local/walk/steps.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import { CLIENTS, type Event } from './event.ts';
import { type Chance, createChance } from './world/chance.ts';
import { TRAP_ENDS, TRAP_REQUESTS, type Trap } from './world/network.ts';

/**
 * Scenes: a write of an entity stops at a request of some kind, while others write, repair or delete the same entity, or one with the same
 * values, at a time that the protocol counts with. Random writes rarely meet so.
 */

/** Within the 20 seconds that the protocol leaves for pauses, the way of a request and clocks. */
export const LONGEST_PAUSE_MS = 9_000;
/** After a reply, a process may pause for any time: it looks at the clock again before its next request. */
const PAUSES_MS = [2_000, 14_000, 16_000, 26_000, 31_000, 51_000, 75_000, 75_000, 95_000, 95_000];
const LATE_MS = [2_000, 8_000, 14_000, 16_000, 24_000];
/** When the reminder of work becomes visible, and is received. */
const REMINDED_MS = 58_000;
const RECEIVED_WITHIN_MS = 20_000;
/** What the first write of a scene needs is written so long before. */
const BEFORE_MS = 3_000;
/** Deaths and long pauses of a world. A message is given up after five attempts whose process stopped. */
const MOST_STOPS = 12;

type Timed = { readonly at: number; readonly event: Event };

interface ScenesOptions {
  readonly seed: number;
  readonly steps: readonly Step[];
  /** When each scene begins. */
  readonly times: readonly number[];
}

export function scenesOf(entities: readonly Entity[], { seed, steps, times }: ScenesOptions): Timed[] {
  // Swarm: each seed has some kinds of requests and ends of them, and few entities.
  const swarm = createChance(seed, 'scenes');
  const requests = swarm.shuffle(TRAP_REQUESTS).slice(0, 1 + swarm.below(TRAP_REQUESTS.length));
  const ends = swarm.shuffle(TRAP_ENDS).slice(0, 1 + swarm.below(TRAP_ENDS.length));
  const creations = steps.filter(({ do: write, values }) => write === 'create' && values);
  let stops = 0;
  const turns = swarm.shuffle([...new Set(creations.map(({ of }) => of))]);
  return times.flatMap((at, scene) => {
    const chance = createChance(seed, 'scene', scene);
    // A trap closes at requests of any write to a table, so scenes of the same table are apart.
    const of = turns[scene % turns.length];
    const entity = entities.find(({ name }) => name === of);
    if (!entity) return [];
    const setTrap = (): Trap => {
      const trap = createTrap(scene, { requests, ends, chance });
      const isStop = trap.end.startsWith('dies') || (trap.end === 'pauses after' && trap.forMs > LONGEST_PAUSE_MS);
      if (isStop) stops += 1;
      return isStop && stops > MOST_STOPS ? { ...trap, end: 'replyLost' } : trap;
    };
    return sceneOf(entity, { at, scene, steps, creations, chance, setTrap });
  });
}

interface SceneOptions {
  readonly at: number;
  readonly scene: number;
  readonly steps: readonly Step[];
  readonly creations: readonly Step[];
  readonly chance: Chance;
  setTrap(): Trap;
}

function sceneOf(entity: Entity, { at, scene, steps, creations, chance, setTrap }: SceneOptions): Timed[] {
  const { name: of, keyFields, childOf, movable } = entity;
  const same = creations.filter((step) => step.of === of);
  const family = childOf && creations.filter((step) => step.of === childOf.name).at(0);
  const inherited = (family && childOf && keyOf(childOf, family.values ?? {})) ?? {};
  const chooseValues = () => ({ ...chance.pick(same).values, ...inherited });
  const values = chooseValues();
  const key = keyOf(entity, values);
  const withoutKey = (given: Values) =>
    Object.fromEntries(Object.entries(given).filter(([field]) => !keyFields.includes(field)));
  const create = (given: Values) => ({ of, do: 'create', values: given }) satisfies Step;
  const acts: Record<string, () => Step> = {
    create: () => create(chance.isTrue(0.5) ? values : { ...chooseValues(), ...key }),
    update: () => ({ of, do: 'update', key, values: withoutKey(chooseChange()) }),
    /** Undoes what others changed. */
    restore: () => ({ of, do: 'update', key, values: withoutKey(values) }),
    put: () => ({ of, do: 'put', key, values: chance.isTrue(0.5) ? values : { ...chooseValues(), ...key } }),
    delete: () => ({ of, do: 'delete', key }),
    move: () =>
      movable.length === 0
        ? { of, do: 'delete', key }
        : { of, do: 'move', key, values: baseValues.pick(chooseValues(), movable) },
    /** Another entity with the same values. */
    twin: () => create({ ...chooseValues(), ...withoutKey(values), ...inherited }),
  };
  function chooseChange(): Values {
    const changes = steps.filter((step) => step.of === of && ['update', 'merge'].includes(step.do));
    return changes.length > 0 && chance.isTrue(0.6) ? (chance.pick(changes).values ?? {}) : chooseValues();
  }
  const act = (...names: readonly string[]) => acts[chance.pick(names)]?.() ?? create(values);

  const client = chance.below(CLIENTS);
  const first = act('create', 'create', 'update', 'update', 'update', 'put', 'delete', 'move');
  const trap = setTrap();
  // What comes after a stop may stop, too.
  const traps = chance.isTrue(0.4) ? [trap, setTrap()] : [trap];
  const events: Timed[] = [{ at, event: { do: 'write', client, step: first, traps } }];
  if (family) events.push({ at: at - 2 * BEFORE_MS, event: { do: 'write', client, step: family } });
  if (first.do !== 'create' || chance.isTrue(0.2))
    events.push({ at: at - BEFORE_MS, event: { do: 'write', client, step: create(values) } });
  const moments = [
    () => chance.pick([0, 5, 50, 500]),
    () => chance.next() * trap.forMs,
    () => trap.forMs + chance.next() * 1_000,
    () => REMINDED_MS + chance.next() * RECEIVED_WITHIN_MS,
  ];
  for (let others = 1 + chance.below(3); others > 0; others -= 1) {
    const after = { scene, ms: chance.pick(moments)() };
    if (chance.isTrue(0.2)) events.push({ at, event: { do: 'verify', of, after } });
    else {
      const step = act('update', 'update', 'restore', 'restore', 'put', 'delete', 'delete', 'create', 'twin');
      const other = (client + 1 + chance.below(CLIENTS - 1)) % CLIENTS;
      const next = chance.isTrue(0.25) ? { traps: [setTrap()] } : {};
      events.push({ at, event: { do: 'write', client: other, step, after, ...next } });
    }
  }
  const after = { scene, ms: chance.pick(moments)() };
  if (chance.isTrue(0.5)) events.push({ at, event: { do: 'list', client: chance.below(CLIENTS), of, key, after } });
  return events;
}

function createTrap(
  scene: number,
  {
    requests,
    ends,
    chance,
  }: {
    readonly requests: readonly Trap['request'][];
    readonly ends: readonly Trap['end'][];
    readonly chance: Chance;
  },
): Trap {
  const end = chance.pick(ends);
  const forMs = {
    'pauses before': chance.between(100, LONGEST_PAUSE_MS),
    'pauses after': chance.pick(PAUSES_MS) + chance.next() * 1_000,
    late: chance.pick(LATE_MS),
    held: chance.between(100, LONGEST_PAUSE_MS),
  };
  return {
    scene,
    request: chance.pick(requests),
    nth: chance.pick([1, 1, 1, 2]),
    end,
    forMs: end in forMs ? forMs[end as keyof typeof forMs] : 1_000,
  };
}

const keyOf = (entity: Entity, values: Values) => baseValues.pick(addComputed(entity, values), entity.keyFields);
