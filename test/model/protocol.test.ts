import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

/**
 * Visits the first states of the model of docs/consistency.md, with one queue function. A rule that is broken shows in so few
 * states; `FUNCTIONS=1 SCRIPT=Q node test/model/protocol.mjs plain prompt` visits all of one script.
 */
const STATES = 6_000;
const MODEL = fileURLToPath(new URL('protocol.mjs', import.meta.url));

function visit(...words: string[]): string {
  const env = { ...process.env, LIMIT: String(STATES), FUNCTIONS: '1' };
  return spawnSync(process.execPath, [MODEL, ...words], { encoding: 'utf8', env }).stdout;
}

describe.each(['plain', 'unique'])('index entries that are %s', (kind) => {
  test.each(['lease', 'prompt'])('agree in the end as designed: %s', (mode) => {
    const found = visit(kind, mode);
    expect(found.match(/ ok /g)).toHaveLength(5);
    expect(found).not.toContain('VIOLATION');
  });
});

test.each([
  ['without the second read of the entity', 'plain lease norecheck'],
  ['without that read in a writer that settles its own intent', 'plain lease inlinenorecheck'],
  ['with an intent that is visible before the commit', 'plain lease early'],
  ['with a row of a unique index that is read after its entity', 'unique prompt rowlast'],
  ['without a reminder, as the host holds a message for ten minutes', 'plain prompt noreminder'],
  ['with a reminder that is deleted before the work is done', 'plain prompt releasefirst'],
  ['with a writer that goes on settling after it has sent the work', 'plain lease straggler'],
])('a protocol %s leaves something behind', (_, words) => {
  expect(visit(...words.split(' '))).toContain('VIOLATION');
});
