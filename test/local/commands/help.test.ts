import { expect, test } from 'vitest';
import { runCommand } from '../../start-process.ts';

test.each(['infra-model', 'checklist', 'problems', 'console-size', 'shape'])(
  '%s explains itself with --help, and changes nothing',
  async (name) => {
    const { code, said } = await runCommand(name, ['--help'], { deployed: true });
    expect([code, said]).toEqual([0, expect.stringMatching(/^Usage: [^\n]+\n\nWrites /)]);
    expect(said).not.toMatch(/updated|up to date/);
  },
);
