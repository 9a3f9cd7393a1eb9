import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runScript } from '../../start-process.ts';

/** The file that a script of package.json runs. */
const scripts: Record<string, string> = JSON.parse(readFileSync('package.json', 'utf8')).scripts;
const fileOf = (name: string) => scripts[name]?.match(/\S+\.ts$/)?.[0] ?? name;

test.each(['infra', 'checklist', 'problems', 'console-size', 'shape'])(
  '%s explains itself with --help, and changes nothing',
  async (name) => {
    const { code, said } = await runScript(fileOf(name), ['--help'], { deployed: true });
    expect([code, said]).toEqual([0, expect.stringMatching(/^Usage: [^\n]+\n\nWrites /)]);
    expect(said).not.toMatch(/updated|up to date/);
  },
);
