import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/define.ts';
import { baseValues } from '../kit/base.ts';
import { modelParts } from '../kit/define.ts';
import type { Internal } from '../kit/internal.ts';
import { sampleRuns } from '../points.ts';
import { type Caller, may, type World } from './evaluator.ts';
import {
  alternatives,
  declare,
  type Given,
  LEVELS,
  members,
  people,
  ROLES,
  type Rules,
  SUBJECTS,
  TERMS,
  type Term,
  VALUES,
} from './random-model.ts';

/** Whoever reads a count reads all that is counted, in each random model that is accepted. */

const text = { team: z.string(), owner: z.string(), state: z.string() };

function modelOf(ofTarget: readonly Given[], ofSource: readonly Given[]) {
  const access = (rule: readonly Given[]) => ({
    read: ['root', ...rule.map((one): Internal['Alternative'] => ({ ...declare(one), lists: 'none' }))],
    write: ['root'],
  });
  const tasks = defineEntity('tasks', {
    schema: z.object({ ...text, id: z.string() }),
    table: 'tasks',
    key: { partition: '{team}', row: 'task_{owner}_{id}' },
    access: access(ofSource),
  });
  const boards = defineEntity('boards', {
    schema: z.object({ ...text, tasks: z.int32() }),
    table: 'tasks',
    key: { partition: '{team}', row: 'board_{owner}' },
    counts: { tasks },
    access: access(ofTarget),
  });
  return defineModel({
    roles: [...ROLES, 'operator'],
    operatorRole: 'operator',
    entities: [people, members, tasks, boards] as never,
  });
}

const callers = [[], ['t1'], ['t1', 'u1'], [...VALUES.team]].flatMap((teams, at) =>
  SUBJECTS.flatMap((subject) =>
    [['user'], ['lead'], ['user', 'lead']].map((roles): Caller => {
      return { subject, roles, claims: { email: SUBJECTS[at] ?? '', teams } };
    }),
  ),
);
const person = { person: 'ann', team: 't1', email: 'ann' };
const worlds: readonly World[] = LEVELS.map((level, at) => ({
  people: [
    { ...person, team: VALUES.team[at] },
    { ...person, person: 'bob', email: 'bob' },
  ],
  members: VALUES.team.flatMap((team) => (team === 't2' ? [] : [{ team, user: SUBJECTS[at], level }])),
}));
const rows = VALUES.team.flatMap((team) =>
  SUBJECTS.flatMap((owner) => VALUES.state.map((state) => ({ team, owner, state }))),
);
const counted = VALUES.state.map((state, at) => ({ state, id: VALUES.id[at * 7] }));
const shared = alternatives(['team', 'owner']);
/** Each alternative of the target has the terms of one of the source, and often others. */
const rules = fc
  .tuple(fc.oneof(shared, alternatives(['team', 'owner', 'state'])), shared, fc.boolean())
  .map(([source, terms, isNarrowed]) => {
    const target = isNarrowed
      ? source.map(({ where, ...one }, at) => ({ ...one, where: { ...terms[at]?.where, ...where } }))
      : terms;
    return { source, target };
  });

const only = (read: readonly Given[]): Rules => ({ read, create: [], update: [], delete: [] });

test('a model with a count is accepted only if each reader of the count may read what is counted', () => {
  const seen = { accepted: 0, refused: 0, readers: 0 };
  fc.assert(
    fc.property(rules, ({ source, target }) => {
      try {
        modelOf(target, source);
      } catch (error) {
        if (
          !(error instanceof baseValues.DeclarationError) ||
          !/may hide from|which .* may not read/.test(error.message)
        )
          throw error;
        seen.refused += 1;
        return;
      }
      seen.accepted += 1;
      for (const world of worlds)
        for (const caller of callers)
          for (const row of rows.filter((each) => may(world, caller, only(target), 'read', each))) {
            seen.readers += 1;
            const isRead = counted.every((more) => may(world, caller, only(source), 'read', { ...row, ...more }));
            if (!isRead) throw new Error(JSON.stringify({ source, target, caller, world, row }));
          }
    }),
    sampleRuns(250),
  );
  expect(Math.min(seen.accepted, seen.refused, seen.readers)).toBeGreaterThan(0);
});

test('a term implies another one only if each value for which it holds is one of the other, for each caller', () => {
  const pairs = fc.constantFrom('team', 'owner', 'id', 'state', 'day', 'rank').chain((field) => {
    const term = TERMS[field as keyof typeof TERMS] ?? fc.constant<Term>({ is: 'subject' });
    return fc.record({ field: fc.constant(field), one: term, other: term });
  });
  const compared = (field: string, term: Term) => {
    const { where = {} } = declare({ role: 'user', where: { [field]: term }, lists: 'none' });
    return { entity: people as never, field, term: where[field] as never };
  };
  const holds = (field: string, term: Term, world: World, caller: Caller, value: unknown) =>
    may(world, caller, only([{ role: 'user', where: { [field]: term }, lists: 'none' }]), 'read', { [field]: value });
  const seen = { implied: 0, others: 0 };
  fc.assert(
    fc.property(pairs, ({ field, one, other }) => {
      expect(modelParts.implies(compared(field, one), compared(field, one))).toBe(true);
      const isImplied = modelParts.implies(compared(field, one), compared(field, other));
      seen[isImplied ? 'implied' : 'others'] += 1;
      const values: readonly unknown[] = VALUES[field as keyof typeof VALUES];
      for (const world of isImplied ? worlds : [])
        for (const caller of callers)
          for (const value of values)
            if (holds(field, one, world, caller, value))
              expect(holds(field, other, world, caller, value), JSON.stringify({ field, one, other })).toBe(true);
    }),
    sampleRuns(2_500),
  );
  expect(Math.min(seen.implied, seen.others)).toBeGreaterThan(10);
});
