import fc from 'fast-check';
import { z } from 'zod';
import {
  between,
  type DeclaredEntity,
  defineClaims,
  defineEntity,
  defineModel,
  type Index,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  memberOf,
  oneOf,
  own,
  startsWith,
  subject,
  total,
} from '../../lib/index.ts';
import type { Internal } from '../kit/internal.ts';

/**
 * Random models with rules on rows: tasks with notes (children), of teams with members, and people, by whom callers are known. Values
 * come from small sets, so that keys, terms and callers often meet.
 */

export type Term =
  | { readonly is: 'equal'; readonly value: Internal['Scalar'] }
  | { readonly is: 'one of'; readonly values: readonly [Internal['Scalar'], ...Internal['Scalar'][]] }
  | { readonly is: 'prefix'; readonly prefix: string }
  | { readonly is: 'between'; readonly from: Internal['Scalar']; readonly to: Internal['Scalar'] }
  | { readonly is: 'subject' | 'claim' | 'own' }
  | { readonly is: 'member'; readonly level?: string };

export interface Given {
  readonly role: string;
  readonly where: Readonly<Record<string, Term>>;
  readonly lists: 'bounded' | 'filtered' | 'none';
}

export const ACTIONS = ['read', 'create', 'update', 'delete'] as const;
export type Action = (typeof ACTIONS)[number];
/** An update for which one rule holds before, and another one after it. */
interface Transition {
  readonly before: readonly Given[];
  readonly after: readonly Given[];
}
export interface Rules extends Readonly<Record<Action, readonly Given[]>> {
  readonly transitions?: readonly Transition[];
}

/** What decides a random model. */
export interface Plan {
  readonly key: number;
  readonly indexes: readonly string[];
  readonly totals: readonly string[];
  readonly isOneWrite: boolean;
  /** True if a create of a task takes its owner from the caller. */
  readonly isOwnerSet: boolean;
  /** True if tasks can be moved and archived. Others are one row if nothing follows from them. */
  readonly isMovable: boolean;
  /** True if tasks and notes have a derived field. An entity with one is never written without a read. */
  readonly isDerived: boolean;
  /** True if the root is a steward, whom no rule names. */
  readonly isRootSteward: boolean;
  /** True if a lead is a visitor, whom no term of an identity concerns. */
  readonly isLeadVisitor: boolean;
  readonly tasks: Rules;
  readonly notes: Rules;
}

const TEAMS = ['t1', 't2', 'u1'];
export const SUBJECTS = ['ann', 'bob', 'cid'];
const STATES = ['draft', 'final', 'published'];
const DAYS = ['2026-10-03', '2026-11-05', '2026-11-20'];
export const LEVELS = ['admin', 'member'];
/** The last one has no rule. */
export const ROLES = ['user', 'lead', 'root'];

/** The values of each field of a task. */
export const VALUES = {
  team: TEAMS,
  owner: SUBJECTS,
  id: Array.from({ length: 20 }, (_, at) => String(at + 10)),
  state: STATES,
  day: DAYS,
  rank: [0, 1, 2, 3],
  flag: [true, false],
  // The last one begins as a row key of the engine.
  note: ['aa', 'ab', '~own_b'],
  size: [1, 2.5],
  zone: ['to', 'tc', 'uo', 'uc'],
} as const;
type Field = keyof typeof VALUES;

/** A derived field of tasks and notes: a move or another state changes it. */
export const zoneOf = ({ team, state }: Readonly<Record<string, unknown>>) =>
  `${String(team).slice(0, 1)}${state === 'draft' ? 'o' : 'c'}`;

/** Partition and row of the tasks. */
const KEYS = [
  ['{team}', 'task_{id}'],
  ['{owner}', 'task_{team}_{id}'],
  ['{team}_{owner}', 'task_{id}'],
  ['{team}', '{owner}_{id}'],
  ['{team}_{state}', 'task_{rank:2}_{id}'],
] as const;

const equal = (field: Field) =>
  fc.constantFrom<Internal['Scalar']>(...VALUES[field]).map((value): Term => ({ is: 'equal', value }));
const several = (field: Field) =>
  fc
    .uniqueArray(fc.constantFrom<Internal['Scalar']>(...VALUES[field]), { minLength: 1, maxLength: 2 })
    .map((values): Term => ({ is: 'one of', values: values as [Internal['Scalar'], ...Internal['Scalar'][]] }));
const prefix = (...prefixes: string[]) =>
  fc.constantFrom(...prefixes).map((text): Term => ({ is: 'prefix', prefix: text }));
const within = (...bounds: (readonly [Internal['Scalar'], Internal['Scalar']])[]) =>
  fc.constantFrom(...bounds).map(([from, to]): Term => ({ is: 'between', from, to }));
const is = (name: 'subject' | 'claim' | 'own') => fc.constant<Term>({ is: name });
const member = fc.oneof(
  fc.constant<Term>({ is: 'member' }),
  fc.constantFrom(...LEVELS).map((level): Term => ({ is: 'member', level })),
);

export const TERMS: Partial<Record<Field, fc.Arbitrary<Term>>> = {
  team: fc.oneof(equal('team'), several('team'), prefix('t', 'u', 't1'), is('claim'), is('own'), member, member),
  owner: fc.oneof(equal('owner'), is('subject'), is('subject'), several('owner'), is('own')),
  id: fc.oneof(prefix('1', '2', '10'), several('id'), within(['1', '2'], ['14', '22'])),
  state: fc.oneof(equal('state'), several('state'), within(['draft', 'final'], ['e', 'z'])),
  day: fc.oneof(equal('day'), prefix('2026-11'), within(['2026-10-01', '2026-11-10'], ['2026-11', '2026-11-07'])),
  rank: fc.oneof(equal('rank'), several('rank'), within([1, 2], [2, 9])),
  flag: equal('flag'),
  note: fc.oneof(equal('note'), prefix('a')),
  zone: fc.oneof(equal('zone'), several('zone'), prefix('t', 'u')),
};

const where = (fields: readonly Field[]) =>
  fc
    .uniqueArray(fc.constantFrom(...fields), { minLength: 1, maxLength: 3 })
    .chain((chosen) => fc.tuple(...chosen.map((field) => fc.tuple(fc.constant(field), TERMS[field] ?? equal(field)))))
    .map((terms) => Object.fromEntries(terms));

export const alternatives = (fields: readonly Field[]) =>
  fc.array(
    fc.record({
      role: fc.constantFrom('user', 'user', 'lead'),
      where: fc.oneof({ weight: 9, arbitrary: where(fields) }, { weight: 1, arbitrary: fc.constant({}) }),
      lists: fc.constantFrom('bounded', 'bounded', 'filtered', 'none'),
    }),
    { minLength: 1, maxLength: 3 },
  ) as fc.Arbitrary<Given[]>;

const rules = (fields: readonly Field[]): fc.Arbitrary<Rules> =>
  fc.record({
    read: alternatives(fields),
    create: alternatives(fields),
    update: alternatives(fields),
    delete: alternatives(fields),
    transitions: fc.oneof(
      fc.constant([]),
      fc.array(
        fc
          .record({ before: alternatives(fields), after: alternatives(fields) })
          // Without any term it is refused.
          .filter((pair) => Object.values(pair).some((side) => side.some((one) => Object.keys(one.where).length > 0))),
        { minLength: 1, maxLength: 3 },
      ),
    ),
  });

const INDEXES = [
  'state',
  'owner',
  'ownerKeys',
  'ownerSome',
  'stateRank',
  'hash',
  'code',
  'notes',
  'noteLists',
  'zone',
  'all',
];
const TOTALS = ['team', 'owner', 'month', 'rank'];

const IDENTITIES: readonly Term['is'][] = ['subject', 'claim', 'own', 'member'];

/** The rules of a lead without terms of an identity. */
function withoutIdentity(given: Rules): Rules {
  return mapRules(given, (one) => {
    if (one.role !== 'lead') return one;
    const where = Object.entries(one.where).filter(([, { is: of }]) => !IDENTITIES.includes(of));
    return { ...one, where: Object.fromEntries(where) };
  });
}

function withoutZone(given: Rules): Rules {
  return mapRules(given, (one) => {
    const { zone: _, ...where } = one.where;
    return { ...one, where };
  });
}

function mapRules(given: Rules, without: (one: Given) => Given): Rules {
  const { read, create, update, delete: remove, transitions = [] } = given;
  return {
    transitions: transitions.map(({ before, after }) => ({ before: before.map(without), after: after.map(without) })),
    read: read.map(without),
    create: create.map(without),
    update: update.map(without),
    delete: remove.map(without),
  };
}

export const plans: fc.Arbitrary<Plan> = fc
  .record({
    key: fc.nat(KEYS.length - 1),
    indexes: fc.uniqueArray(fc.constantFrom(...INDEXES), { maxLength: 5 }),
    totals: fc.uniqueArray(fc.constantFrom(...TOTALS), { maxLength: 2 }),
    isOneWrite: fc.boolean(),
    isOwnerSet: fc.nat(3).map((number) => number === 0),
    isMovable: fc.boolean(),
    isDerived: fc.boolean(),
    isRootSteward: fc.boolean(),
    isLeadVisitor: fc.nat(2).map((number) => number === 0),
    tasks: rules(['team', 'owner', 'id', 'state', 'day', 'rank', 'flag', 'note', 'zone', 'zone']),
    notes: rules(['team', 'owner', 'id', 'zone']),
  })
  .map((plan) =>
    plan.isDerived
      ? plan
      : {
          ...plan,
          indexes: plan.indexes.filter((name) => name !== 'zone'),
          tasks: withoutZone(plan.tasks),
          notes: withoutZone(plan.notes),
        },
  )
  .map((plan) =>
    plan.isLeadVisitor
      ? { ...plan, isOwnerSet: false, tasks: withoutIdentity(plan.tasks), notes: withoutIdentity(plan.notes) }
      : plan,
  );

const everyRow: Rules['delete'] = ['user', 'lead'].map((role) => ({ role, where: {}, lists: 'none' }));

/** A task goes with its notes only if the caller may delete all of them, which few random rules allow. */
export const plansToMove = plans.map((plan): Plan => {
  return { ...plan, isMovable: true, isOneWrite: false, notes: { ...plan.notes, delete: everyRow } };
});

/** Transitions of states meet more often than any others. Most callers read what they have changed. */
export const plansToChange = fc
  .tuple(
    plans,
    fc.array(fc.record({ before: alternatives(['state', 'flag']), after: alternatives(['state', 'rank']) }), {
      minLength: 2,
      maxLength: 4,
    }),
    fc.boolean(),
  )
  .map(([plan, pairs, isRead]): Plan => {
    const transitions = pairs.filter((pair) =>
      Object.values(pair)
        .flat()
        .some(({ where }) => Object.keys(where).length > 0),
    );
    const read = isRead ? everyRow : plan.tasks.read;
    return {
      ...plan,
      isOneWrite: false,
      tasks: { ...plan.tasks, read, update: plan.tasks.update.slice(1), transitions },
    };
  });

const claims = defineClaims({ teams: { verifiedBy: {} } });

/** The declared form of an alternative. */
export function declare({ role, where: given, lists }: Given): Internal['Alternative'] {
  const terms = Object.entries(given).map(([field, term]) => {
    if (term.is === 'equal') return [field, term.value];
    if (term.is === 'one of') return [field, oneOf(...term.values)];
    if (term.is === 'prefix') return [field, startsWith(term.prefix)];
    if (term.is === 'between') return [field, between(term.from, term.to)];
    if (term.is === 'subject') return [field, subject()];
    if (term.is === 'claim') return [field, claims.teams];
    if (term.is === 'own') return [field, own(people, field === 'team' ? 'team' : 'person')];
    return [field, memberOf(members, 'team', 'level' in term ? { level: term.level as 'admin' } : {})];
  });
  return terms.length > 0 ? { role, where: Object.fromEntries(terms), lists } : { role, lists };
}

function accessOf({ isOneWrite, isRootSteward }: Plan, given: Rules) {
  const rule = (action: Action) => [...(isRootSteward ? [] : ['root']), ...given[action].map(declare)];
  const { transitions = [] } = given;
  const pairs = transitions.map(({ before, after }) => ({ before: before.map(declare), after: after.map(declare) }));
  const update = [...pairs, ...rule('update')];
  const write = isOneWrite ? rule('update') : { create: rule('create'), update, delete: rule('delete') };
  return { read: rule('read'), write };
}

/** The rules that the model has, in the terms of the plan. */
export function rulesOf({ isOneWrite }: Plan, given: Rules): Rules {
  const { read, update } = given;
  return isOneWrite ? { read, create: update, update, delete: update } : given;
}

export const people = defineEntity('people', {
  schema: z.object({ person: z.string(), team: z.string(), email: z.string() }),
  table: 'people',
  key: { partition: '{person}', row: 'person' },
  indexes: { email: interPartitionIndex({ table: 'peoplebyemail', partition: '{email}', row: 'e', unique: true }) },
  access: { read: ['root'], write: ['root'], own: { claim: 'email', index: 'email', verifiedBy: {} } },
});

export const members = defineEntity('members', {
  schema: z.object({ team: z.string(), user: z.string(), level: z.enum(['admin', 'member']) }),
  table: 'members',
  key: { partition: '{team}', row: 'member_{user}' },
  indexes: { user: interPartitionIndex({ table: 'membersbyuser', partition: '{user}', row: '{team}' }) },
  access: { read: ['root'], write: ['root'] },
});

/** The fields of the key, those of the partition first. */
export function keyOf({ key }: Plan) {
  const fieldsIn = (template: string) => [...template.matchAll(/\{(\w+)/g)].map(([, field]) => field ?? '');
  const [partition, row] = KEYS[key] ?? KEYS[0];
  const inPartition = fieldsIn(partition);
  const inRow = fieldsIn(row);
  return { inPartition, inRow, all: [...new Set([...inPartition, ...inRow])] };
}

/** The fields that a move of a task changes. Nothing changes an owner that a create takes from the caller. */
export function movableOf(plan: Plan): readonly string[] {
  const { inPartition } = keyOf(plan);
  return plan.isMovable ? inPartition.filter((field) => !(plan.isOwnerSet && field === 'owner')) : [];
}

const toPart = (field: string) => (field === 'rank' ? '{rank:2}' : `{${field}}`);

function indexesOf(plan: Plan): Record<string, Index> {
  const { all, inRow } = keyOf(plan);
  const rest = (...without: string[]) =>
    all
      .filter((field) => !without.includes(field))
      .map(toPart)
      .join('_');
  const holds = inRow.map(toPart).join('_');
  const every: Record<string, () => Index> = {
    state: () => intraPartitionIndex({ row: `state_{state}_${holds}` }),
    owner: () => interPartitionIndex({ table: 'taskbyowner', partition: '{owner}', row: rest('owner') }),
    ownerKeys: () =>
      interPartitionIndex({ table: 'taskkeysbyowner', partition: '{owner}', row: rest('owner'), copies: 'keys' }),
    ownerSome: () =>
      interPartitionIndex({
        table: 'tasksomebyowner',
        partition: '{owner}',
        row: rest('owner'),
        copies: ['state', 'rank', 'owner'],
      }),
    stateRank: () =>
      interPartitionIndex({ table: 'taskbystate', partition: '{state}', row: `{rank:2}_${rest('rank', 'state')}` }),
    hash: () => interPartitionIndex({ table: 'taskbyhash', partition: '{note#}', row: `{note}_${rest()}` }),
    code: () => interPartitionIndex({ table: 'taskbycode', partition: '{code}', row: 'c', unique: true }),
    notes: () => indexEntity({ row: 'notes_{note}', holds }),
    noteLists: () =>
      indexEntity({ table: 'tasknotes', partition: '{owner}', row: 'l_{note}', holds: rest(), settle: 'inline' }),
    zone: () => interPartitionIndex({ table: 'taskbyzone', partition: '{zone}', row: rest() }),
    all: () => interPartitionIndex({ table: 'taskall', partition: 'all', row: rest() }),
  };
  return Object.fromEntries(plan.indexes.flatMap((name) => (every[name] ? [[name, every[name]()]] : [])));
}

function totalsOf({ totals }: Plan) {
  const sums = { sum: ['size'], max: ['rank'] } as const;
  const every = {
    team: total({ table: 'totalsbyteam', partition: 'team_{team}', row: 't', ...sums }),
    owner: total({ table: 'totalsbyowner', partition: 'owner_{owner}', row: 's_{state}', ...sums }),
    month: total({ table: 'totalsbymonth', partition: 'month_{team}', row: 'm_{day.month}', ...sums }),
    rank: total({ table: 'totalsbyrank', partition: 'rank_{state}', row: 'r_{team}', sum: ['size'] }),
  };
  return Object.fromEntries(Object.entries(every).filter(([name]) => totals.includes(name)));
}

export function modelOf(plan: Plan, prefixOfNames: string) {
  const [partition, row] = KEYS[plan.key] ?? KEYS[0];
  const options: unknown = {
    schema: z.object({
      team: z.string().regex(/^[tu]\d$/),
      owner: z.string().regex(/^[a-z]{3}$/),
      id: z.string().regex(/^\d+$/),
      state: z.enum(['draft', 'final', 'published']),
      day: z.iso.date(),
      rank: z.int32().min(0).max(99),
      flag: z.boolean(),
      note: z.string().min(1).optional(),
      code: z.string().min(1).optional(),
      size: z.number(),
      ...(plan.isDerived ? { zone: z.string() } : {}),
    }),
    derived: plan.isDerived ? { zone: zoneOf } : {},
    table: 'tasks',
    key: { partition, row },
    indexes: indexesOf(plan),
    totals: totalsOf(plan),
    ...(plan.isMovable ? { movable: movableOf(plan), archive: { table: 'oldtasks' } } : {}),
    ...(plan.indexes.includes('all') ? { lookup: { index: 'all' } } : {}),
    access: { ...accessOf(plan, plan.tasks), ...(plan.isOwnerSet ? { set: { owner: subject() } } : {}) },
  };
  const tasks = defineEntity('tasks', options as never) as DeclaredEntity;
  const noteOptions: unknown = {
    schema: z.object({
      team: z.string().regex(/^[tu]\d$/),
      owner: z.string().regex(/^[a-z]{3}$/),
      id: z.string().regex(/^\d+$/),
      day: z.iso.date(),
      state: z.enum(['draft', 'final', 'published']),
      rank: z.int32().min(0).max(99),
      number: z.string().regex(/^\d$/),
      text: z.string(),
      ...(plan.isDerived ? { zone: z.string() } : {}),
    }),
    derived: plan.isDerived ? { zone: zoneOf } : {},
    table: 'tasks',
    key: { partition, row: `${row}_{number}` },
    childOf: tasks,
    access: accessOf(plan, plan.notes),
  };
  const notes = defineEntity('notes', noteOptions as never) as DeclaredEntity;
  return defineModel({
    prefix: prefixOfNames,
    roles: [...ROLES, 'operator'],
    operatorRole: 'operator',
    ...(plan.isRootSteward ? { steward: 'root' } : {}),
    ...(plan.isLeadVisitor ? { anyone: 'lead', limits: [{ role: 'lead', requests: 1_000_000, per: 'day' }] } : {}),
    entities: [people, members, tasks, notes],
  });
}
