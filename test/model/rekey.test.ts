// @module-tag long

import { expect, test } from 'vitest';
import { IS_EVERY_POINT } from '../points.ts';
import { explore, RULES, type Rule, SCRIPTS } from './rekey.ts';
import * as moves from './rekey-moves.ts';

type ScriptName = keyof typeof SCRIPTS;
const SMALL: readonly ScriptName[] = [
  'patch',
  'read',
  'create',
  'none',
  'late',
  'lateCreate',
  'earlyPut',
  'earlyCreate',
  'earlyMidway',
];
const scripts = IS_EVERY_POINT ? (Object.keys(SCRIPTS) as ScriptName[]) : SMALL;

test.each(scripts)('a move to another key loses nothing and can always end: %s', (name) => {
  expect(explore(SCRIPTS[name])).toEqual({ states: expect.any(Number), isComplete: true });
});

/** The script that shows the loss, and the loss. */
const FOUND: Readonly<Record<Rule, readonly [script: ScriptName, violation: RegExp]>> = {
  noWait: ['lateCreate', /a second entity is created/],
  noLeaseWait: ['earlyCreate', /a second entity is created/],
  noSentWait: ['earlyPut', /at both keys|a second entity is created/],
  noCheck: ['earlyCreate', /a second entity is created/],
  noConfirm: ['early', /a (read|patch) found 0, not one of/],
  servedMidway: ['earlyMidway', /a second entity is created/],
  noLookAtFormer: ['create', /a second entity is created/],
  noLookAgain: ['patch', /a patch found 0, not one of 1/],
  openArrival: ['patch', /was written last/],
  blindCopy: ['patch', /a write is lost/],
  openFirst: ['patch', /at both keys/],
  dropFirst: ['patch', /the entity has 0, and 1 was written last/],
  noSettling: ['delete', /the entity has 1, and 0 was written last/],
  blindOpen: ['delete', /the entity has 1, and 0 was written last/],
  keepLate: ['delete', /a read found 1, not one of 0/],
  dropCopies: ['patch', /the row of the index is of none/],
  trustArrival: ['delete', /a read found 1, not one of 0/],
};
const rules = (Object.keys(RULES) as Rule[]).filter((rule) => IS_EVERY_POINT || FOUND[rule][0] !== 'delete');

test.each(rules.map((rule) => [RULES[rule], rule] as const))(
  'a move to another key loses something if %s',
  (_, rule) => {
    const [script, violation] = FOUND[rule];
    const found = explore(SCRIPTS[script], { broken: rule });
    expect(found.violation).toMatch(violation);
    expect(found.trace?.length).toBeGreaterThan(0);
  },
);

type MovesName = keyof typeof moves.SCRIPTS;
const SMALL_MOVES: readonly MovesName[] = [
  'patched',
  'copiedPatched',
  'leftAlone',
  'ended',
  'backCopied',
  'backOpened',
];

test.each(IS_EVERY_POINT ? (Object.keys(moves.SCRIPTS) as MovesName[]) : SMALL_MOVES)(
  'a move to another key and one to other values lose nothing and can always end: %s',
  { tags: ['slow'] },
  (name) => {
    expect(moves.explore(moves.SCRIPTS[name])).toEqual({ states: expect.any(Number), isComplete: true });
  },
);

const FOUND_IN_MOVES: Readonly<Record<moves.Rule, readonly [script: MovesName, violation: RegExp]>> = {
  foreignTombstone: ['leftAlone', /B has 0, and 1 was written last/],
  foreignArrival: ['twice', /says that it has not moved/],
  unsettledArrival: ['backLeft', /nothing can end/],
  blindUndo: ['backLeft', /of A is of none/],
  unsettledKeys: ['patched', /says that it has not moved/],
  formerLife: ['patched', /says that it has not moved/],
  formerEnd: ['ended', /says that it has not moved/],
  lateTombstone: ['backOpened', /A has 0, and 1 was written last/],
  trustArrival: ['readDeleted', /a read found 1, not one of 0/],
  noLookAgain: ['read', /a read found 0, not one of 1/],
  keepCopies: ['backCopied', /the row of the index of A is of none/],
  wayBack: ['backOpened', /nothing can end/],
};
const inMoves = Object.entries(FOUND_IN_MOVES) as [moves.Rule, (typeof FOUND_IN_MOVES)[moves.Rule]][];
const movesRules = inMoves.filter(([, [script]]) => IS_EVERY_POINT || script !== 'readDeleted');

test.each(movesRules.map(([rule, [script, violation]]) => [moves.RULES[rule], script, { rule, violation }] as const))(
  'a move to another key and one to other values lose something if %s: %s',
  (_, script, { rule, violation }) => {
    expect(moves.explore(moves.SCRIPTS[script], { broken: rule }).violation).toMatch(violation);
  },
);
