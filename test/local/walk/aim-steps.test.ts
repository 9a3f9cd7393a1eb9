import { expect, test } from 'vitest';
import { aimSteps } from '../../../local/walk/aim-steps.ts';
import type { Step } from '../../../local/walk/steps.ts';
import { model as fixtures } from '../../fixtures/model.ts';
import { model } from '../../fixtures/relations.ts';

/** Which entities the steps of a walk concern. The relations have members of a team, and a team with its lead. */

const aim = (number: number, ...steps: readonly Step[]) =>
  aimSteps(
    model.list,
    steps.map((step) => [step, number]),
  );
const create: Step = { of: 'members', do: 'create', values: { team: '1', memberId: '7', level: 2 } };
const other = { team: '4', memberId: '5' };
const own = { team: '1', memberId: '7' };

test('a step has the key of an entity that an earlier step has written', () => {
  const update: Step = { of: 'members', do: 'update', key: other, values: { level: 1 } };
  expect(aim(1, create, update)).toEqual([create, { ...update, key: own }]);
  const batch: Step = { of: 'members', do: 'atomic', actions: [{ delete: other }, { create: { ...other, level: 0 } }] };
  expect(aim(1, create, batch)).toEqual([
    create,
    { ...batch, actions: [{ delete: own }, { create: { ...other, team: '1', level: 0 } }] },
  ]);
});

test('one of four steps has random keys', () => {
  const update: Step = { of: 'members', do: 'update', key: other, values: { level: 1 } };
  expect(aim(4, create, update)).toEqual([create, update]);
});

test('a reference names an entity with the same other key fields', () => {
  const put: Step = { of: 'teams', do: 'put', key: { team: '9' }, values: { team: '9', leadId: '3' } };
  expect(aim(1, create, put)).toEqual([create, { ...put, key: { team: '1' }, values: { team: '1', leadId: '7' } }]);
  const elsewhere: Step = { of: 'members', do: 'create', values: other };
  const team: Step = { of: 'teams', do: 'create', values: { team: '1' } };
  const change: Step = { of: 'teams', do: 'update', key: { team: '9' }, values: { leadId: '3' } };
  expect(aim(5, create, elsewhere, team, change).at(-1)).toEqual({
    ...change,
    key: { team: '4' },
    values: { leadId: '5' },
  });
  const removal: Step = { ...change, values: { leadId: null } };
  expect(aim(1, create, team, removal).at(-1)).toEqual({ ...removal, key: { team: '1' } });
});

test('a step has the key that a move has left the entity with, and none that a step has removed', () => {
  const move: Step = { of: 'members', do: 'move', key: other, values: { team: '2' } };
  const remove: Step = { of: 'members', do: 'delete', key: other };
  expect(aim(1, create, move, remove, remove)).toEqual([
    create,
    { ...move, key: own },
    { ...remove, key: { team: '2', memberId: '7' } },
    remove,
  ]);
});

test('the delete of an archived entity has the key of one that is archived', () => {
  const archive: Step = { of: 'members', do: 'archive', key: other };
  const remove: Step = { of: 'members', do: 'deleteArchived', key: other };
  expect(aim(1, create, archive, remove)).toEqual([create, { ...archive, key: own }, { ...remove, key: own }]);
});

test('a reference that no entity has is removed', () => {
  const put: Step = { of: 'teams', do: 'put', key: { team: '9' }, values: { team: '9', leadId: '3', title: 'A' } };
  expect(aim(1, put)).toEqual([{ ...put, values: { team: '9', title: 'A' } }]);
  expect(aim(4, put)).toEqual([put]);
});

test('a child has the key of its parent', () => {
  const parent: Step = { of: 'employees', do: 'create', values: { department: 'Sales', employeeId: '000001' } };
  const department: Step = { of: 'departments', do: 'create', values: { department: 'Law' } };
  const review: Step = { of: 'reviews', do: 'create', values: { department: 'Ads', employeeId: '000002', year: 2026 } };
  const steps = [parent, department, review].map((step) => [step, 1] as const);
  expect(aimSteps(fixtures.list, steps).at(-1)).toEqual({
    ...review,
    values: { ...review.values, department: 'Sales', employeeId: '000001' },
  });
});
