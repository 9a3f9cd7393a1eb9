import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { planPartition, siblingRowsOf } from '../../../../lib/engine/write/plan.ts';
import { defineEntity, interPartitionIndex, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { departments, employees } from '../../../fixtures/model.ts';
import { defineCodec, definePlaces, type Entity } from '../../../kit/define.ts';
import { engineRead } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import type { Row } from '../../../kit/storage.ts';

const person = (employeeId: string) =>
  fc.record({
    department: fc.constant('Sales'),
    employeeId: fc.constant(employeeId),
    email: fc.constantFrom('a', 'b', 'c').map((name) => `${name}${employeeId}@contoso.com`),
    firstName: fc.constantFrom('Ann', 'Bo'),
    lastName: fc.constantFrom('Xu', 'Yi', 'Zed'),
  });
const state = (employeeId: string) => fc.option(person(employeeId), { nil: undefined });
const MARK = { writeId: 'write', now: 0 };
const IDS = ['000001', '000002', '000003'];
/** The states of three employees before and after a change. */
const changesOfThree = fc.tuple(
  ...IDS.map((employeeId) => fc.record({ before: state(employeeId), after: state(employeeId) })),
);

type Partition = Map<string, Row>;

function row(key: string, properties: Values): Row {
  return { table: 'employees', partition: 'Sales', row: key, etag: `etag of ${key}`, properties: { ...properties } };
}

function change(
  entity: Entity,
  partition: Partition,
  before: Values | undefined,
  after: Values | undefined,
): Internal['EntityChange'] {
  const address = definePlaces.addressOf(entity, { ...before, ...after });
  return { entity, address, before: defineCodec.toSnapshot(entity, partition.get(address.row)), after };
}

/** Applies the actions to a partition and rejects what storage would reject. */
function apply(partition: Partition, plan: ReturnType<typeof planPartition>): void {
  const rows = plan.actions.map(({ action }) => action.row);
  expect(new Set(rows).size, 'a row twice in one transaction').toBe(rows.length);
  expect(rows.length).toBeLessThanOrEqual(100);
  for (const { action } of plan.actions) {
    const found = partition.get(action.row);
    if (action.kind === 'insert') expect(found, `an insert over ${action.row}`).toBeUndefined();
    if (action.kind === 'replace' || action.kind === 'merge' || action.kind === 'delete')
      expect(found, action.row).toBeDefined();
    if (action.kind === 'replace' || action.kind === 'merge') expect(action.etag).toBe(found?.etag);
    if (action.kind === 'delete') partition.delete(action.row);
    else
      partition.set(
        action.row,
        row(action.row, action.kind === 'merge' ? { ...found?.properties, ...action.properties } : action.properties),
      );
  }
}

function commit(partition: Partition, changes: readonly Internal['EntityChange'][]): ReturnType<typeof planPartition> {
  const siblings = new Map(
    siblingRowsOf(changes).flatMap((key) => (partition.has(key) ? [[key, partition.get(key) as Row]] : [])),
  );
  const plan = planPartition(changes, siblings, MARK);
  apply(partition, plan);
  return plan;
}

function expectToAgree(partition: Partition, live: readonly Values[]): void {
  const entities = [...partition.values()]
    .map((found) => defineCodec.toSnapshot(employees, found))
    .filter((found: Internal['Snapshot']) => found.state === 'live');
  const copies = [...partition.values()].filter(({ row: key }) => key.startsWith('email_')).map(({ row: key }) => key);
  expect(copies.sort()).toEqual(live.map(({ email }) => `email_${email}`).sort());
  const lists = [...partition.values()].filter(({ row: key }) => key.startsWith('lastname_'));
  for (const list of lists)
    expect(engineRead.membersOf(list)).toEqual(
      live
        .filter(({ lastName }) => list.row === `lastname_${lastName}`)
        .map(({ employeeId }) => employeeId)
        .sort(),
    );
  expect(entities.length).toBeGreaterThanOrEqual(live.length);
}

describe('a plan', () => {
  test('of several changes in a partition updates copies and lists in one transaction', () => {
    fc.assert(
      fc.property(changesOfThree, (three) => {
        const partition: Partition = new Map();
        const existing = three.flatMap(({ before }) => (before ? [before] : []));
        commit(
          partition,
          existing.map((values) => change(employees, partition, undefined, values)),
        );
        expectToAgree(partition, existing);
        const changes = three.flatMap(({ before, after }) =>
          before || after ? [change(employees, partition, before, after)] : [],
        );
        commit(partition, changes);
        expectToAgree(
          partition,
          three.flatMap(({ after }) => (after ? [after] : [])),
        );
      }),
    );
  });

  test('lists every index entry outside the partition that changes, and claims the new unique ones', () => {
    fc.assert(
      fc.property(state('000001'), state('000001'), (before, after) => {
        fc.pre(before !== undefined || after !== undefined);
        const partition: Partition = new Map();
        if (before) commit(partition, [change(employees, partition, undefined, before)]);
        const plan = commit(partition, [change(employees, partition, before, after)]);
        const [former, next] = [before, after].map((values) =>
          definePlaces.indexEntriesOf(employees, values).map((indexEntry) => JSON.stringify(indexEntry)),
        ) as [string[], string[]];
        // Of the indexes outside the partition, this one copies the whole entity.
        const isRewritten = (text: string) =>
          text.includes('"emailCompanyWide"') && !isDeepStrictEqual({ ...before }, { ...after });
        const changed = [
          ...former.filter((text) => !next.includes(text) || isRewritten(text)),
          ...next.filter((text) => !former.includes(text)),
        ];
        expect(
          plan.followUps
            .flatMap(({ items }) => items)
            .flatMap(({ indexEntries }) => indexEntries.map((indexEntry) => JSON.stringify(indexEntry)))
            .sort(),
        ).toEqual(changed.sort());
        const claimed = [before?.employeeId !== after?.employeeId, before?.email !== after?.email];
        expect(plan.claims.length).toBe(after ? claimed.filter(Boolean).length : 0);
      }),
    );
  });

  test('of a manager and its department changes each row once', () => {
    const states = fc.array(
      fc.record({ manager: fc.constantFrom(undefined, '000001', '000002'), lastName: fc.constantFrom('Xu', 'Yi') }),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(states, (steps) => {
        const partition: Partition = new Map();
        const staff = IDS.slice(0, 2).map(
          (employeeId): Values => ({
            department: 'Sales',
            employeeId,
            email: `${employeeId}@contoso.com`,
            firstName: 'F',
            lastName: 'Xu',
          }),
        );
        commit(
          partition,
          staff.map((values) => change(employees, partition, undefined, values)),
        );
        const live = (entity: Entity, key: Values) => {
          const found = defineCodec.toSnapshot(entity, partition.get(definePlaces.addressOf(entity, key).row));
          return found.state === 'live' ? found.values : undefined;
        };
        for (const { manager, lastName } of steps) {
          const before = live(departments, { department: 'Sales' });
          commit(partition, [
            change(departments, partition, before, { department: 'Sales', ...(manager ? { managerId: manager } : {}) }),
          ]);
          const one = live(employees, staff[0] as Values);
          commit(partition, [change(employees, partition, one, { ...one, lastName })]);
          const managed = live(departments, { department: 'Sales' });
          const who = manager && live(employees, { department: 'Sales', employeeId: manager });
          expect(managed?.managerName).toBe(who ? `F ${who.lastName}` : undefined);
        }
      }),
    );
  });

  test('of an entity settles the remote entries of the entity that copies its fields', () => {
    const access = { read: ['hr'], write: ['hr'] } as const;
    const declared = defineEntity('staff', {
      schema: z.object({ team: z.string(), id: z.string(), name: z.string(), room: z.string().optional() }),
      table: 'staff',
      key: { partition: '{team}', row: 'id_{id}' },
      access,
    });
    const { staff, teams } = deploy(
      declared,
      defineEntity('teams', {
        schema: z.object({ team: z.string(), lead: z.string().optional(), leadName: z.string().optional() }),
        table: 'staff',
        key: { partition: '{team}', row: 'team' },
        denormalized: { lead: { source: declared, by: 'id', copies: { leadName: ({ name }: Values) => name } } },
        indexes: { byLead: interPartitionIndex({ table: 'teamsbylead', partition: '{leadName}', row: '{team}' }) },
        access,
      }),
    );
    const partition: Partition = new Map();
    const ann = { team: 'Blue', id: '1', name: 'Ann' };
    const team = { team: 'Blue', lead: '1' };
    commit(partition, [change(staff, partition, undefined, ann)]);
    commit(partition, [change(teams, partition, undefined, team)]);
    const entry = (leadName: string) => ({ index: 'byLead', table: 'teamsbylead', partition: leadName, row: 'Blue' });
    const item = (...names: string[]) => ({ partition: 'Blue', row: 'team', indexEntries: names.map(entry) });
    const renamed = commit(partition, [change(staff, partition, ann, { ...ann, name: 'Bo' })]);
    expect(renamed.followUps.slice(1)).toEqual([{ entity: teams, items: [item('Ann', 'Bo')], fanOut: [] }]);
    const moved = commit(partition, [change(staff, partition, ann, { ...ann, name: 'Bo', room: '5' })]);
    expect(moved.followUps.slice(1)).toEqual([]);
    const left = commit(partition, [change(staff, partition, ann, undefined)]);
    expect(left.followUps.slice(1)).toEqual([{ entity: teams, items: [item('Bo')], fanOut: [] }]);
    expect(defineCodec.toSnapshot(teams, partition.get('team'))).toMatchObject({ values: { team: 'Blue' } });
  });

  test('of two entities that swap a value is rejected before storage would reject it', () => {
    const partition: Partition = new Map();
    const [one, other] = IDS.map(
      (employeeId): Values => ({
        department: 'Sales',
        employeeId,
        email: `${employeeId}@contoso.com`,
        firstName: 'F',
        lastName: 'Xu',
      }),
    );
    if (!one || !other) throw new Error('There are three.');
    commit(
      partition,
      [one, other].map((values) => change(employees, partition, undefined, values)),
    );
    const swapped = [
      change(employees, partition, one, { ...one, email: other.email }),
      change(employees, partition, other, { ...other, email: one.email }),
    ];
    expect(() => commit(partition, swapped)).toThrow('same row');
  });

  test('that needs more than 100 rows is rejected', () => {
    const hire = (count: number) => {
      const partition: Partition = new Map();
      const people = Array.from({ length: count }, (_, index): Values => {
        const employeeId = String(index).padStart(6, '0');
        return {
          department: 'Sales',
          employeeId,
          email: `${index}@contoso.com`,
          firstName: 'F',
          lastName: `L${index}`,
        };
      });
      return commit(
        partition,
        people.map((values) => change(employees, partition, undefined, values)),
      );
    };
    // An entity, its copy and its list for each, and the count of the department.
    expect(hire(33).actions).toHaveLength(100);
    expect(() => hire(34)).toThrow(expect.objectContaining({ code: 'too-large' }));
  });

  test('for an entity that is still arriving is accepted only from its own move', () => {
    const one = { department: 'Sales', employeeId: '000001', email: 'a@contoso.com', firstName: 'F', lastName: 'Xu' };
    const system = { WriteId: 'w', Incarnation: 'operation', MovingFrom: '["Here","empid_000001"]' };
    const before = defineCodec.toSnapshot(
      employees,
      row('empid_000001', defineCodec.toProperties(employees, one, system)),
    );
    const theirs = {
      entity: employees,
      address: definePlaces.addressOf(employees, one),
      before,
      after: { ...one, firstName: 'G' },
    };
    expect(() => planPartition([theirs], new Map(), MARK)).toThrow('being moved');
    const own = { ...theirs, arrival: { incarnation: 'operation', movingFrom: system.MovingFrom, moves: [] } };
    expect(planPartition([own], new Map(), MARK).actions[0]?.action).toMatchObject({
      kind: 'replace',
      properties: { MovingFrom: system.MovingFrom },
    });
    const gone = { ...theirs, after: undefined };
    expect(() => planPartition([gone], new Map(), MARK)).toThrow('being moved');
    const undone = { ...own, after: undefined };
    expect(planPartition([undone], new Map(), MARK).actions[0]?.action.kind).toBe('replace');
  });

  test('keeps the incarnation of an entity', () => {
    const one = { department: 'Sales', employeeId: '000001', email: 'a@contoso.com', firstName: 'F', lastName: 'Xu' };
    const before = row(
      'empid_000001',
      defineCodec.toProperties(employees, one, { WriteId: 'w', Incarnation: 'life', DenormalizedTo: '' }),
    );
    const plan = planPartition(
      [
        {
          entity: employees,
          address: definePlaces.addressOf(employees, one),
          before: defineCodec.toSnapshot(employees, before),
          after: { ...one, firstName: 'G' },
        },
      ],
      new Map(),
      MARK,
    );
    expect(plan.actions[0]?.action).toMatchObject({
      kind: 'replace',
      properties: { Incarnation: 'life', WriteId: 'write', firstName: 'G' },
    });
  });
});
