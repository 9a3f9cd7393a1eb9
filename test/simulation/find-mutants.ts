import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import pMap from 'p-map';
import { run } from '../../local/cli/command.ts';
import { removeRule } from '../model/rules.ts';
import { LIMITED, STAGE } from './models.ts';
import { MUTANTS, type Mutant } from './mutants.ts';

/**
 * `npm run simulate-mutants`: leaves out each rule of the protocol and each mending, demands that the simulation finds it, and writes the
 * table of docs/internals/consistency.md. `npm run simulate-mutants -- TEXT` runs those whose name has the text, and writes their rows.
 * `npm run simulate-mutants -- --known` runs the seed that each row names, and looks for another one only if that seed finds nothing.
 */

const PAGE = 'docs/internals/consistency.md';
const [BEGIN, END] = ['<!-- mutants: written by `npm run simulate-mutants` -->\n', '<!-- /mutants -->'];
const WORLD = ['--import', './test/simulation/world/virtual-globals.ts', '--import', './test/simulation/leave-out.ts'];

interface Found {
  readonly mutant: Mutant;
  readonly seed: number | undefined;
  readonly seeds: number;
  readonly minutes: number;
  readonly what: string;
}

await run(
  new Command()
    .description('Leaves out each rule, and demands that the simulation finds it.')
    .argument('[text]', 'a part of the names of some')
    .option('--minutes <number>', 'how long to look for each', Number, 10)
    .option('--skip <number>', 'how many to leave out at the beginning', Number, 0)
    .option('--seed <number>', 'the first seed', Number, 1)
    .option('--known', 'begin with the seed that the row names, and leave out those that no world can show')
    .action(findAll),
);

interface Options {
  readonly minutes: number;
  readonly skip: number;
  readonly seed: number;
  readonly known?: true;
}

async function findAll(part: string | undefined, { minutes, seed, skip, known }: Options): Promise<void> {
  const selected = MUTANTS.filter(({ without }) => without.includes(part ?? ''))
    .slice(skip)
    .filter(({ without, unseen }) => !known || unseen === undefined || !rowOf(without));
  // Throws before any world begins if a text is not in the code any more.
  for (const mutant of selected) removeRule(mutant, readFileSync(mutant.file, 'utf8'));
  writeTable();
  const all = await pMap(
    selected,
    async (mutant) => {
      const former = known ? seedOf(mutant.without) : undefined;
      const again = former === undefined ? undefined : await find(mutant, { seed: former });
      const found = again?.seed === undefined ? await find(mutant, { seed, minutes }) : again;
      console.log(toLine(found));
      // The time of one seed is not the time of a search.
      if (found !== again) writeTable(found);
      return found;
    },
    { concurrency: availableParallelism() },
  );
  const missed = all.filter(({ mutant, seed: by }) => by === undefined && mutant.unseen === undefined);
  const found = all.filter(({ seed: by }) => by !== undefined);
  console.log(`${found.length} of ${all.length} are found.`);
  if (missed.length > 0) process.exitCode = 1;
}

/** Runs the seed, or as many from it on as fit into the minutes. */
async function find(mutant: Mutant, { seed, minutes }: { seed: number; minutes?: number }): Promise<Found> {
  const words = [
    '--jobs',
    '1',
    ...(minutes === undefined ? ['--seeds', String(seed)] : ['--seed', String(seed), '--minutes', String(minutes)]),
    '--until-failure',
    '--shrink-minutes',
    '0',
    ...(mutant.needsRules ? ['--model', LIMITED.model] : []),
    ...(mutant.writes === undefined ? [] : ['--writes', String(mutant.writes)]),
    ...(mutant.needsBackup ? ['--cuts', 'Infinity', '--model', STAGE, '--writes', '20'] : []),
  ];
  const child = spawn(process.execPath, [...WORLD, 'test/simulation/simulate.ts', ...words], {
    env: { ...process.env, MUTANT: mutant.without },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [said, failed] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  const last = [...said.matchAll(/^seed (\d+):.* in ([\d.]+) s, hash \w+, (\d+) problems?$/gm)].at(-1);
  const taken = [...said.matchAll(/ in ([\d.]+) s, hash/g)].reduce((sum, [, seconds]) => sum + Number(seconds), 0);
  const what = /^- (.*)$/m.exec(said)?.[1] ?? failed.split('\n')[0] ?? '';
  const isFound = last !== undefined && last[3] !== '0';
  // A promise that is rejected and that nobody handles ends a process, also a real one. So does code that cannot be loaded: that is no proof
  // of a known seed.
  const isEnded = !isFound && minutes !== undefined && !/^\d+ seeds, /m.test(said);
  return {
    mutant,
    seed: isFound ? Number(last[1]) : isEnded ? Number(last?.[1] ?? seed - 1) + 1 : undefined,
    seeds: [...said.matchAll(/^seed /gm)].length,
    minutes: taken / 60,
    what,
  };
}

function toLine({ mutant, seed, seeds, minutes, what }: Found): string {
  const took = `${minutes.toFixed(1)} minutes`;
  return seed === undefined
    ? `NOT FOUND: ${mutant.without}, in ${seeds} seeds and ${took}`
    : `found: ${mutant.without}, by seed ${seed} in ${took}: ${what.slice(0, 300)}`;
}

/** Writes the row of a mutant, and keeps those of the others that there still are. */
function writeTable(found?: Found): void {
  const [before = '', rest = ''] = readFileSync(PAGE, 'utf8').split(BEGIN);
  const rows = MUTANTS.map(({ without }) => (without === found?.mutant.without ? toRow(found) : rowOf(without)));
  const head = ['| Without the rule | Seed that finds it | Minutes of processor time |', '|---|---:|---:|'];
  const table = [...head, ...rows.filter((line) => line !== undefined)].join('\n');
  writeFileSync(PAGE, `${before}${BEGIN}\n${table}\n\n${END}${rest.split(END)[1] ?? ''}`);
}

function toRow({ mutant, seed, seeds, minutes }: Found): string {
  const none = mutant.unseen === undefined ? `none of ${seeds}` : `none of ${seeds}: ${mutant.unseen}`;
  return `| ${mutant.without} | ${seed ?? none} | ${minutes.toFixed(1)} |`;
}

function rowOf(without: string): string | undefined {
  const table = readFileSync(PAGE, 'utf8').split(BEGIN)[1]?.split(END)[0] ?? '';
  return table.split('\n').find((line) => line.startsWith(`| ${without} |`));
}

function seedOf(without: string): number | undefined {
  const [, seed] = /\| (\d+) \| [\d.]+ \|$/.exec(rowOf(without) ?? '') ?? [];
  return seed === undefined ? undefined : Number(seed);
}
