import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { IS_EVERY_POINT } from '../points.ts';

/**
 * Visits the first states of the model in docs/consistency.md, with one queue function. A broken rule shows in these
 * few states; `FUNCTIONS=1 SCRIPT=Q node test/model/protocol.mjs plain prompt` visits all states of a script.
 */
const STATES = 8_000;
/** The states of the protocol as designed, which a usual run visits most often. */
const AGREEING_STATES = IS_EVERY_POINT ? STATES : 2_500;
const MODEL = fileURLToPath(new URL('protocol.mjs', import.meta.url));

function visit(words: readonly string[], more: Readonly<Record<string, string>> = {}): string {
  const env = { ...process.env, LIMIT: String(STATES), FUNCTIONS: '1', ...more };
  return spawnSync(process.execPath, [MODEL, ...words], { encoding: 'utf8', env }).stdout;
}

describe.each(['plain', 'unique'])('%s index entries', (kind) => {
  test.each(['lease', 'prompt'])('agree with the entities in the end: %s', (mode) => {
    const found = visit([kind, mode], { LIMIT: String(AGREEING_STATES) });
    expect(found.match(/ ok /g)).toHaveLength(kind === 'plain' ? 14 : 13);
    expect(found).not.toContain('VIOLATION');
  });

  test('agree with the entities in the end if a reply is lost', () => {
    expect(visit([kind, 'lease'], { LOST: '1', LIMIT: String(AGREEING_STATES) })).not.toContain('VIOLATION');
  });
});

test.each([
  ['without the second read of the entity', 'plain lease norecheck', 'W'],
  ['without the second read of the entity in a writer that settles its own intent', 'plain lease inlinenorecheck', 'U'],
  ['with an intent that is visible before the commit', 'plain lease early', 'P'],
  ['with a row of a unique index that is read after its entity', 'unique prompt rowlast', 'W'],
  ['without a reminder, because the host holds a message for ten minutes', 'plain prompt noreminder', 'X'],
  ['with a reminder that is deleted before the work ends', 'plain prompt releasefirst', 'X'],
  ['with a change of another field that is not under the ETag', 'plain lease othernoetag', 'V'],
  ['with a writer that continues to settle after it sent the work', 'plain lease straggler', 'U'],
])('a protocol %s leaves a difference', (_, words, SCRIPT) => {
  expect(visit(words.split(' '), { SCRIPT })).toContain('VIOLATION');
});

test.each([
  ['a rejected writer deletes a row that existed', 'unique lease releaseany', 'W'],
  ['a rejected writer removes its claim from a row that existed', 'unique lease releasemark', 'W'],
  ['a reconciler writes entries that its intent does not name', 'plain lease wanted', 'R'],
  ['a claim may land before its intent', 'unique lease claimfirst', 'Q'],
  ['a reconciler confirms its claim without a second read of the entity', 'unique lease norecheck', 'Q'],
  ['a writer sends the work that it leaves to the queue before its own entries agree', 'plain lease restfirst', 'A'],
])('a difference is left if %s', (_, words, SCRIPT) => {
  const isOfWriters = words.endsWith('claimfirst') || words.endsWith('wanted');
  const isOfCrash = words.endsWith('claimfirst') || words.endsWith('restfirst');
  const more = { CRASHES: isOfCrash ? '1' : '0', FUNCTIONS: isOfWriters ? '0' : '1' };
  expect(visit(words.split(' '), { SCRIPT, ...more })).toContain('VIOLATION');
});

test.runIf(IS_EVERY_POINT).each([
  ['a function holds a reminder as it is after its time', 'late'],
  ['work is sent twice', 'resendwork'],
])('a difference is left if %s', (_, broken) => {
  const more = { SCRIPT: 'N', FUNCTIONS: '2', LIMIT: '1000000' };
  expect(visit(['plain', 'lease', broken], more)).toContain('VIOLATION');
});

test.each(['X', 'Y', 'Z'])(
  'an insert or a delete without an ETag that is sent again takes effect twice: %s',
  (SCRIPT) => {
    const more = { SCRIPT, CRASHES: '0', FUNCTIONS: '0', LOST: '1' };
    expect(visit(['plain', 'lease', 'resend'], more)).toContain('VIOLATION a change took effect twice');
    expect(visit(['plain', 'lease'], { ...more, LIMIT: '20000' })).not.toMatch(/VIOLATION|bounded/);
  },
);
