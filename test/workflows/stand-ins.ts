import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Runs the commands of a page where there is no Azure and no GitHub: stand-ins of the programs write down how they are called. */

const STAND_IN = `#!${process.execPath}
const { basename } = require('node:path');
const { CALLS, ANSWERS } = process.env;
const call = [basename(process.argv[1]), ...process.argv.slice(2)];
require('node:fs').appendFileSync(CALLS, JSON.stringify(call) + '\\n');
const [, answer] = JSON.parse(ANSWERS).find(([part]) => call.join(' ').includes(part)) ?? [];
if (answer !== undefined) console.log(answer);
`;

export type Call = readonly string[];

export interface Stage {
  /** The programs that are stood in for. */
  readonly programs: readonly string[];
  /** What a call that has these words in it answers; the first that fits. */
  readonly answers: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** The shell commands of a page, those of all its blocks one after another. */
export function commandsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^( *)```sh\n(.*?)^\1```/gms)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

/** Every call of a stood-in program. Throws what the shell says where a command fails. */
export function rehearse(commands: string, { programs, answers, cwd }: Stage): Call[] {
  const folder = mkdtempSync(join(tmpdir(), 'rowkey-stand-ins-'));
  try {
    for (const program of programs) {
      writeFileSync(join(folder, program), STAND_IN);
      chmodSync(join(folder, program), 0o755);
    }
    const calls = join(folder, 'calls');
    appendFileSync(calls, '');
    const { status, stderr } = spawnSync('bash', ['-eu', '-o', 'pipefail', '-c', commands], {
      cwd,
      encoding: 'utf8',
      env: {
        PATH: `${folder}${delimiter}${process.env.PATH}`,
        CALLS: calls,
        ANSWERS: JSON.stringify(Object.entries(answers)),
      },
    });
    if (status !== 0) throw new Error(`The shell ended with ${status}: ${stderr}`);
    return readFileSync(calls, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The calls that begin with these words. */
export function callsOf(calls: readonly Call[], words: string): Call[] {
  return calls.filter((call) => `${call.join(' ')} `.startsWith(`${words} `));
}

/** What a call gives an option such as `--body`. */
export function optionOf(call: Call, option: string): string {
  return call[call.indexOf(option) + 1] ?? '';
}
