import { expect, test } from 'vitest';
import { IS_EVERY_POINT, sampleItems } from '../points.ts';
import { explore, SCRIPTS } from './move.ts';
import { RULES, type Rule } from './move-world.ts';

type ScriptName = keyof typeof SCRIPTS;

/** Those that a usual run visits completely. */
const SMALL: readonly ScriptName[] = ['reads', 'backClean', 'carves', 'carvesReads'];
const LARGE: readonly ScriptName[] = [
  'existing',
  'new',
  'readsBack',
  'lost',
  'aborts',
  'abortsLost',
  'back',
  'backLost',
  'opens',
  'accepts',
  'carvesLost',
  'carvesBack',
  'splits',
  'splitsReads',
  'splitsRemoves',
];

test.each(IS_EVERY_POINT ? [...SMALL, ...LARGE] : SMALL)(
  'a move loses nothing and can always end: %s',
  { tags: ['slow'] },
  (name) => {
    expect(explore(SCRIPTS[name])).toEqual({ states: expect.any(Number), isComplete: true });
  },
);

test.runIf(!IS_EVERY_POINT).each(sampleItems(LARGE, 'large move', 2))(
  'a move loses nothing in its first states: %s',
  { tags: ['slow'] },
  (name) => {
    expect(explore(SCRIPTS[name], { limit: 5_000 }).violation).toBeUndefined();
  },
);

test.runIf(IS_EVERY_POINT)('a move loses nothing with every fault at once', () => {
  expect(explore(SCRIPTS.all, { limit: 400_000 }).violation).toBeUndefined();
});

/** The script that shows the loss soonest, and the loss. */
const FOUND: Readonly<Record<Rule, readonly [script: ScriptName, violation: RegExp]>> = {
  noWait: ['backClean', /older than what was acknowledged/],
  noWaitForReads: ['readsBack', /a read returned 1/],
  noWaitForFences: ['aborts', /older than what was acknowledged/],
  noFence: ['backClean', /older than what was acknowledged/],
  noSecondLook: ['backClean', /older than what was acknowledged/],
  lateRegistry: ['backClean', /older than what was acknowledged/],
  noMark: ['backClean', /older than what was acknowledged/],
  noDraining: ['backClean', /older than what was acknowledged/],
  sealAfterCopy: ['backClean', /older than what was acknowledged/],
  unfenceFirst: ['backClean', /older than what was acknowledged/],
  noLastCopy: ['backClean', /older than what was acknowledged/],
  noDelete: ['back', /has 1, which is older than what was acknowledged/],
  noSettling: ['backLost', /older than what was acknowledged/],
  blindSwitch: ['opens', /older than what was acknowledged/],
  blindPhase: ['backLost', /two owners/],
  blindAccept: ['accepts', /two owners/],
  noTakeOverWait: ['new', /older than what was acknowledged/],
  earlyAccept: ['backClean', /two owners/],
  noVerify: ['readsBack', /a read returned 1/],
  verifyAnyMove: ['readsBack', /a read returned 1/],
  sameMove: ['aborts', /older than what was acknowledged/],
  carveInMove: ['carves', /older than what was acknowledged/],
  halfCarved: ['carves', /two owners/],
  fixedLayers: ['carves', /older than what was acknowledged/],
  removeApart: ['carvesReads', /two owners/],
  partOfBase: ['splits', /two owners/],
  joinApart: ['splitsReads', /two owners/],
};
/** Rules that take a second or more to break. */
const SLOW: readonly Rule[] = ['noWaitForFences', 'noTakeOverWait', 'sameMove'];
const rules = Object.keys(RULES) as Rule[];
const fast = rules.filter((rule) => !SLOW.includes(rule));

test.each(
  (IS_EVERY_POINT ? rules : [...fast, ...sampleItems(SLOW, 'slow rule of a move')]).map(
    (rule) => [RULES[rule], rule] as const,
  ),
)('a move loses something if %s', { tags: ['slow'] }, (_, rule) => {
  const [script, violation] = FOUND[rule];
  const found = explore(SCRIPTS[script], { broken: rule });
  expect(found.violation).toMatch(violation);
  expect(found.trace?.length).toBeGreaterThan(3);
});
