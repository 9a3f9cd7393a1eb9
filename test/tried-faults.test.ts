import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, inject, test } from 'vitest';
import { sampleItems } from './points.ts';

const PAGE = 'Before\n<!-- tried: written by `npm run faults` -->\nold\n<!-- /tried -->After\n';

/**
 * Runs test/fixture/tried.ts with vitest and a failing part; returns its output and the page that the run may write.
 */
async function runBroken(broken: 'nothing' | 'trials' | 'other' | 'hook') {
  const page = join(inject('folder'), `tried-${broken}.md`);
  writeFileSync(page, PAGE);
  const env = { ...process.env, BREAK: broken, WRITE_FAULTS: page };
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/fixture/tried.config.ts'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { output, exitCode: child.exitCode, page: readFileSync(page, 'utf8') };
}

describe('the table of trials', () => {
  test('counts trials and is written after a green run', { tags: ['slow'] }, async () => {
    const { output, exitCode, page } = await runBroken('nothing');
    expect(exitCode).toBe(0);
    expect(output).toContain('| each | 3 | 0 |\n| many | 1,000 | 0 |\n');
    expect(page).toMatch(/^Before\n<!-- tried[\s\S]*\| each \| 3 \| 0 \|\n[\s\S]*<!-- \/tried -->After\n$/);
  });

  test('counts violations', { tags: ['slow'] }, async () => {
    expect((await runBroken('trials')).output).toContain('| each | 3 | 2 |\n| many | 1,000 | 1 |\n');
  });

  test.each(sampleItems(['trials', 'other', 'hook'] as const, 'red run'))(
    'is not written if the run is red (%s)',
    { tags: ['slow'] },
    async (broken) => {
      const { exitCode, page } = await runBroken(broken);
      expect(exitCode).toBe(1);
      expect(page).toBe(PAGE);
    },
  );
});
