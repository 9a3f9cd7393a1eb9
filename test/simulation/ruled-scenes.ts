import type { Step } from '../../local/walk/steps.ts';
import { CLIENTS, type Event } from './event.ts';
import { type Chance, createChance } from './world/chance.ts';
import type { Trap } from './world/network.ts';

/** Scenes in which the user whom rules limit does what they no longer allow when it runs, or allow to somebody else, and others write what is archived. */

/** What the user needs is written so long before. */
const BEFORE_MS = 3_000;
const LONGEST_STOP_MS = 9_000;
/** So many worlds have a folder with more papers than a transaction has actions. */
const LARGE_FAMILIES = 0.4;
const BATCHES = 3;
const BATCH = 60;
const LARGE_AFTER_MS = 10 * BEFORE_MS;
/** No other scene has such a trap. */
const FIRST_SCENE = 1_000;
/** The last client. */
const USER = CLIENTS - 1;

type Timed = { readonly at: number; readonly event: Event };

interface Scene {
  readonly at: number;
  readonly nth: number;
  readonly user: string;
  readonly chance: Chance;
  /** Creates of visits of the last days. */
  readonly visits: readonly Step[];
}

export function ruledScenesOf({
  seed,
  user,
  steps,
  times,
}: {
  readonly seed: number;
  readonly user: string;
  readonly steps: readonly Step[];
  readonly times: readonly number[];
}): Timed[] {
  const visits = steps.filter(({ of, do: write }) => of === 'visits' && write === 'create');
  const large = createChance(seed, 'large family');
  const last = { at: large.pick(times), nth: times.length, user, chance: large, visits };
  const scenes = times.flatMap((at, nth) => {
    const chance = createChance(seed, 'ruled', nth);
    const kinds = [later, later, family, member, transaction, team, foreignPage, ...(visits.length > 0 ? [visit] : [])];
    return chance.pick(kinds)({ at, nth, user, chance, visits });
  });
  return large.isTrue(LARGE_FAMILIES) ? [...scenes, ...largeFamily(last)] : scenes;
}

/** A path can contain them. */
const GROUPS = ['~own', 'a'];

const byOther = (chance: Chance) => chance.below(USER);

/** A note becomes final between the request of the user and its execution. */
function later({ at, nth, user, chance }: Scene): Timed[] {
  const of = 'notes';
  const [groupId, other] = chance.shuffle(GROUPS);
  const key = { groupId, noteId: `n${nth}` };
  const draft = { of, do: 'create', values: { ...key, userId: user, status: 'draft' } } satisfies Step;
  const step: Step = chance.pick([
    { of, do: 'archive', key },
    { of, do: 'archive', key },
    { of, do: 'move', key, values: { groupId: other } },
    { of, do: 'delete', key },
    { of, do: 'update', key, values: { text: 'of the user' } },
  ]);
  const final = { of, do: 'update', key, values: { status: 'final' } } satisfies Step;
  return [
    { at: at - BEFORE_MS, event: { do: 'write', client: byOther(chance), step: draft } },
    ...beside({ at, nth, chance, step, final }),
  ];
}

/** A paper becomes final while the user moves its folder. */
function family({ at, nth, user, chance }: Scene): Timed[] {
  const [groupId, other] = chance.shuffle(GROUPS);
  const key = { groupId, folderId: `${FIRST_SCENE + nth}` };
  const ofPaper = { ...key, paperId: '1' };
  const create = [
    { of: 'folders', do: 'create', values: { ...key, userId: user } },
    { of: 'papers', do: 'create', values: { ...ofPaper, status: 'draft' } },
  ] satisfies Step[];
  return [
    ...create.map((step, after): Timed => {
      return { at: at - BEFORE_MS + (after * BEFORE_MS) / 2, event: { do: 'write', client: byOther(chance), step } };
    }),
    ...beside({
      ...{ at, nth, chance, step: { of: 'folders', do: 'move', key, values: { groupId: other } } },
      final: { of: 'papers', do: 'update', key: ofPaper, values: { status: 'final' } },
    }),
  ];
}

/** The user deletes or moves a folder with more papers than fit into a transaction with it, while others write. */
function largeFamily({ at, nth, user, chance }: Scene): Timed[] {
  const [groupId, other] = chance.shuffle(GROUPS);
  const key = { groupId, folderId: `${FIRST_SCENE + nth}` };
  const paper = (paperId: string) => ({ ...key, paperId, status: 'draft' });
  const folder = { of: 'folders', do: 'create', values: { ...key, userId: user } } satisfies Step;
  const papers = Array.from({ length: BATCHES }, (_, batch) => {
    const actions = Array.from({ length: BATCH }, (__, one) => ({ create: paper(`${batch}_${one}`) }));
    return { of: 'papers', do: 'batch', actions } satisfies Step;
  });
  const scene = FIRST_SCENE + nth;
  const isMove = chance.isTrue(0.6);
  const ofUser: Step = isMove
    ? { of: 'folders', do: 'move', key, values: { groupId: other } }
    : { of: 'folders', do: 'delete', key };
  // A delete has about five writes, a move nine. Children may be lost when it has left.
  const nthWrite = () => 1 + (isMove ? chance.pick([chance.below(9), 5 + chance.below(3)]) : chance.below(5));
  const setTrap = (): Trap => ({
    scene,
    nth: nthWrite(),
    forMs: chance.between(500, LONGEST_STOP_MS),
    ...chance.pick([
      { request: 'send message', end: 'held', nth: 1 },
      { request: 'receive message', end: 'pauses after', nth: 1 },
      { request: 'write entity', end: 'dies before' },
      { request: 'write entity', end: 'dies after' },
      { request: 'write entity', end: 'held' },
      { request: 'write entity', end: 'late' },
      { request: 'read entity', end: 'pauses after' },
    ] as const),
  });
  const others: Step[] = [
    { of: 'papers', do: 'update', key: { ...key, paperId: '0_1' }, values: { status: 'final' } },
    { of: 'papers', do: 'delete', key: { ...key, paperId: '1_1' } },
    { of: 'folders', do: 'update', key, values: { userId: 'another' } },
    { of: 'folders', do: 'delete', key },
    folder,
  ];
  const write = (step: Step) => ({ do: 'write', client: byOther(chance), step }) as const;
  return [
    ...[folder, ...papers].map((step, order): Timed => {
      return { at: at + (order && LARGE_AFTER_MS / 2 + order * BEFORE_MS), event: write(step) };
    }),
    { at: at + LARGE_AFTER_MS, event: { do: 'write', client: USER, step: ofUser, traps: [setTrap(), setTrap()] } },
    ...Array.from({ length: 4 }, (_, one): Timed => {
      const after = { scene, ms: chance.pick([10, 500, LONGEST_STOP_MS, 61_000]) * chance.next() };
      const create = { of: 'papers', do: 'create', values: paper(`late${one}`) } satisfies Step;
      const step = chance.isTrue(0.5) ? create : chance.pick(others);
      return { at: at + LARGE_AFTER_MS, event: { ...write(step), after } };
    }),
  ];
}

/** The user writes, and another client makes something final while that stops. */
function beside({
  at,
  nth,
  chance,
  step,
  final,
}: Pick<Scene, 'at' | 'nth' | 'chance'> & { readonly step: Step; readonly final: Step }): Timed[] {
  const stop = { scene: FIRST_SCENE + nth, nth: 1, forMs: chance.between(500, LONGEST_STOP_MS) };
  const trap: Trap = {
    ...stop,
    ...chance.pick([
      { request: 'receive message', end: 'pauses after' },
      { request: 'send message', end: 'held' },
      { request: 'read entity', end: 'pauses after' },
      { request: 'write entity', end: 'held' },
    ] as const),
  };
  const after = { scene: stop.scene, ms: chance.next() * stop.forMs };
  return [
    { at, event: { do: 'write', client: USER, step, traps: [trap] } },
    { at, event: { do: 'write', client: byOther(chance), step: final, after } },
  ];
}

/** A note that the user may create, and a notice. */
function transaction({ at, nth, user, chance }: Scene): Timed[] {
  const groupId = chance.pick(GROUPS);
  const note = { groupId, noteId: `t${nth}`, userId: user, status: 'draft' };
  const notice = { groupId, noticeId: `t${nth}` };
  const actions = chance.shuffle([{ notes: { create: note } }, { notices: { create: notice } }]);
  return [{ at, event: { do: 'transact', client: chance.isTrue(0.7) ? USER : byOther(chance), actions } }];
}

/** The user deletes an expense of a group, as a member or as an admin. */
function member({ at, nth, user, chance }: Scene): Timed[] {
  const key = { groupId: `g${nth}`, expenseId: `x${nth}` };
  const role = chance.pick(['member', 'member', 'admin']);
  const before = [
    { of: 'members', do: 'create', values: { groupId: key.groupId, userId: user, role } },
    { of: 'expenses', do: 'create', values: { ...key, paidBy: user, amount: 1, status: 'draft' } },
  ] satisfies Step[];
  return [
    ...before.map((step): Timed => {
      return { at: at - BEFORE_MS, event: { do: 'write', client: byOther(chance), step } };
    }),
    { at, event: { do: 'write', client: USER, step: { of: 'expenses', do: 'delete', key } } },
  ];
}

/** The user's own entity, with a team or without one, and a board. */
function team({ at, nth, user, chance }: Scene): Timed[] {
  const site = chance.pick(GROUPS);
  const ofTeam = () => chance.pick([{}, { team: 'red' }, { team: 'blue' }]);
  const key = { site, boardId: `b${nth}` };
  const write = (step: Step) => ({ do: 'write', client: byOther(chance), step }) as const;
  const own = { site, personId: `p${nth}`, userId: user, ...ofTeam() };
  return [
    { at: at - BEFORE_MS, event: write({ of: 'people', do: 'create', values: own }) },
    { at: at - BEFORE_MS, event: write({ of: 'boards', do: 'create', values: { ...key, ...ofTeam() } }) },
    { at, event: { do: chance.isTrue(0.5) ? 'read' : 'list', client: USER, of: 'boards', key } },
  ];
}

/** A row of a day, whose table is archived at the end. */
function visit({ at, nth, chance, visits }: Scene): Timed[] {
  const values = { ...chance.pick(visits).values, groupId: chance.pick(GROUPS), visitId: `v${nth}` };
  return [{ at, event: { do: 'write', client: byOther(chance), step: { of: 'visits', do: 'create', values } } }];
}

/** A caller goes on with the list of another one. */
function foreignPage({ at, nth, chance }: Scene): Timed[] {
  const groupId = chance.pick(GROUPS);
  const notices = ['1', '2', '3'].map((end) => {
    const step = { of: 'notices', do: 'create', values: { groupId, noticeId: `f${nth}_${end}` } } satisfies Step;
    return { at: at - BEFORE_MS, event: { do: 'write', client: byOther(chance), step } as const };
  });
  const clients = chance.shuffle([USER, byOther(chance)]) as [number, number];
  return [...notices, { at, event: { do: 'continue', clients, of: 'notices', key: { groupId } } }];
}
