import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { IS_EVERY_POINT, sampleItems } from '../points.ts';

/**
 * Visits the first states of the model in docs/internals/consistency.md, with one queue function. A broken rule shows in these
 * few states; `FUNCTIONS=1 SCRIPT=Q node test/model/protocol.mjs plain prompt` visits all states of a script.
 */
const STATES = 8_000;
/** The states of the protocol as designed, which a usual run visits most often. */
const AGREEING_STATES = IS_EVERY_POINT ? STATES : 1_000;
/** A broken rule of time needs more states, which are smaller. */
const TIMED_STATES = 60_000;
const ALL_TIMED_STATES = 300_000;

function visit(words: readonly string[], more: Readonly<Record<string, string>> = {}, file = 'protocol.mjs'): string {
  const env = { ...process.env, LIMIT: String(STATES), FUNCTIONS: '1', ...more };
  const model = fileURLToPath(new URL(file, import.meta.url));
  return spawnSync(process.execPath, [model, ...words], { encoding: 'utf8', env }).stdout;
}

/** Visits states of time.mjs with one kind of fault. */
function visitTimed(words: string, { SCRIPT, fault }: { SCRIPT: string; fault?: string }, limit: number): string {
  const more = {
    SCRIPT,
    CRASHES: fault === 'crash' ? '1' : '0',
    LOST: fault === 'lost' ? '1' : '0',
    LIMIT: String(limit),
  };
  return visit(words.split(' '), more, 'time.mjs');
}

describe.each(['plain', 'unique'])('%s index entries', (kind) => {
  test.each(['lease', 'prompt'])('agree with the entities in the end: %s', { tags: ['slow'] }, (mode) => {
    const found = visit([kind, mode], { LIMIT: String(AGREEING_STATES) });
    expect(found.match(/nothing is lost/g)).toHaveLength(kind === 'plain' ? 14 : 13);
    expect(found).not.toContain('VIOLATION');
  });

  test('agree with the entities in the end if a reply is lost', { tags: ['slow'] }, () => {
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
])('a protocol %s leaves a difference', { tags: ['slow'] }, (_, words, SCRIPT) => {
  expect(visit(words.split(' '), { SCRIPT })).toContain('VIOLATION');
});

test.each([
  ['a rejected writer deletes a row that existed', 'unique lease releaseany', 'W'],
  ['a rejected writer removes its claim from a row that existed', 'unique lease releasemark', 'W'],
  ['a reconciler writes entries that its intent does not name', 'plain lease wanted', 'R'],
  ['a claim may land before its intent', 'unique lease claimfirst', 'Q'],
  ['a reconciler confirms its claim without a second read of the entity', 'unique lease norecheck', 'Q'],
  ['a writer sends the work that it leaves to the queue before its own entries agree', 'plain lease restfirst', 'A'],
])('a difference is left if %s', { tags: ['slow'] }, (_, words, SCRIPT) => {
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

test('a tombstone that a move has given another version is deleted, and stays without a second try', {
  tags: ['slow'],
}, () => {
  const more = { SCRIPT: 'U', CRASHES: '0', FUNCTIONS: '0', MOVES: '1' };
  expect(visit(['plain', 'lease'], more)).toMatch(/U: \d+ states, \d+ ms, nothing is lost/);
  expect(visit(['plain', 'lease', 'bury'], more)).toContain('VIOLATION: the tombstone of entity 0 left behind');
});

test.each(['X', 'Y', 'Z'])(
  'an insert or a delete without an ETag that is sent again takes effect twice: %s',
  { tags: ['slow'] },
  (SCRIPT) => {
    const more = { SCRIPT, CRASHES: '0', FUNCTIONS: '0', LOST: '1' };
    expect(visit(['plain', 'lease', 'resend'], more)).toContain('VIOLATION: a change took effect twice');
    expect(visit(['plain', 'lease'], { ...more, LIMIT: '20000' })).not.toMatch(/VIOLATION|not all/);
  },
);

describe('with time', () => {
  test.each([
    ['plain', 'Q'],
    ['plain', 'U'],
    ['unique', 'Q'],
    ['unique', 'T'],
    ['unique', 'W'],
  ])('%s index entries agree with the entities in the end: %s', { tags: ['slow'] }, (kind, SCRIPT) => {
    const limit = IS_EVERY_POINT ? ALL_TIMED_STATES / 3 : AGREEING_STATES;
    for (const fault of ['crash', 'lost'])
      expect(visitTimed(kind, { SCRIPT, fault }, limit)).toContain('nothing is lost');
  });

  const early = [
    ['a writer commits after its time limit', 'plain nocommitlimit', 'Q', ''],
    ['a writer with a claim commits after its time limit', 'unique nocommitlimit', 'Q', ''],
    ['a claim is sent after the time limit of its writer', 'unique noclaimlimit', 'Q', 'crash'],
    ['a claim is judged by a clock that is ahead', 'unique ownclock', 'W', 'crash'],
    ['the work of an unknown outcome is sent while it may still be executed', 'plain sendunknown', 'Q', 'lost'],
    ['the work of an unknown commit is sent while it may still be executed', 'unique sendunknown', 'W', 'lost'],
    ['an index entry is inserted again after a lost reply', 'plain resend', 'Q', 'lost'],
    ['a claim is inserted again after a lost reply', 'unique resend', 'Q', 'lost'],
    ['a first delivery does not count the time that has passed', 'plain notimepassed', 'Q', ''],
    ['a stalled process commits', 'unique stallcommit', 'T', ''],
  ] as const;
  const late = [
    ['a function repeats its work while a lost request may still be executed', 'plain soon', 'Q', 'lost'],
    ['a function writes after its hold', 'plain norenew', 'Q', 'crash'],
    ['a stalled process inserts an index entry', 'plain stallinsert', 'Q', ''],
    ['a right entry keeps the ETag that a stalled process has', 'plain stalletag norewrite', 'U', ''],
    ['a writer settles after its time limit', 'plain nosettlelimit', 'Q', 'lost'],
    ['a function counts its hold from the reply', 'plain countafter', 'Q', 'crash'],
  ] as const;
  const rules = IS_EVERY_POINT ? [...early, ...late] : sampleItems(early, 'broken rule of time', 4);
  test.each(rules)('a difference is left if %s', (_, words, SCRIPT, fault) => {
    const limit = IS_EVERY_POINT ? ALL_TIMED_STATES : TIMED_STATES;
    expect(visitTimed(words, { SCRIPT, fault }, limit)).toContain('VIOLATION');
  });

  test.runIf(IS_EVERY_POINT).each([
    ['a stalled process changes an entry under its ETag', 'plain stalletag', 'U'],
    ['a stalled process changes a row of a unique index under its ETag', 'unique stalletag', 'T'],
    ['a claim expires after its intent becomes visible', 'unique longclaim', 'U'],
  ])('no difference is left if %s', (_, words, SCRIPT) => {
    expect(visitTimed(words, { SCRIPT }, ALL_TIMED_STATES)).toMatch(/ states, \d+ ms, nothing is lost/);
  });
});
