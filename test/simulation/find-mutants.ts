import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { run } from '../../local/cli/command.ts';
import { removeRule } from '../model/rules.ts';
import { LIMITED, STAGE } from './models.ts';
import { MUTANTS, type Mutant } from './mutants.ts';

/**
 * `npm run simulate-mutants`: leaves out each rule of the protocol and each mending, demands that the simulation finds it, and writes the
 * table of docs/internals/consistency.md. `npm run simulate-mutants -- TEXT` runs those whose name has the text, and writes their rows.
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
    .action(findAll),
);

async function findAll(
  part: string | undefined,
  { minutes, seed, skip }: { minutes: number; seed: number; skip: number },
): Promise<void> {
  const selected = MUTANTS.filter(({ without }) => without.includes(part ?? '')).slice(skip);
  // Throws before any world begins if a text is not in the code any more.
  for (const mutant of selected) removeRule(mutant, readFileSync(mutant.file, 'utf8'));
  const all: Found[] = [];
  for (const mutant of selected) {
    const found = await find(mutant, { minutes, seed });
    all.push(found);
    console.log(toLine(found));
    writeRow(found);
  }
  const missed = all.filter(({ mutant, seed: by }) => by === undefined && mutant.unseen === undefined);
  const found = all.filter(({ seed: by }) => by !== undefined);
  console.log(`${found.length} of ${all.length} are found.`);
  if (missed.length > 0) process.exitCode = 1;
}

async function find(mutant: Mutant, { minutes, seed }: { minutes: number; seed: number }): Promise<Found> {
  const words = [
    '--jobs',
    '1',
    '--seed',
    String(seed),
    '--minutes',
    String(minutes),
    '--until-failure',
    '--shrink-minutes',
    '0',
    ...(mutant.needsRules ? ['--model', LIMITED.model] : []),
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
  // A promise that is rejected and that nobody handles ends a process, also a real one.
  const isEnded = !isFound && !/^\d+ seeds, /m.test(said);
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
function writeRow({ mutant, seed, seeds, minutes }: Found): void {
  const [before = '', rest = ''] = readFileSync(PAGE, 'utf8').split(BEGIN);
  const [former = '', after = ''] = rest.split(END);
  const none = mutant.unseen === undefined ? `none of ${seeds}` : `none of ${seeds}: ${mutant.unseen}`;
  const row = `| ${mutant.without} | ${seed ?? none} | ${minutes.toFixed(1)} |`;
  const rows = MUTANTS.map(({ without }) =>
    without === mutant.without ? row : former.split('\n').find((line) => line.startsWith(`| ${without} |`)),
  );
  const head = ['| Without the rule | Seed that finds it | Minutes of processor time |', '|---|---:|---:|'];
  const table = [...head, ...rows.filter((line) => line !== undefined)].join('\n');
  writeFileSync(PAGE, `${before}${BEGIN}\n${table}\n\n${END}${after}`);
}
