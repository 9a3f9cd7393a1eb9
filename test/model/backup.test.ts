// @module-tag long

import { expect, test } from 'vitest';
import { explore, RULES, type Rule, SCRIPTS, type ScriptName } from './backup.ts';

const LARGE: readonly ScriptName[] = ['intentDeletedScan', 'movedRecreated', 'movedTwiceScan'];
const scripts = Object.keys(SCRIPTS) as ScriptName[];
const holds = (name: ScriptName) => expect(explore(name)).toEqual({ states: expect.any(Number), isComplete: true });

test.each(scripts.filter((name) => !LARGE.includes(name)))(
  'a cut has each change whose line is stored, and nothing that was not: %s',
  holds,
);

test.each(LARGE)('a cut has each change whose line is stored, and nothing that was not: %s', { tags: ['slow'] }, holds);

/** The script that shows what goes wrong, and what does. */
const FOUND: Readonly<Record<Rule, readonly [script: ScriptName, violation: RegExp]>> = {
  deletedAtResponse: ['recreate', /a is absent, not 3, 3/],
  blindDelete: ['recreate', /a is 1, 1, not absent/],
  unconditionalDelete: ['recreate', /a is 3, 3, not absent/],
  oneEtag: ['bothDeletedOne', /b is 3, 3, not absent/],
  cutAtVersion: ['recreate', /a delete at 20 is in the cuts from 1 on/],
  byBegin: ['both', /at 20, a is 2, 2, not absent/],
  fromEnd: ['both', /a is absent, not 2, 2 or 3, 3/],
  fromStart: ['recreateScan', /a is 3, 3, not absent/],
  noMargin: ['movedScan', /a is 1, 1, not 2, 2/],
  noLateMargin: ['both', /at 20, a is 2, 2, not absent/],
  earlyManifest: ['recreateScan', /a is absent, not 1, 1/],
  lateAppend: ['merges', /a is 1, 1, not 1, 2/],
  lateLine: ['intent', /the queue has the intent of 2, and a is still missing/],
  unreadOwn: ['mixed', /a is 1, 1, not absent/],
  byRow: ['both', /a is 2, 2, not absent/],
  staleCopies: ['moved', /a is 2, 2, not absent/],
  firstOwner: ['movedScan', /a is absent, not 1, 1/],
  inOrder: ['mergedScan', /a is 1, 2, not 1, 3/],
  oldMerges: ['merges', /a is 4, 2, not 4, 4/],
  noSeen: ['intent', /a is 1, 1, not 2, 2/],
  seenByRow: ['intent', /at 20, a is 2, 2, not 1, 1/],
  seenNow: ['intent', /a is 2, 2, not 3, 3/],
  earlyCopy: ['moved', /a is 1, 1, not absent/],
  earlySwitch: ['movedRecreated', /a is 2, 2, not 4, 4/],
  silentRepeat: ['repeated', /is 1, 1, not|is absent, not/],
};

test.each((Object.keys(RULES) as Rule[]).map((rule) => [RULES[rule], rule] as const))(
  'a cut is wrong if %s',
  (_, rule) => {
    const [script, violation] = FOUND[rule];
    const found = explore(script, { broken: rule });
    expect(found.violation).toMatch(violation);
    expect(found.trace?.length).toBeGreaterThan(0);
  },
);
