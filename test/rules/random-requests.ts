import fc from 'fast-check';
import type { Caller, Row } from './evaluator.ts';
import { LEVELS, SUBJECTS, VALUES } from './random-model.ts';

/** Random data, callers and requests for a random model, which decides the details. */

export type Kind = 'tasks' | 'notes';

const one = <const T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom<T>(...values);
const taskRow = fc.record(
  {
    team: one(VALUES.team),
    owner: one(VALUES.owner),
    id: one(VALUES.id),
    state: one(VALUES.state),
    day: one(VALUES.day),
    rank: one(VALUES.rank),
    flag: one(VALUES.flag),
    size: one(VALUES.size),
    note: one(VALUES.note),
    code: one(['c1', 'c2', 'c3']),
    number: one(['1', '2']),
    text: one(['x', 'y']),
  },
  { requiredKeys: ['team', 'owner', 'id', 'state', 'day', 'rank', 'flag', 'size', 'number', 'text'] },
) as fc.Arbitrary<Row>;

export const taskRows = (count: number) => fc.array(taskRow, { minLength: count, maxLength: count });

export const callers: fc.Arbitrary<Caller> = fc.record({
  subject: one(SUBJECTS),
  roles: fc.oneof(
    { weight: 8, arbitrary: fc.constant(['user']) },
    { weight: 2, arbitrary: fc.constantFrom(['lead'], ['user', 'lead'], [], ['root'], ['operator']) },
  ),
  claims: fc.record(
    {
      teams: fc.oneof(one(VALUES.team), fc.uniqueArray(one(VALUES.team), { maxLength: 2 })),
      email: one(['ann@x', 'bob@x', 'no@x']),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Caller['claims']>,
});

const READS = ['get', 'get', 'get', 'include', 'range', 'by', 'by', 'by', 'list', 'total'] as const;

/** A read, of which the plan decides the details. */
const read = fc.record({
  read: one(READS),
  kind: one<Kind>(['tasks', 'tasks', 'notes']),
  row: taskRow,
  index: fc.nat(20),
  depth: fc.nat(3),
  select: fc.option(
    fc.uniqueArray(one(['team', 'state', 'rank', 'note', 'size', 'owner']), { minLength: 1, maxLength: 2 }),
  ),
  where: fc.option(one(['state', 'rank', 'flag', 'owner', 'zone'] as const)),
  bound: fc.option(one(['from', 'to', 'prefix'] as const)),
  etag: fc.boolean(),
});
export type Read = typeof read extends fc.Arbitrary<infer T> ? T : never;

const WRITES = [
  'create',
  'create',
  'put',
  'put',
  'patch',
  'patch',
  'patch',
  'delete',
  'batch',
  'batch',
  'range',
  'move',
  'move',
  'archive',
  'member',
  'person',
] as const;
const action = fc.record({
  does: one(['create', 'put', 'patch', 'delete'] as const),
  row: taskRow,
  changed: fc.uniqueArray(
    one(['state', 'rank', 'flag', 'note', 'owner', 'team', 'size', 'text', 'day', 'code'] as const),
    {
      minLength: 1,
      maxLength: 3,
    },
  ),
});
export const anyWrite = fc.record({
  write: one(WRITES),
  kind: one<Kind>(['tasks', 'tasks', 'notes']),
  action,
  actions: fc.array(action, { minLength: 1, maxLength: 4 }),
  isAtomic: fc.boolean(),
  condition: one(['none', 'none', 'none', 'right', 'wrong', 'new'] as const),
  isMinimal: fc.boolean(),
  level: one(LEVELS),
});
export type Write = typeof anyWrite extends fc.Arbitrary<infer T> ? T : never;
export type Change = Write['action'];

export interface Step {
  readonly callers: readonly Caller[];
  readonly reads: readonly Read[];
  readonly writes: readonly Write[];
}

export const steps = (count: number): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.record({
      callers: fc.array(callers, { minLength: 8, maxLength: 8 }),
      reads: fc.array(read, { minLength: 15, maxLength: 15 }),
      writes: fc.array(anyWrite, { minLength: 4, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: count },
  );
export const beginnings = fc.record({
  tasks: fc.array(taskRow, { minLength: 45, maxLength: 60 }),
  members: fc.uniqueArray(fc.record({ team: one(VALUES.team), user: one(SUBJECTS), level: one(LEVELS) }), {
    maxLength: 5,
    selector: ({ team, user }) => `${team} ${user}`,
  }),
  people: fc.record({ ann: one(VALUES.team), bob: one(VALUES.team) }),
});
