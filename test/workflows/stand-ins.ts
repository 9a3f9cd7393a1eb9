import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Runs the commands of a page without Azure and GitHub: stand-ins for the programs record their calls. */

const STAND_IN = `#!${process.execPath}
const { basename } = require('node:path');
const { CALLS, OUTPUTS } = process.env;
const call = [basename(process.argv[1]), ...process.argv.slice(2)];
require('node:fs').appendFileSync(CALLS, JSON.stringify(call) + '\\n');
const [, output] = JSON.parse(OUTPUTS).find(([part]) => call.join(' ').includes(part)) ?? [];
if (output !== undefined) console.log(output);
`;

type Call = readonly string[];

interface Stage {
  /** The programs to replace by stand-ins. */
  readonly programs: readonly string[];
  /** Output of a call by words that the call contains. The first match counts. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Returns the shell commands of a page, by block. */
export function commandsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^( *)```sh\n(.*?)^\1```/gms)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

/** Returns every call of a stand-in. Throws with the shell's output if a command fails. */
export function rehearse(commands: string, { programs, outputs, cwd }: Stage): Call[] {
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
        OUTPUTS: JSON.stringify(Object.entries(outputs)),
      },
    });
    if (status !== 0) throw new Error(`The commands exited with ${status}: ${stderr}`);
    return readFileSync(calls, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the calls that start with these words. */
export function callsOf(calls: readonly Call[], words: string): Call[] {
  return calls.filter((call) => `${call.join(' ')} `.startsWith(`${words} `));
}

/** Returns the value of an option such as `--body`. */
export function optionOf(call: Call, option: string): string {
  return call[call.indexOf(option) + 1] ?? '';
}
