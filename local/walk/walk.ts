import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { keptFor } from '../../lib/base/once.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { Model } from '../../lib/define/define-model.ts';
import { aimSteps } from './aim-steps.ts';
import { compareAll } from './compare-answers.ts';
import { type Step, stepsOf, takeStep } from './steps.ts';
import { prepareWorlds, type WalkStorage, type WalkWorld } from './walk-world.ts';

/**
 * A walk writes random entities of a model by its operations, in rounds that start on empty storage, and compares every answer with
 * the entities after each round. The seed determines the steps. Rounds of one writer are repeatable; in the others, several writers
 * and the queue function run concurrently.
 */

interface WalkOptions extends WalkStorage {
  readonly seed: number;
  /** How many steps to take, in all rounds. */
  readonly writes: number;
  /** Milliseconds: no round starts after this time. */
  readonly until?: number;
  /** Called after each round. */
  report?(progress: WalkReport): void;
}

interface WalkReport {
  writes: number;
  rounds: number;
  /** How often each operation ended with `ok` or with an error code. */
  readonly outcomes: Map<string, number>;
  failure?: WalkFailure;
}

interface WalkFailure {
  readonly round: Round;
  readonly differences: readonly string[];
}

export interface Round {
  readonly seed: number;
  readonly writers: number;
  readonly steps: readonly Step[];
}

const STEPS_A_ROUND = 100;
/** A short walk has several rounds, too: of several groups and numbers of writers. */
const LEAST_ROUNDS = 3;
const WRITERS = [1, 4];
/** A seed's rounds have seeds of their own. */
const ROUNDS_A_SEED = 100_000;
const SHRINK_WITHIN_MS = 120_000;
const IDLE_MS = 5;

export async function walk(model: Model, options: WalkOptions): Promise<WalkReport> {
  const open = await prepareWorlds(model, options);
  const report: WalkReport = { writes: 0, rounds: 0, outcomes: new Map() };
  const { until = Number.POSITIVE_INFINITY } = options;
  for (const round of roundsOf(model, options)) {
    if (Date.now() >= until) break;
    const differences = await run(await open(), round, report.outcomes);
    report.rounds += 1;
    report.writes += round.steps.length;
    if (differences.length > 0) {
      report.failure = await shrink({ round, differences }, async (smaller) => run(await open(), smaller));
      return report;
    }
    options.report?.(report);
  }
  return report;
}

/** The rounds of a walk, which end only if `writes` is finite. */
export function* roundsOf(
  model: Model,
  { seed: first, writes }: Pick<WalkOptions, 'seed' | 'writes'>,
): Generator<Round> {
  const ways = waysOf(model);
  const turns = sampleOne(fc.shuffledSubarray(ways, { minLength: ways.length }), first);
  const weighted = fc.oneof(...ways.map((way) => ({ weight: weightOf(way.group), arbitrary: fc.constant(way) })));
  const most = Math.min(STEPS_A_ROUND, Math.ceil(writes / LEAST_ROUNDS));
  for (let left = writes, round = 0; left > 0; left -= most, round += 1) {
    const seed = first * ROUNDS_A_SEED + round;
    // Every other round is of the next way, so that groups of little weight are walked, too.
    const next = round % 2 === 0 ? turns[(round / 2) % turns.length] : undefined;
    const { group, steps, writers } = next ?? sampleOne(weighted, seed);
    const sampled = fc.sample(fc.tuple(steps, fc.nat()), { seed, numRuns: Math.min(most, left) });
    yield { seed, writers, steps: aimSteps(group, sampled) };
  }
}

function sampleOne<Value>(arbitrary: fc.Arbitrary<Value>, seed: number): Value {
  const [value] = fc.sample(arbitrary, { seed, numRuns: 1 });
  return value as Value;
}

/** How a round can be: the group of its entities, and the number of its writers. */
const waysOf = keptFor((model: Model) =>
  groupsOf(model.list).flatMap((group) => {
    const steps = stepsOf(group);
    return WRITERS.map((writers) => ({ group, steps, writers }));
  }),
);

/** Entities that refer to each other, so that the steps of a round meet. */
function groupsOf(entities: readonly Entity[]): Entity[][] {
  const groups: Entity[][] = [];
  for (const entity of entities) {
    const related = relatedTo(entity);
    const joined = groups.filter((group) =>
      group.some((one) => related.includes(one) || relatedTo(one).includes(entity)),
    );
    const group = [...joined.flat(), entity];
    groups.splice(0, groups.length, ...groups.filter((one) => !joined.includes(one)), group);
  }
  return groups;
}

function relatedTo({ references, denormalized, counts, childOf }: Entity): Entity[] {
  const referred = Object.values(references).map(({ to }) => to);
  return [
    ...referred,
    ...Object.values(denormalized).map(({ source }) => source),
    ...Object.values(counts),
    ...(childOf ? [childOf] : []),
  ];
}

/** The more features, the more can go wrong. */
const weightOf = (group: readonly Entity[]) => group.reduce((sum, { features }) => sum + features.length, 1) ** 2;

/** Takes the steps of a round and returns what does not agree afterwards. */
async function run(
  world: WalkWorld,
  { writers, steps }: Round,
  outcomes = new Map<string, number>(),
): Promise<string[]> {
  const left = [...steps];
  const taken: (Step & { readonly outcome: string })[] = [];
  const write = async () => {
    for (let step = left.shift(); step; step = left.shift()) {
      const outcome = await takeStep(world, step);
      taken.push({ ...step, outcome });
      const counted = `${step.of} ${step.do}: ${outcome}`;
      outcomes.set(counted, (outcomes.get(counted) ?? 0) + 1);
    }
  };
  let isWriting = true;
  const handleMessages = async () => {
    while (isWriting && writers > 1) if ((await world.worker.handleVisible()) === 0) await sleep(IDLE_MS);
  };
  try {
    const handling = handleMessages();
    await Promise.all(Array.from({ length: writers }, write)).finally(() => {
      isWriting = false;
      return handling;
    });
    await world.worker.settle();
    const written = groupsOf(world.model.list).filter((group) =>
      steps.some(({ of }) => group.some(({ name }) => name === of)),
    );
    return await compareAll(world, written.flat(), { steps: taken, isInOrder: writers === 1 });
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}

type Run = (round: Round) => Promise<readonly string[]>;

/** Removes steps, in ever smaller parts, then actions of batches and optional values, while the round fails. */
export async function shrink(failure: WalkFailure, run: Run): Promise<WalkFailure> {
  const until = Date.now() + SHRINK_WITHIN_MS;
  let smallest = failure;
  const fails = async (round: Round) => {
    if (Date.now() > until) return false;
    const differences = await run(round);
    if (differences.length > 0) smallest = { round, differences };
    return differences.length > 0;
  };
  // A failure of one writer is found again surely, and without the others is easier to read.
  await fails({ ...failure.round, writers: 1 });
  for (let size = Math.ceil(smallest.round.steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < smallest.round.steps.length; ) {
      const { round } = smallest;
      const steps = round.steps.toSpliced(at, size);
      if (steps.length === 0 || !(await fails({ ...round, steps }))) at += size;
    }
  const failsWith = ({ steps, ...round }: Round, at: number, part: Partial<Step>) =>
    fails({ ...round, steps: steps.map((step, index) => (index === at ? { ...step, ...part } : step)) });
  for (let at = 0; at < smallest.round.steps.length; at += 1) {
    const { actions = [], values = {} } = smallest.round.steps[at] ?? {};
    for (let index = actions.length - 1; index >= 0; index -= 1) {
      const left = smallest.round.steps[at]?.actions?.toSpliced(index, 1) ?? [];
      if (left.length > 0) await failsWith(smallest.round, at, { actions: left });
    }
    for (const field of Object.keys(values)) {
      const { [field]: _, ...others } = smallest.round.steps[at]?.values ?? {};
      await failsWith(smallest.round, at, { values: others });
    }
  }
  return smallest;
}

/** The failure as lines that a person can read and repeat. */
export function formatFailure({ round, differences }: WalkFailure): string {
  const { seed, writers, steps } = round;
  return [
    `After ${steps.length} steps by ${writers} ${writers === 1 ? 'writer' : 'writers'} (round ${seed}):`,
    ...steps.map((step, index) => `${index + 1}. ${formatStep(step)}`),
    'the answers do not agree:',
    ...differences.slice(0, 10).map((text) => `- ${text}`),
    ...(differences.length > 10 ? [`- and ${differences.length - 10} more`] : []),
  ].join('\n');
}

function formatStep({ of, do: write, ...rest }: Step): string {
  if (write === 'settle') return 'handle the messages';
  return [of, write, ...Object.values(rest).map((part) => JSON.stringify(part))].join(' ');
}
