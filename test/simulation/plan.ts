import type { Model, Values } from '../../lib/index.ts';
import { addComputed } from '../../local/packs/example-values.ts';
import type { Step } from '../../local/walk/steps.ts';
import { roundsOf } from '../../local/walk/walk.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import { backedUpModel, backupDrillsOf, moveDrillOf, rekeyedModel } from './backup-drills.ts';
import { importOf } from './bulk-rows.ts';
import { drillsOf, handoverOf } from './drills.ts';
import { CLIENTS, type Event } from './event.ts';
import { LIMITED, MODELS, STAGE } from './models.ts';
import { ACCOUNT_WORKS } from './operators.ts';
import { ruledScenesOf } from './ruled-scenes.ts';
import { LONGEST_PAUSE_MS, scenesOf } from './scenes.ts';
import { BUILT, formerModel, smallModel } from './small-model.ts';
import { respell } from './spelling.ts';
import { type Chance, createChance } from './world/chance.ts';
import { MOST_HELD_MS, type NetworkFaults, NO_FAULTS } from './world/network.ts';

export interface Planned {
  /** Names the event in `--without`. */
  readonly nth: number;
  /** Milliseconds from the beginning. */
  readonly at: number;
  readonly event: Event;
  /** True for an event that happens only when the others and their work have ended. Its time counts from then. */
  readonly isAtRest?: boolean;
}

export interface Plan {
  readonly seed: number;
  readonly modelName: string;
  readonly model: Model;
  /** The model of the release at the beginning, if another one is deployed. */
  readonly former?: Model;
  readonly processes: number;
  readonly accounts: number;
  /** How many accounts the processes know at the beginning. */
  readonly accountsAtFirst: number;
  /** By how much the clock of each process is ahead. */
  readonly aheadMs: readonly number[];
  readonly faults: NetworkFaults;
  /** The user whose rights rules limit, if the model has such. */
  readonly user: string | undefined;
  /** True if another program has rows in tables of the app. */
  readonly hasForeignRows?: boolean;
  /** True for drills, which keep their release and their entities. */
  readonly isDrilled?: boolean;
  /** How long a queue that nothing is in is not looked at. */
  readonly idlePollMs?: number;
  /** Set if the model has a backup. */
  readonly backup?: BackupPlan;
  /** True if somebody changes stored rows by hand at the end, one after another. */
  readonly isInjured: boolean;
  readonly events: readonly Planned[];
}

interface BackupPlan {
  /** By how much the clock of each account is ahead, that of the backup last. */
  readonly clocksMs: readonly number[];
  /** How many moments are restored. */
  readonly cuts: number;
  /** How many of them are restored to other places, each as a whole. */
  readonly restores: number;
  /** The model of the release at the end, in which an entity has another key. */
  readonly rekeyed?: Model;
}

export const WRITES = 50;
/** A round of the walk has a third of its steps at most. */
const ROUNDS = 3;
const BURSTS = 12;
const WITHIN_MS = 70_000;
/** Clients begin when the app is ready. */
const BEGIN_MS = 5_000;
const GROW_MS = 4_000;
/** Writes of an entity that exists. */
const CHANGES: ReadonlySet<string> = new Set(['put', 'update', 'merge']);
/** By then, an operator has chosen slots. The next request to a table copies it: 40 seconds later, or when a successor resumes the move. */
const MOVE_CHOSEN_MS = 5_000;
/** A move copies small tables within this time. */
const MOVE_COPIES_MS = 1_500;
/** A move lists partitions, and changes the state of slots. */
const MOVE_BEGINS_MS = 5_000;
const MOVE_HOLDS_MS = 4_000;
const MOVE_READS_MS = 2_000;
const MOVE_WRITES = 12;
/** So many entities are written beside a move. */
const MOVED = 3;
/** Nobody waits for the traps beside moves. */
const BESIDE = -1;
const BESIDE_ROTATION = -10;
const ROTATED_BEFORE_MS = 2_000;
const SPOILT_BEFORE_MS = 60_000;
const SCENES = 10;
/** A world that is a stage has scenes and little else, one after another. */
const STAGED = 0.3;
const SCENES_ON_STAGE = 60;
const SCENE_MS = 8_000;
/** Rounds whose steps have what the entities of scenes need. */
const MATERIAL_ROUNDS = 24;
const RULED_SCENES = 12;
/** A world of drills. */
const DRILLED = 0.08;
const DRILLS = 30;
const MOVES = 3;
const MOVE_MS = 150_000;
const IDLE_POLLS_MS = [1_000, 1_000, 4_000];
const CROWD = 8;
/** The first of a crowd may create what the others need. */
const CROWD_AFTER_MS = 3_000;
/** By how much a clock may be ahead of that of storage, or behind it. */
const AHEAD_MS = [0, 0, -7_000, 4_000, 8_000, 300_000, -300_000];
/** Times that the protocol counts with. */
const AWAY_MS = [3_000, 15_000, 25_000, 40_000, 65_000];

const IMPORTED = 0.15;
const BACKED_UP = 0.35;
const DEPLOYED = 0.4;
/** Two releases run beside each other for so long. */
const MOST_APART_MS = 40_000;
const BESIDE_DEPLOYMENT = 16;
const REKEYED = 0.5;
const CUTS = 6;
/** A restore takes about as many requests as a third of a world. */
const CUTS_OF_RESTORE = 20;
/** By how much the clock of an account may be ahead. A move ends its pause only when the clocks have passed each other. */
const CLOCK_MS = 1_500;
const CLOCKS_MS = [0, 0, -CLOCK_MS, CLOCK_MS];
const SNAPSHOTS = 4;
/** Moves and archives, and how soon after the create of their entity. */
const OPERATIONS = 8;
const OPERATES_WITHIN_MS = 20_000;
/** The last request at which a snapshot may die. */
const MOST_REQUESTS = 60;

interface PlanOptions {
  /** How many moments of each world with a backup are restored. */
  readonly cuts?: number | undefined;
  /** The name of the model. One with rules is simulated only if it is named. */
  readonly name?: string | undefined;
  /** How much clients write. */
  readonly writes?: number | undefined;
}

/** Returns what the seed determines. */
export function planOf(seed: number, { name, writes = WRITES, cuts = CUTS }: PlanOptions = {}): Plan {
  const plan = planWithout(seed, { name, writes });
  const chance = createChance(seed, 'backup');
  return withImport(chance.isTrue(BACKED_UP) ? withBackup(plan, cuts, chance) : withDeployment(plan));
}

/** The same world, at whose beginning an entity is loaded. */
function withImport(plan: Plan): Plan {
  const chance = createChance(plan.seed, 'import');
  const event = !plan.isDrilled && chance.isTrue(IMPORTED) ? importOf(plan.model, plan.seed, chance) : undefined;
  if (!event) return plan;
  return { ...plan, events: [{ nth: plan.events.length + 1, at: 0, event }, ...plan.events] };
}

/** The same world, which begins with an earlier release. Drills keep theirs: they stop at what that one lacks. */
function withDeployment(plan: Plan): Plan {
  const { seed, events } = plan;
  const chance = createChance(seed, 'deploy');
  if (plan.model !== smallModel || plan.isDrilled || !chance.isTrue(DEPLOYED)) return plan;
  const at = BEGIN_MS + chance.next() * Math.max(0, (events.at(-1)?.at ?? 0) - BEGIN_MS);
  const apartMs = chance.between(MOST_APART_MS / 4, MOST_APART_MS);
  const built = plan.model.list.filter(({ name }) => BUILT.some((path) => path.startsWith(`${name}/`)));
  const creations = events.flatMap(({ event }) => {
    if (event.do !== 'write' || event.step.do !== 'create') return [];
    const { of, values = {} } = event.step;
    return built.filter(({ name }) => name === of).map(({ keyFields }) => ({ of, values, keyFields }));
  });
  const beside = Array.from({ length: creations.length > 0 ? BESIDE_DEPLOYMENT : 0 }, () => {
    const { of, values, keyFields } = chance.pick(creations);
    const key = baseValues.pick(values, keyFields);
    const others = creations.filter((one) => one.of === of);
    const put = { of, do: 'put', key, values: { ...chance.pick(others).values, ...key } } as const;
    const step = chance.isTrue(0.5) ? put : ({ of, do: 'create', values } as const);
    const event = { do: 'write', client: chance.below(CLIENTS), step } as const;
    return { at: at + chance.next() * plan.processes * apartMs, event };
  });
  const more = [{ at, event: { do: 'deploy', apartMs } as const }, ...beside];
  const deployed = [...events, ...more.map((one, index) => ({ nth: events.length + 1 + index, ...one }))];
  return {
    ...plan,
    former: formerModel,
    // The earlier release meets messages of the later one only if it looks for them.
    idlePollMs: chance.pick(IDLE_POLLS_MS),
    events: deployed.sort((one, other) => one.at - other.at || one.nth - other.nth),
  };
}

const withDays = (model: Model) => ({ ...model, backup: { days: 35 } }) as Model;

/** The same world with a backup. */
function withBackup(plan: Plan, cuts: number, chance: Chance): Plan {
  const moved = plan.events.find(({ event }) => event.do === 'operate' && event.work === 'move');
  const chosen = Array.from({ length: plan.accounts + 1 }, () => chance.pick(CLOCKS_MS));
  const to = moved?.event.do === 'operate' ? moved.event.to : undefined;
  // Rows that move to an account whose clock is behind would get earlier times.
  const isBehind = to !== undefined && createChance(plan.seed, 'behind').isTrue(0.5);
  const clocksMs = isBehind ? chosen.map((_, index) => (index === to ? -CLOCK_MS : CLOCK_MS)) : chosen;
  const last = plan.events.at(-1)?.at ?? BEGIN_MS;
  const happen = (most: number, create: () => Event) =>
    Array.from({ length: chance.below(most + 1) }, () => {
      const near = chance.pick(plan.events).at + chance.between(-200, 200);
      return { at: chance.isTrue(0.7) ? near : BEGIN_MS + chance.next() * (last - BEGIN_MS), event: create() };
    });
  const deaths = () => Array.from({ length: chance.pick([0, 0, 1, 2]) }, () => 1 + chance.below(MOST_REQUESTS));
  const isOnStage = plan.model === smallModel;
  const drills = isOnStage ? backupDrillsOf({ seed: plan.seed, from: BEGIN_MS, until: last }) : [];
  const rekeyed = isOnStage && createChance(plan.seed, 'rekeyed').isTrue(REKEYED) ? withDays(rekeyedModel) : undefined;
  const more = [
    ...happen(SNAPSHOTS, () => ({ do: 'snapshot', diesAt: deaths(), forMs: chance.pick([200, 2_000, 60_000]) })),
    ...happen(2, () => ({ do: 'carry', diesAt: deaths() })),
    // The account of the backup is the last one.
    ...happen(1, () => ({ do: 'away', account: plan.accounts, forMs: chance.pick(AWAY_MS) })),
    ...operationsBeside(plan, chance),
    ...drills,
  ].map((one, index) => ({ nth: plan.events.length + 1 + index, ...one }));
  const hasMove = isOnStage && plan.accounts > 1;
  const atRest = hasMove ? moveDrillOf(plan.seed, clocksMs.slice(0, plan.accounts)) : [];
  return {
    ...plan,
    model: withDays(isOnStage ? backedUpModel : plan.model),
    backup: { ...(rekeyed && { rekeyed }), clocksMs, cuts, restores: Math.ceil(cuts / CUTS_OF_RESTORE) },
    events: [
      ...[...plan.events, ...more].sort((one, other) => one.at - other.at || one.nth - other.nth),
      ...inOrder(atRest).map(({ nth, ...one }) => ({
        nth: plan.events.length + more.length + nth,
        ...one,
        isAtRest: true,
      })),
    ],
  };
}

/** Moves and archives of entities that have just been created: a moment may be in the middle of one. */
function operationsBeside({ model, events }: Plan, chance: Chance): { at: number; event: Event }[] {
  const created = events.flatMap(({ at, event }) => {
    if (event.do !== 'write' || event.step.do !== 'create' || !event.step.values) return [];
    const entity = model.list.find(({ name }) => name === event.step.of);
    return entity && (entity.movable.length > 0 || entity.archive) ? [{ at, entity, values: event.step.values }] : [];
  });
  return chance
    .shuffle(created)
    .slice(0, OPERATIONS)
    .map(({ at, entity, values }) => {
      const key = baseValues.pick(addComputed(entity, values), entity.keyFields);
      const same = created.filter((other) => other.entity === entity);
      const isMove = entity.movable.length > 0 && (!entity.archive || chance.isTrue(0.5));
      const to = baseValues.pick(chance.pick(same).values, entity.movable);
      const step = isMove
        ? ({ of: entity.name, do: 'move', key, values: to } as const)
        : ({ of: entity.name, do: 'archive', key } as const);
      const event = { do: 'write', client: chance.below(CLIENTS), step } as const;
      return { at: at + chance.between(300, OPERATES_WITHIN_MS), event };
    });
}

function planWithout(
  seed: number,
  { name, writes }: { readonly name: string | undefined; readonly writes: number },
): Plan {
  const isOnStage = name === undefined || name === STAGE;
  if (isOnStage && createChance(seed, 'drilled').isTrue(DRILLED)) return drilledOf(seed, writes);
  const chance = createChance(seed, 'plan');
  if (isOnStage && chance.isTrue(STAGED)) return stageOf(seed, { chance, writes });
  const candidates = Object.entries(MODELS).filter(([each]) => (name ? each === name : each !== LIMITED.model));
  const [modelName, model] = chance.pick(candidates);
  const processes = 1 + chance.below(3);
  const accounts = chance.isTrue(0.4) ? 1 : 2 + chance.below(2);
  const some = eventsOf(model, { seed, processes, accounts, writes });
  const user = modelName === LIMITED.model ? chooseUser(some, createChance(seed, 'user')) : undefined;
  const events = user === undefined ? some : inOrder([...some, ...besideRules(model, { seed, user, writes })]);
  const grows = events.some(({ event }) => event.do === 'grow');
  return {
    seed,
    modelName,
    model,
    processes,
    accounts,
    accountsAtFirst: grows ? accounts - 1 : accounts,
    aheadMs: Array.from({ length: processes }, () => chance.pick(AHEAD_MS)),
    faults: chooseFaults(createChance(seed, 'faults')),
    user,
    hasForeignRows: user !== undefined && accounts > 1 && createChance(seed, 'foreign').isTrue(0.5),
    isInjured: false,
    events,
  };
}

/** Scenes of the user whom rules limit. */
function besideRules(
  model: Model,
  { seed, user, writes }: { readonly seed: number; readonly user: string; readonly writes: number },
): { at: number; event: Event }[] {
  const steps = [...roundsOf(model, { seed, writes: MATERIAL_ROUNDS * WRITES })].flatMap((round) => round.steps);
  const chance = createChance(seed, 'rules');
  const scenes = Math.ceil((RULED_SCENES * writes) / WRITES);
  const times = Array.from({ length: scenes }, () => BEGIN_MS + chance.next() * WITHIN_MS);
  return ruledScenesOf({ seed, user, steps, times });
}

/** Drills of the small model, of processes whose clocks differ. */
function drilledOf(seed: number, writes: number): Plan {
  const chance = createChance(seed, 'drills');
  const rounds = [...roundsOf(smallModel, { seed, writes: MATERIAL_ROUNDS * WRITES })];
  const steps = rounds.flatMap((round) => round.steps);
  const drills = Math.ceil((DRILLS * writes) / WRITES);
  const events = drillsOf(smallModel.list, { seed, steps, from: BEGIN_MS, drills });
  const processes = 2 + chance.below(2);
  const accounts = chance.isTrue(0.7) ? 1 : 2;
  const moves = accounts === 1 ? [] : Array.from({ length: MOVES }, (_, nth) => BEGIN_MS + nth * MOVE_MS);
  return {
    seed,
    modelName: STAGE,
    model: smallModel,
    processes,
    accounts,
    accountsAtFirst: accounts,
    aheadMs: Array.from({ length: processes }, () => chance.pick(AHEAD_MS)),
    faults: chance.isTrue(0.8) ? NO_FAULTS : chooseFaults(createChance(seed, 'faults')),
    user: undefined,
    isDrilled: true,
    idlePollMs: chance.pick(IDLE_POLLS_MS),
    isInjured: false,
    events: inOrder([
      ...events,
      ...moves.flatMap((at, nth) => [
        { at, event: { do: 'operate', work: 'move', to: (nth + 1) % accounts, diesAfterMs: undefined } as const },
        ...handoverOf(smallModel.list, { seed, steps, at }),
      ]),
    ]),
  };
}

/** Scenes of all entities of the small model, beside a move in some worlds. */
function stageOf(seed: number, { chance, writes }: { readonly chance: Chance; readonly writes: number }): Plan {
  const model = smallModel;
  const rounds = [...roundsOf(model, { seed, writes: MATERIAL_ROUNDS * WRITES })];
  const steps = rounds.flatMap((round) => round.steps);
  const scenes = Math.ceil((SCENES_ON_STAGE * writes) / WRITES);
  const times = Array.from({ length: scenes }, (_, nth) => BEGIN_MS + nth * SCENE_MS + chance.next() * SCENE_MS);
  const accounts = chance.isTrue(0.7) ? 1 : 2;
  const moveAt = BEGIN_MS + chance.next() * scenes * SCENE_MS;
  const move = { do: 'operate', work: 'move', to: 1, diesAfterMs: undefined } as const;
  const events = [
    ...scenesOf(model.list, { seed, steps, times }),
    ...(accounts > 1 ? [{ at: moveAt, event: move }] : []),
    ...(accounts > 1 ? besideMove(model.list, { at: moveAt, steps, chance: createChance(seed, 'beside') }) : []),
  ];
  return {
    seed,
    modelName: STAGE,
    model,
    processes: 2 + chance.below(2),
    accounts,
    accountsAtFirst: accounts,
    aheadMs: [0, chance.pick(AHEAD_MS), 0],
    faults: chance.isTrue(0.5) ? NO_FAULTS : chooseFaults(createChance(seed, 'faults')),
    user: undefined,
    isInjured: accounts === 1,
    events: inOrder(events),
  };
}

/** Somebody whom a write of the seed makes a member, or nobody. */
function chooseUser(events: readonly Planned[], chance: Chance): string {
  const named = events.flatMap(({ event }) =>
    event.do === 'write' ? [event.step.key?.userId, event.step.values?.userId] : [],
  );
  return chance.pick(['nobody', ...new Set(named.filter((name) => typeof name === 'string'))]);
}

/** Swarm: each seed has about half of the faults, so that no fault always hides what another one shows. */
function chooseFaults(chance: Chance): NetworkFaults {
  if (chance.isTrue(0.15)) return NO_FAULTS;
  const some = Object.keys(NO_FAULTS).map((name) => {
    // What only takes long spoils no other fault.
    const often = chance.pick(name === 'held' ? [0.02, 0.06, 0.2] : [0.004, 0.012, 0.04]);
    return [name, chance.isTrue(0.5) ? often : 0];
  });
  return Object.fromEntries(some) as unknown as NetworkFaults;
}

/** A write of another client at about the same time, which needs the same rows: those of an entity, of a parent or of a total. */
function rivalOf(entity: Entity, step: Step, { steps, chance }: { steps: readonly Step[]; chance: Chance }) {
  const { key, values = {}, do: write, of } = step;
  const parent = entity.childOf;
  const others = steps.filter((other) => other.of === of && other !== step);
  if (parent && write === 'create' && chance.isTrue(0.3))
    return { of: parent.name, do: 'delete', key: baseValues.pick(values, parent.keyFields) } satisfies Step;
  if (write === 'create' || CHANGES.has(write)) {
    const same = others.filter((other) => other.do === write);
    if (same.length > 0 && chance.isTrue(0.5)) {
      const other = chance.pick(same);
      const grouped = Object.values(entity.totals).flatMap(({ groupFields }) => groupFields);
      const shared = grouped.filter((field) => field in values && !entity.keyFields.includes(field));
      return { ...other, values: { ...other.values, ...baseValues.pick(values, shared) } };
    }
  }
  const changes = others.filter((other) => CHANGES.has(other.do) || other.do === 'delete');
  if (key && (CHANGES.has(write) || write === 'delete'))
    return changes.length > 0 ? { ...chance.pick(changes), key } : undefined;
  // The same key, or the same values.
  return write === 'create' ? step : undefined;
}

/** Writes of all clients at about the same time, which give some entities the same values: the same lists, totals and unique values. */
function crowdOf(entities: readonly Entity[], steps: readonly Step[], chance: Chance): Step[] {
  const creations = steps.filter(({ do: write, values }) => write === 'create' && values);
  const of = creations.length > 0 ? chance.pick(creations).of : undefined;
  const entity = entities.find(({ name }) => name === of);
  if (!entity) return [];
  const parent = entity.childOf;
  const parents = creations.filter((step) => step.of === parent?.name);
  if (parent && parents.length > 0 && chance.isTrue(0.7)) {
    const family = chance.pick(parents);
    const key = baseValues.pick(addComputed(parent, family.values ?? {}), parent.keyFields);
    const children = creations
      .filter((step) => step.of === of)
      .map((step) => ({ ...step, values: { ...step.values, ...key } }));
    const end = { of: parent.name, do: 'delete', key } satisfies Step;
    return [family, ...Array.from({ length: CROWD }, () => (chance.isTrue(0.3) ? end : chance.pick(children)))];
  }
  const same = creations.filter((step) => step.of === of);
  const grouped = Object.values(entity.totals).flatMap(({ groupFields, sum, min, max }) => [
    ...groupFields,
    ...sum,
    ...min,
    ...max,
  ]);
  const given = Object.entries(chance.pick(same).values ?? {}).filter(([field]) => !entity.keyFields.includes(field));
  const some = given.filter(([field]) => (grouped.length > 0 ? grouped.includes(field) : chance.isTrue(0.5)));
  return Array.from({ length: CROWD }, () => {
    const creation = chance.pick(same);
    const key = baseValues.pick(addComputed(entity, creation.values ?? {}), entity.keyFields);
    const write = chance.pick(['create', 'update', 'update', 'update', 'update', 'delete'] as const);
    if (write === 'create') return { ...creation, values: { ...creation.values, ...Object.fromEntries(some) } };
    return { of: entity.name, do: write, key, ...(write === 'update' && { values: Object.fromEntries(some) }) };
  });
}

/** Writes of few entities by all clients, beside the beginning of a move and beside its end. Some take long to arrive. */
function besideMove(
  entities: readonly Entity[],
  { at, steps, chance }: { readonly at: number; readonly steps: readonly Step[]; readonly chance: Chance },
): { at: number; event: Event }[] {
  // A child is not written without its parent.
  const alone = new Set(entities.filter(({ childOf }) => !childOf).map(({ name }) => name));
  const creations = steps.filter(({ do: write, of, values }) => write === 'create' && values && alone.has(of));
  const written = Array.from({ length: creations.length > 0 ? MOVED : 0 }, () => chance.pick(creations));
  return written.flatMap(({ of, values = {} }, nth) => {
    const entity = entities.find(({ name }) => name === of);
    if (!entity) return [];
    const key = baseValues.pick(addComputed(entity, values), entity.keyFields);
    const same = creations.filter((step) => step.of === of);
    return Array.from({ length: MOVE_WRITES / MOVED }).flatMap((): { at: number; event: Event }[] => {
      const put = { of, do: 'put', key, values: { ...chance.pick(same).values, ...key } } satisfies Step;
      const step = chance.isTrue(0.25) ? ({ of, do: 'delete', key } satisfies Step) : put;
      const write = { do: 'write', client: chance.below(CLIENTS), step } as const;
      // Read before the next write hides that this one is lost.
      const read = { do: 'read', client: chance.below(CLIENTS), of, key } as const;
      const readAfter = chance.next() * MOVE_READS_MS;
      if (chance.isTrue(0.3)) {
        const begins = at + chance.next() * MOVE_BEGINS_MS;
        return [
          { at: begins, event: write },
          { at: begins + readAfter, event: read },
        ];
      }
      const held = { scene: BESIDE - nth, request: 'write entity', nth: 1, end: 'held' } as const;
      const trap = chance.isTrue(0.4) ? { traps: [{ ...held, forMs: chance.next() * MOVE_HOLDS_MS }] } : {};
      const afterOperatorMs = chance.next() * MOVE_COPIES_MS;
      return [
        { at: at + MOVE_CHOSEN_MS, event: { ...write, ...trap, afterOperatorMs } },
        { at: at + MOVE_CHOSEN_MS, event: { ...read, afterOperatorMs: afterOperatorMs + readAfter } },
      ];
    });
  });
}

function eventsOf(
  model: Model,
  {
    seed,
    processes,
    accounts,
    writes,
  }: { readonly seed: number; readonly processes: number; readonly accounts: number; readonly writes: number },
): Planned[] {
  const swarm = createChance(seed, 'swarm');
  const [round] = roundsOf(model, { seed, writes: writes * ROUNDS });
  const steps = respell(round?.steps ?? [], createChance(seed, 'spelling')).filter((step) => step.do !== 'settle');
  const bursts = Array.from({ length: BURSTS }, () => BEGIN_MS + swarm.next() * WITHIN_MS);
  const hasRivals = swarm.isTrue(0.7);
  const seen: { readonly of: string; readonly key: Values }[] = [];
  const events: { at: number; event: Event }[] = [];
  steps.forEach((step, index) => {
    const chance = createChance(seed, 'step', index);
    const burst = bursts[chance.below(Math.min(BURSTS, 1 + Math.floor(index / 3)))] ?? 0;
    const at = burst + chance.pick([0, 1, 10, 100, 1_000, 5_000]) * chance.next();
    const client = chance.below(CLIENTS);
    events.push({ at, event: { do: 'write', client, step } });
    if (step.key && !['deleteRange'].includes(step.do)) seen.push({ of: step.of, key: step.key });
    const entity = model.list.find(({ name }) => name === step.of);
    const rival = hasRivals && entity && chance.isTrue(0.5) ? rivalOf(entity, step, { steps, chance }) : undefined;
    if (rival) {
      const rivalAt = at + chance.pick([0, 2, 10, 30, 100]) * chance.next();
      // Of another process, mostly.
      const other = (client + 1) % CLIENTS;
      events.push({ at: rivalAt, event: { do: 'write', client: other, step: rival } });
    }
    if (seen.length === 0 || chance.isTrue(0.4)) return;
    const readAt = chance.isTrue(0.5) ? at + chance.between(0, 500) : BEGIN_MS + chance.next() * WITHIN_MS;
    const read = chance.isTrue(0.3) ? 'list' : 'read';
    events.push({ at: readAt, event: { do: read, client: chance.below(CLIENTS), ...chance.pick(seen) } });
  });
  if (swarm.isTrue(0.6))
    for (let times = 1 + swarm.below(3); times > 0; times -= 1) {
      const chance = createChance(seed, 'crowd', times);
      const at = BEGIN_MS + chance.between(WITHIN_MS / 4, WITHIN_MS);
      crowdOf(model.list, steps, chance).forEach((step, nth) => {
        const event = { do: 'write', client: nth % CLIENTS, step } as const;
        const before = step.do === 'create' && nth === 0 ? CROWD_AFTER_MS : 0;
        events.push({ at: at + chance.pick([0, 5, 30]) * chance.next() - before, event });
      });
    }
  if (swarm.isTrue(0.7)) {
    const most = Math.ceil((SCENES * writes) / WRITES);
    const times = Array.from({ length: 1 + swarm.below(most) }, () => BEGIN_MS + swarm.next() * WITHIN_MS);
    events.push(...scenesOf(model.list, { seed, steps, times }));
  }
  const happen = (times: number, create: (chance: Chance, nth: number) => Event) => {
    for (let nth = 0; nth < times; nth += 1) {
      const chance = createChance(seed, 'happens', events.length);
      const near = chance.pick(bursts) + chance.between(0, 400);
      events.push({ at: chance.isTrue(0.8) ? near : BEGIN_MS + chance.next() * WITHIN_MS, event: create(chance, nth) });
    }
  };
  if (swarm.isTrue(0.5)) happen(1 + swarm.below(3), (chance) => ({ do: 'kill', process: chance.below(processes) }));
  if (swarm.isTrue(0.5))
    happen(1 + swarm.below(4), (chance) => ({
      do: 'pause',
      process: chance.below(processes),
      forMs: chance.between(100, LONGEST_PAUSE_MS),
    }));
  if (swarm.isTrue(0.3))
    happen(1, (chance) => ({ do: 'away', account: chance.below(accounts), forMs: chance.pick(AWAY_MS) }));
  if (accounts > 1) {
    if (swarm.isTrue(0.4)) events.push({ at: GROW_MS, event: { do: 'grow' } });
    if (swarm.isTrue(0.85))
      happen(1 + swarm.below(4), (chance, nth) => {
        // The others have something to do after a move.
        const work = nth === 0 ? 'move' : chance.pick(ACCOUNT_WORKS);
        const dies = chance.isTrue(0.3) && work !== 'abort';
        const diesAfterMs = dies ? chance.between(100, 60_000) : undefined;
        return { do: 'operate', work, to: chance.below(accounts), diesAfterMs };
      });
  }
  for (const { at } of events.filter(({ event }) => event.do === 'operate' && event.work === 'move'))
    events.push(...besideMove(model.list, { at, steps, chance: createChance(seed, 'beside', events.length) }));
  if (swarm.isTrue(0.4)) happen(1 + swarm.below(2), (chance) => ({ do: 'verify', of: chance.pick(steps).of }));
  return inOrder([...events, ...upkeepOf(model, { seed, accounts, bursts })]);
}

/** What operators do beside the writes, in about half of the worlds each. */
function upkeepOf(
  model: Model,
  { seed, accounts, bursts }: { readonly seed: number; readonly accounts: number; readonly bursts: readonly number[] },
): { at: number; event: Event }[] {
  const indexes = model.list.flatMap(({ name: of, indexes }) => Object.keys(indexes).map((index) => ({ of, index })));
  const works: ((chance: Chance, at: number) => { at: number; event: Event }[])[] = [
    (chance, at) =>
      indexes.length > 0 ? [{ at, event: { do: 'upkeep', work: 'reindex', ...chance.pick(indexes) } }] : [],
    (chance, at) => rotationOf(model, { seed, at, chance }),
    (chance, at) => [
      ...[0, 1].map(() => ({ at: at - chance.between(0, SPOILT_BEFORE_MS), event: { do: 'spoil' } as const })),
      { at, event: { do: 'replay' } },
    ],
    (chance, at) => {
      const diesAfterMs = chance.isTrue(0.3) ? chance.between(100, 60_000) : undefined;
      return accounts > 1 ? [{ at, event: { do: 'operate', work: 'balance', to: 0, diesAfterMs } }] : [];
    },
  ];
  return works.flatMap((work, nth) => {
    const chance = createChance(seed, 'upkeep', nth);
    return chance.isTrue(0.5) ? [] : work(chance, chance.pick(bursts) + chance.between(0, 5_000));
  });
}

const sealedModels = new Map<Model, Model>();
/** The model with nothing but the entities that have encrypted fields. */
function encryptedIn(model: Model): Model {
  const list = model.list.filter(({ encrypted }) => encrypted.length > 0);
  const sealed = sealedModels.get(model) ?? { ...model, list };
  sealedModels.set(model, sealed);
  return sealed;
}

/** A rotation of the key, after which an operator has data keys wrapped with the new one, while a client changes an entity that has been found. */
function rotationOf(
  model: Model,
  { seed, at, chance }: { readonly seed: number; readonly at: number; readonly chance: Chance },
): { at: number; event: Event }[] {
  const sealed = encryptedIn(model);
  const encrypted = sealed.list;
  if (encrypted.length === 0) return [];
  const steps = [...roundsOf(sealed, { seed, writes: WRITES })].flatMap((round) => round.steps);
  const creations = steps.filter(
    ({ do: write, of }) => write === 'create' && encrypted.some(({ name }) => name === of),
  );
  if (creations.length === 0) return [];
  const { of, values = {} } = chance.pick(creations);
  const entity = encrypted.find(({ name }) => name === of);
  if (!entity) return [];
  const key = baseValues.pick(addComputed(entity, values), entity.keyFields);
  const others = creations.filter((one) => one.of === of);
  const put = { of, do: 'put', key, values: { ...chance.pick(others).values, ...key } } as const;
  const forMs = chance.between(500, MOST_HELD_MS);
  const slow = { scene: BESIDE_ROTATION, request: 'read entity', nth: 1, end: 'slow', forMs } as const;
  const client = chance.below(CLIENTS);
  return [
    { at: at - ROTATED_BEFORE_MS, event: { do: 'write', client, step: { of, do: 'create', values } } },
    { at: at - ROTATED_BEFORE_MS / 2, event: { do: 'rotate' } },
    { at, event: { do: 'upkeep', work: 'rewrap', of, traps: [slow] } },
    { at, event: { do: 'write', client, step: put, after: { scene: BESIDE_ROTATION, ms: chance.next() * forMs } } },
  ];
}

function inOrder(events: readonly { readonly at: number; readonly event: Event }[]): Planned[] {
  return events
    .map((one, index) => ({ nth: index + 1, ...one }))
    .sort((one, other) => one.at - other.at || one.nth - other.nth);
}
