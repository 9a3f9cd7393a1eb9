import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { run } from '../../local/cli/command.ts';
import { storageKeys } from '../kit/storage.ts';
import { formatEvent } from './format-event.ts';
import { LIMITED, MODELS } from './models.ts';
import { type Plan, planOf, WRITES } from './plan.ts';
import { shrink } from './shrink.ts';
import { type Report, simulateSeed } from './simulate-seed.ts';
import { RULED_SITUATIONS, SITUATIONS, WITHIN_SEEDS } from './situations.ts';
import { processorTime, realTime } from './world/virtual-world.ts';

/**
 * `npm run simulate`: the whole product in one process, on virtual time. A seed determines what happens in its world, to the byte. A seed
 * that fails is repeated with ever fewer events.
 */

interface Options {
  readonly seed?: number;
  readonly seeds?: readonly number[];
  readonly minutes?: number;
  readonly cuts?: number;
  readonly without?: readonly number[];
  readonly replay?: { readonly seed: number; readonly events: readonly number[] };
  readonly shrinkMinutes: number;
  readonly jobs: number;
  readonly model?: string;
  readonly writes: number;
  readonly untilFailure?: true;
  readonly log?: string;
}

const MOST_SHOWN = 5;
/** More moments of fewer worlds are restored if they are counted. */
const CUTS_OF_WORLD = 40;
const MOST_LENGTH = 4_000;

const program = new Command()
  .description('Simulates the app, its storage, its network, its operators and its callers, by seed.')
  .option('--seed <number>', 'the seed of a world', toNumber)
  .option('--seeds <range>', 'the seeds of several worlds, such as 1-50 or 1-50,7', toSeeds)
  .option('--minutes <number>', 'simulate further seeds for so much processor time of each process', toNumber)
  .option('--cuts <number>', 'simulate further seeds with a backup, until so many moments are restored', toNumber)
  .option('--without <events>', 'leave out these events, such as 3,17', toNumbers)
  .option('--replay <seed:events>', 'let only these events happen, such as 7:3,17', toReplay)
  .option('--shrink-minutes <number>', 'how long to look for fewer events after a failure', toNumber, 2)
  .option('--until-failure', 'end after the first seed that fails')
  .addOption(new Option('--model <name>', 'worlds of this model only').choices(Object.keys(MODELS)))
  .option('--writes <number>', 'how much clients write in a world', toNumber, WRITES)
  .option('--jobs <number>', 'how many processes simulate', toNumber, availableParallelism())
  .option('--log <file>', 'a file for all requests and replies')
  .action((options: Options) => simulate(options));
await run(program);
process.exit();

async function simulate(options: Options): Promise<void> {
  const { seed, seeds, minutes, replay } = options;
  const first = seed ?? replay?.seed ?? seeds?.[0] ?? realSeed();
  const all = seeds ?? (minutes === undefined && options.cuts === undefined ? [first] : undefined);
  if (options.jobs > 1 && (all === undefined || all.length > 1)) return divide(options, all, first);
  const folder = mkdtempSync(join(tmpdir(), 'rowkey-simulation-'));
  const keyFile = join(folder, 'keys.json');
  await storageKeys.rotateLocalKey(keyFile);
  const until = minutes === undefined ? Number.POSITIVE_INFINITY : processorTime() + minutes * 60_000;
  const counted = { seeds: 0, requests: 0, events: 0, failed: 0, backedUp: 0, cuts: 0, withoutLine: 0 };
  const seen = new Map(SITUATIONS.map((situation) => [situation, 0]));
  const since = realTime();
  for (let index = 0; processorTime() < until; index += 1) {
    const current = all ? all[index] : first + index;
    if (current === undefined || counted.cuts >= (options.cuts ?? Number.POSITIVE_INFINITY)) break;
    const cuts = options.cuts === undefined ? undefined : CUTS_OF_WORLD;
    const plan = planOf(current, { name: options.model, writes: options.writes, cuts });
    if (cuts !== undefined && !plan.backup) continue;
    const without = leftOut(plan, options);
    const report = await simulateSeed(plan, { keyFile, without, logFile: options.log });
    counted.seeds += 1;
    for (const [situation, times] of report.situations) seen.set(situation, (seen.get(situation) ?? 0) + times);
    counted.requests += report.storageRequests;
    if (report.cuts.cuts > 0 && report.problems.length === 0) counted.backedUp += 1;
    if (report.problems.length === 0) counted.cuts += report.cuts.cuts;
    counted.withoutLine += report.cuts.withoutLine;
    counted.events += plan.events.length - without.size;
    console.log(formatReport(report, plan));
    if (report.problems.length === 0) continue;
    counted.failed += 1;
    await showFailure(plan, { keyFile, without, report, options });
    if (options.untilFailure) break;
  }
  rmSync(folder, { recursive: true });
  const took = (realTime() - since) / 60_000;
  console.log(
    `${counted.seeds} seeds, ${counted.failed} of them failed: ${counted.events} events and ${counted.requests} storage requests in ${took.toFixed(1)} minutes.`,
  );
  if (counted.cuts > 0)
    console.log(
      `${counted.cuts} cuts of ${counted.backedUp} worlds equal the oracle, ${counted.withoutLine} changes without a line.`,
    );
  console.log(`Situations: ${[...seen].map(([situation, times]) => `${situation} ${times}`).join(', ')}.`);
  const wanted = { any: SITUATIONS, [LIMITED.model]: RULED_SITUATIONS }[options.model ?? 'any'] ?? [];
  const missed = wanted.filter((situation) => !seen.get(situation));
  const isMissed = counted.seeds >= WITHIN_SEEDS && missed.length > 0;
  if (isMissed) console.log(`${counted.seeds} worlds do not reach: ${missed.join(', ')}.`);
  if (counted.failed > 0 || isMissed) process.exitCode = 1;
}

/** A seed that nobody chose. */
function realSeed(): number {
  return (process.pid * 7_919 + Number(process.hrtime.bigint() % 1_000n)) % 1_000_000;
}

/** Lets several processes simulate a part of the seeds each. */
async function divide(
  { jobs, minutes, cuts, shrinkMinutes, model, writes, untilFailure }: Options,
  all: readonly number[] | undefined,
  first: number,
): Promise<void> {
  const parts = Array.from({ length: all ? Math.min(jobs, all.length) : jobs }, (_, job) => {
    const own = all?.filter((_seed, index) => index % jobs === job);
    return own ? ['--seeds', own.join(',')] : ['--seed', String(first + job * 1_000_000)];
  });
  const script = process.argv[1] ?? '';
  const ended = parts.map(async (part) => {
    const more = [
      ...(minutes === undefined ? [] : ['--minutes', String(minutes)]),
      ...(cuts === undefined ? [] : ['--cuts', String(Math.ceil(cuts / parts.length))]),
      ...(model === undefined ? [] : ['--model', model]),
      ...(untilFailure ? ['--until-failure'] : []),
    ];
    const size = ['--jobs', '1', '--shrink-minutes', String(shrinkMinutes), '--writes', String(writes)];
    const words = [...part, ...more, ...size];
    const child = spawn(process.execPath, [...process.execArgv, script, ...words], { stdio: 'inherit' });
    const [code] = await once(child, 'exit');
    return code === 0;
  });
  if ((await Promise.all(ended)).includes(false)) process.exitCode = 1;
}

function leftOut(plan: Plan, { without = [], replay }: Options): ReadonlySet<number> {
  if (!replay) return new Set(without);
  return new Set(plan.events.map(({ nth }) => nth).filter((nth) => !replay.events.includes(nth)));
}

function formatReport(report: Report, { processes, accounts, events }: Plan): string {
  const { seed, modelName, problems, hash, storageRequests, appRequests, virtualMs, processorMs } = report;
  const size = `${processes} ${processes === 1 ? 'process' : 'processes'}, ${accounts} ${accounts === 1 ? 'account' : 'accounts'}`;
  const did = `${events.length} events, ${appRequests} requests, ${storageRequests} storage requests`;
  const took = `${(virtualMs / 60_000).toFixed(1)} minutes in ${(processorMs / 1_000).toFixed(1)} s`;
  return `seed ${seed}: ${modelName}, ${size}, ${did}, ${took}, hash ${hash.slice(0, 16)}, ${problems.length} problems`;
}

interface Failure {
  readonly keyFile: string;
  readonly without: ReadonlySet<number>;
  readonly report: Report;
  readonly options: Options;
}

async function showFailure(plan: Plan, { keyFile, without, report, options }: Failure): Promise<void> {
  const show = ({ problems }: Report) => {
    for (const problem of problems.slice(0, MOST_SHOWN)) console.log(`- ${problem.slice(0, MOST_LENGTH)}`);
    if (problems.length > MOST_SHOWN) console.log(`- and ${problems.length - MOST_SHOWN} more`);
  };
  show(report);
  const until = realTime() + options.shrinkMinutes * 60_000;
  const all = plan.events.map(({ nth }) => nth);
  let smallest = report;
  const left = await shrink(
    all.filter((nth) => !without.has(nth)),
    async (some) => {
      if (realTime() > until) return false;
      const repeated = await simulateSeed(plan, {
        keyFile,
        without: new Set(all.filter((nth) => !some.includes(nth))),
      });
      if (repeated.problems.length > 0) smallest = repeated;
      return repeated.problems.length > 0;
    },
  );
  console.log(`These ${left.length} of ${plan.events.length} events of seed ${plan.seed} suffice:`);
  for (const planned of plan.events.filter(({ nth }) => left.includes(nth))) console.log(formatEvent(planned));
  show(smallest);
  const of =
    (options.model === undefined ? '' : `--model ${options.model} `) +
    (options.writes === WRITES ? '' : `--writes ${options.writes} `);
  console.log(`Repeat: npm run simulate -- ${of}--replay ${plan.seed}:${left.join(',')}`);
}

function toNumber(text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && number >= 0) return number;
  throw new InvalidArgumentError('A number is needed.');
}

function toNumbers(text: string): number[] {
  return text.split(',').map(toNumber);
}

function toSeeds(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(toNumber);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

function toReplay(text: string): { seed: number; events: number[] } {
  const [seed = '', events = ''] = text.split(':');
  return { seed: toNumber(seed), events: events === '' ? [] : toNumbers(events) };
}
