import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
  type Values,
} from '../../lib/index.ts';
import { costOf } from '../cost-of.ts';
import { expectRetried, outcomeOf, tryFaults, tryInterruptions, UNANSWERED_INSERT } from '../fault-driver.ts';
import { faultyHttpClient } from '../faulty-http-client.ts';
import { linkedEntities } from '../fixtures/deploy.ts';
import { type Engine, engineRead, engineWrite } from '../kit/engine.ts';
import type { Internal } from '../kit/internal.ts';
import { sampleRuns } from '../points.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../world.ts';

/** A transaction of actions on entities of several declarations, which share a table and a partition. */

const access = { read: ['user'], write: ['user'] };
const table = 'clubs';
const text = z.string();
const expenseId = z.string().regex(/^[0-9a-z]+$/);

const declaredGuests = defineEntity('guests', {
  schema: z.object({
    club: text,
    userId: text,
    name: text,
    email: text,
    badge: text.optional(),
    team: text.optional(),
  }),
  table,
  key: { partition: '{club}', row: 'member_{userId}' },
  indexes: {
    email: interPartitionIndex({ table: 'clubsbyemail', partition: '{email}', row: 'email', unique: true }),
    badge: intraPartitionIndex({ row: 'badge_{badge}' }),
    team: indexEntity({ row: 'team_{team}', holds: '{userId}' }),
  },
  access,
});
const declaredClubs = defineEntity('clubs', {
  schema: z.object({
    club: text,
    title: text,
    leadId: text.optional(),
    leadName: text.optional(),
    memberCount: z.int32().optional(),
  }),
  table,
  key: { partition: '{club}', row: 'club' },
  counts: { memberCount: declaredGuests },
  denormalized: { leadId: { source: declaredGuests, by: 'userId', copies: { leadName: ({ name }: Values) => name } } },
  indexes: {
    title: interPartitionIndex({ table: 'clubsbytitle', partition: '{title}', row: '{club}', copies: 'keys' }),
  },
  access,
});
const declaredBills = defineEntity('bills', {
  schema: z.object({ club: text, expenseId, paidBy: text.optional(), amount: z.int32(), team: text.optional() }),
  table,
  key: { partition: '{club}', row: 'expense_{expenseId}' },
  indexes: {
    paidBy: intraPartitionIndex({ row: 'paidby_{paidBy}_{expenseId}', copies: 'keys' }),
    amount: interPartitionIndex({ table: 'clubexpenses', partition: '{amount:9}', row: '{club}_{expenseId}' }),
    team: indexEntity({ row: 'expensesof_{team}', holds: '{expenseId}' }),
  },
  totals: { perClub: total({ table: 'clubtotals', partition: '{club}', row: 'all', sum: ['amount'] }) },
  references: { paidBy: { to: declaredGuests, onDelete: 'refuse' } },
  access,
});
const declaredReceipts = defineEntity('receipts', {
  schema: z.object({ club: text, expenseId, receiptId: text, note: text.optional() }),
  table,
  key: { partition: '{club}', row: 'expense_{expenseId}_{receiptId}' },
  childOf: declaredBills,
  access,
});
/** One row: written without a read. */
const declaredBalances = defineEntity('balances', {
  schema: z.object({ club: text, of: text, amount: z.number().optional() }),
  table,
  key: { partition: '{club}', row: 'balance_{of}' },
  access,
});
/** Half of its key is generated. */
const declaredVisits = defineEntity('visits', {
  schema: z.object({ club: text, visitId: z.uuid().default(() => randomUUID()), by: text }),
  table,
  key: { partition: '{club}', row: 'visit_{visitId}' },
  access,
});

const model = defineModel({
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  entities: [declaredGuests, declaredClubs, declaredBills, declaredReceipts, declaredBalances, declaredVisits],
});
const entities = linkedEntities(model);
const { guests, clubs, bills } = entities;
const all = Object.values(entities);

const world = await openWorld(import.meta.url, all);

let counter = 0;
function newClub(): string {
  counter += 1;
  return `club${counter}x`;
}

type Name = keyof typeof entities;
type Given = readonly [name: Name, action: Internal['BatchAction']];
const toActions = (given: readonly Given[]) =>
  given.map(([name, action]): Internal['TransactionAction'] => ({ entity: entities[name], action }));
const run = (engine: Engine, given: readonly Given[]) => engineWrite.transact(engine, toActions(given));
const now = (...given: readonly Given[]) => run(world.engine, given);
const member = (club: string, userId: string, more: Values = {}) => ({
  club,
  userId,
  name: `Name ${userId}`,
  email: `${userId}@${club}`,
  ...more,
});
const valuesOf = async (name: Name, key: Values) =>
  (await engineRead.readEntity(world.engine, entities[name], key)).values;

/** The entities of a partition, without what differs between partitions. */
async function stateOf(club: string): Promise<unknown> {
  const lists = await Promise.all(
    all.map(
      async (entity) =>
        [entity.name, (await engineRead.readEntities(world.engine, entity, { club }, { top: 100 })).items] as const,
    ),
  );
  return JSON.parse(JSON.stringify(Object.fromEntries(lists)).replaceAll(club, 'CLUB'));
}

async function expectAgreement(): Promise<void> {
  await world.settle();
  for (const entity of all) await expectIndexesToAgree(world.storage, { ...entity, children: [] });
}

describe('a transaction over several entities', () => {
  test('is one storage transaction, with one intent for all index entries', async () => {
    const club = newClub();
    const actions: Given[] = [
      ['guests', { create: member(club, 'ann') }],
      ['bills', { create: { club, expenseId: '1', paidBy: 'ann', amount: 5 } }],
      ['balances', { put: { club, of: 'ann', amount: -5 } }],
    ];
    await now(...actions);
    expect(await stateOf(club)).toMatchObject({
      guests: [{ userId: 'ann' }],
      bills: [{ paidBy: 'ann', amount: 5 }],
      balances: [{ of: 'ann', amount: -5 }],
    });
    const before = await rowsOf(world.storage, table);
    expect(
      await costOf(() =>
        now(['balances', { put: { club, of: 'bob', amount: 1 } }], ['balances', { delete: { club, of: 'ann' } }]),
      ),
    ).toBe(1);
    expect((await rowsOf(world.storage, table)).length).toBe(before.length);
    await expectAgreement();
  });

  test('lets each action see the rows that the earlier ones leave', async () => {
    const club = newClub();
    await now(
      ['clubs', { create: { club, title: 'New' } }],
      ['guests', { create: member(club, 'ann', { team: 'red' }) }],
      ['guests', { create: member(club, 'bob', { team: 'red' }) }],
      ['clubs', { create: { club: `${club}`, title: 'x' } }],
    ).catch(() => undefined);
    await expect(valuesOf('clubs', { club })).rejects.toMatchObject({ code: 'not-found' });
    await now(
      ['guests', { create: member(club, 'ann', { team: 'red' }) }],
      ['clubs', { create: { club, title: 'New', leadId: 'ann' } }],
      ['guests', { create: member(club, 'bob', { team: 'red' }) }],
      ['bills', { create: { club, expenseId: '1', paidBy: 'bob', amount: 7, team: 'red' } }],
      ['receipts', { create: { club, expenseId: '1', receiptId: 'r' } }],
    );
    expect(await valuesOf('clubs', { club })).toMatchObject({ memberCount: 2, leadName: 'Name ann' });
    await now(
      ['guests', { patch: { club, userId: 'ann', name: 'Anna' } }],
      ['clubs', { patch: { club, title: 'Renamed' } }],
      ['guests', { create: member(club, 'cid') }],
    );
    expect(await valuesOf('clubs', { club })).toMatchObject({ memberCount: 3, leadName: 'Anna', title: 'Renamed' });
    await now(
      ['receipts', { delete: { club, expenseId: '1', receiptId: 'r' } }],
      ['bills', { delete: { club, expenseId: '1' } }],
      ['guests', { delete: { club, userId: 'bob' } }],
      ['clubs', { delete: { club } }],
    );
    expect(await stateOf(club)).toMatchObject({ guests: [{}, {}], bills: [], receipts: [], clubs: [] });
    await now(['clubs', { create: { club, title: 'Again' } }], ['guests', { delete: { club, userId: 'cid' } }]);
    expect(await valuesOf('clubs', { club })).toMatchObject({ memberCount: 1 });
    await expectAgreement();
  });

  test.each<[string, (club: string) => Given, string]>([
    ['a create of an entity that exists', (club) => ['guests', { create: member(club, 'ann') }], 'duplicate-key'],
    [
      'an email that a member has',
      (club) => ['guests', { create: member(club, 'eve', { email: `ann@${club}` }) }],
      'duplicate-value',
    ],
    [
      'an email that the same transaction takes',
      (club) => ['guests', { create: member(club, 'eve', { email: `new@${club}` }) }],
      'duplicate-value',
    ],
    [
      'a badge that a member has',
      (club) => ['guests', { create: member(club, 'eve', { badge: 'B1' }) }],
      'duplicate-value',
    ],
    ['a patch of nothing', (club) => ['bills', { patch: { club, expenseId: '9', amount: 1 } }], 'not-found'],
    [
      'a reference to nobody',
      (club) => ['bills', { create: { club, expenseId: '2', paidBy: 'zoe', amount: 1 } }],
      'invalid-input',
    ],
    [
      'a child without a parent',
      (club) => ['receipts', { create: { club, expenseId: '9', receiptId: 'r' } }],
      'invalid-input',
    ],
    ['a delete of a referred entity', (club) => ['guests', { delete: { club, userId: 'ann' } }], 'referenced'],
    ['another partition', (club) => ['balances', { put: { club: `${club}x`, of: 'a' } }], 'invalid-input'],
    ['an entity twice', (club) => ['balances', { patch: { club, of: 'new', amount: 1 } }], 'invalid-input'],
    ['an old ETag', (club) => ['clubs', { patch: { club, title: 'b' }, ifMatch: 'W/"old"' }], 'etag-mismatch'],
    ['an invalid value', (club) => ['clubs', { patch: { club, title: 5 } }], 'invalid-input'],
  ])('changes nothing after %s, and names the action', { tags: ['slow'] }, async (_, failing, code) => {
    const club = newClub();
    await now(
      ['guests', { create: member(club, 'ann', { badge: 'B1' }) }],
      ['clubs', { create: { club, title: 'a' } }],
      ['bills', { create: { club, expenseId: '1', paidBy: 'ann', amount: 1 } }],
    );
    const before = await rowsOf(world.storage, table);
    const error = await now(
      ['balances', { put: { club, of: 'new' } }],
      ['guests', { create: member(club, 'new') }],
      failing(club),
    ).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, message: expect.stringContaining('The action at 2') });
    expect(await rowsOf(world.storage, table)).toEqual(before);
    await expectAgreement();
  });

  test('rejects two entities that want the same value of an index in the partition', async () => {
    const club = newClub();
    const withBadge = (id: string): Given => ['guests', { create: member(club, id, { badge: 'B1' }) }];
    await expect(now(withBadge('ann'), withBadge('bob'))).rejects.toMatchObject({ code: 'duplicate-value' });
    expect(await stateOf(club)).toMatchObject({ guests: [] });
  });

  test('deletes an entity with what refers to it, and refers to nothing that it deletes', async () => {
    const club = newClub();
    await now(
      ['guests', { create: member(club, 'ann') }],
      ['bills', { create: { club, expenseId: '1', paidBy: 'ann', amount: 1 } }],
    );
    await expect(
      now(
        ['bills', { create: { club, expenseId: '2', paidBy: 'ann', amount: 1 } }],
        ['bills', { delete: { club, expenseId: '1' } }],
        ['guests', { delete: { club, userId: 'ann' } }],
      ),
    ).rejects.toMatchObject({ code: 'referenced' });
    await expect(
      now(
        ['bills', { delete: { club, expenseId: '1' } }],
        ['guests', { delete: { club, userId: 'ann' } }],
        ['bills', { create: { club, expenseId: '2', paidBy: 'ann', amount: 1 } }],
      ),
    ).rejects.toMatchObject({ code: 'invalid-input' });
    await now(['bills', { delete: { club, expenseId: '1' } }], ['guests', { delete: { club, userId: 'ann' } }]);
    expect(await stateOf(club)).toMatchObject({ bills: [], guests: [] });
  });

  test('reads what another process has left under the keys of new entities', async () => {
    const club = newClub();
    await now(['guests', { create: member(club, 'ann') }]);
    const other = world.engineThrough(faultyHttpClient(undefined, 0));
    const creates: Given[] = [
      ['guests', { create: member(club, 'bob') }],
      ['clubs', { create: { club, title: 'a' } }],
      ['bills', { create: { club, expenseId: '1', paidBy: 'ann', amount: 1 } }],
    ];
    expect(await outcomeOf(run(other, creates))).toBe('done');
    expect(await valuesOf('clubs', { club })).toMatchObject({ memberCount: 2 });
    await expectAgreement();
  });

  test('rejects more rows, or more bytes, than one transaction holds', async () => {
    const club = newClub();
    const puts = (count: number) =>
      Array.from({ length: count }, (_, at): Given => ['balances', { put: { club, of: `b${at}` } }]);
    // A member is one row, and the placeholder of the club another.
    await expect(now(...puts(99), ['guests', { create: member(club, 'ann') }])).rejects.toMatchObject({
      code: 'too-large',
    });
    await now(...puts(98), ['guests', { create: member(club, 'ann') }]);
    const long = '€'.repeat(30_000);
    const notes = Array.from(
      { length: 80 },
      (_, at): Given => ['guests', { create: member(club, `m${at}`, { name: long, badge: `${at}` }) }],
    );
    await expect(now(...notes.slice(0, 40), ['balances', { put: { club, of: 'c' } }])).rejects.toMatchObject({
      code: 'too-large',
    });
  });

  test('equals its actions one after the other', { tags: ['slow'], timeout: 1_800_000 }, async () => {
    const id = fc.constantFrom('1', '2', '3');
    const team = fc.option(fc.constantFrom('red', 'blue'), { nil: undefined });
    const lead = fc.option(id, { nil: undefined });
    const kind = fc.constantFrom('put', 'put', 'put', 'patch', 'delete', 'create');
    const given = (name: Name, fields: Parameters<typeof fc.record>[0]) =>
      fc.tuple(fc.constant(name), kind, fc.record<Values>(fields));
    const step = fc.oneof(
      given('guests', {
        userId: id,
        name: id,
        team,
        badge: fc.option(fc.constantFrom('A', 'B'), { nil: undefined }),
      }),
      given('clubs', { title: id, leadId: lead }),
      given('bills', { expenseId: id, paidBy: lead, amount: fc.constantFrom(1, 2), team }),
      given('receipts', { expenseId: id, receiptId: id }),
      given('balances', { of: id, amount: fc.constantFrom(1, 2) }),
    );
    const steps = fc.uniqueArray(step, {
      minLength: 2,
      maxLength: 6,
      selector: ([name, , { userId, expenseId: of, receiptId }]) => JSON.stringify([name, userId, of, receiptId]),
    });
    const first = fc.subarray<readonly [Name, string, Values]>([
      ['guests', 'create', { userId: '1', name: '1', team: 'red' }],
      ['guests', 'create', { userId: '2', name: '2', team: 'red', badge: 'A' }],
      ['guests', 'create', { userId: '3', name: '3' }],
      ['clubs', 'create', { title: '1', leadId: '1' }],
      ['bills', 'create', { expenseId: '1', paidBy: '1', amount: 1, team: 'red' }],
      ['bills', 'create', { expenseId: '2', amount: 2, team: 'red' }],
      ['receipts', 'create', { expenseId: '1', receiptId: '1' }],
      ['balances', 'create', { of: '1', amount: 1 }],
    ]);
    const toGiven = (club: string, [name, kind, fields]: readonly [Name, string, Values]): Given => {
      const given = Object.fromEntries(Object.entries({ club, ...fields }).filter(([, value]) => value !== undefined));
      const values = name === 'guests' ? { email: `${given.userId}@${club}`, ...given } : given;
      const key = Object.fromEntries(entities[name].keyFields.map((field) => [field, values[field]]));
      return [name, { [kind]: kind === 'delete' ? key : values } as unknown as Internal['BatchAction']];
    };
    /** Most steps are possible: nothing is created twice, and only what exists is patched or deleted. */
    const toPossible = async (club: string, [name, asked, fields]: readonly [Name, string, Values]) => {
      const exists = await valuesOf(name, { club, ...fields }).then(
        () => true,
        () => false,
      );
      return [name, exists === (asked !== 'create') ? asked : 'put', fields] as const;
    };
    const apply = async ([name, action]: Given) => {
      const entity = entities[name];
      const { engine } = world;
      if ('create' in action) return engineWrite.createEntity(engine, entity, action.create);
      if ('put' in action) return engineWrite.putEntity(engine, entity, Object(action.put), action.put);
      if ('patch' in action) return engineWrite.patchEntity(engine, entity, Object(action.patch), action.patch);
      return engineWrite.deleteEntity(engine, entity, Object(action.delete));
    };
    const tried = { done: 0, failed: 0 };
    await fc.assert(
      fc.asyncProperty(first, steps, fc.boolean(), async (before, asked, isRemembered) => {
        const engine = isRemembered ? world.engine : world.engineThrough(faultyHttpClient(undefined, 0));
        const [together, apart] = [newClub(), newClub()];
        for (const club of [together, apart])
          for (const one of before) await apply(toGiven(club, one)).catch(() => undefined);
        const possible = await Promise.all(asked.map((one) => toPossible(apart, one)));
        const unchanged = await stateOf(together);
        expect(await stateOf(apart)).toEqual(unchanged);
        const outcome = await outcomeOf(
          run(
            engine,
            possible.map((one) => toGiven(together, one)),
          ),
        );
        const codes: string[] = [];
        for (const one of possible) codes.push(await outcomeOf(apply(toGiven(apart, one))));
        const isPossible = codes.every((code) => code === 'done');
        tried[outcome === 'done' ? 'done' : 'failed'] += 1;
        if (outcome !== 'done') {
          expect(await stateOf(together)).toEqual(unchanged);
          // An entity, a row or a unique value can change only once.
          if (isPossible) expect(['invalid-input', 'duplicate-value']).toContain(outcome);
        } else if (isPossible) expect(await stateOf(together)).toEqual(await stateOf(apart));
        // The transaction may delete what refers to an entity after the entity.
        else expect(codes).toContain('referenced');
      }),
      sampleRuns(300),
    );
    expect(tried.done).toBeGreaterThan(0);
    await expectAgreement();
  });
});

describe('a transaction that may be repeated', () => {
  const repeat = (ids: readonly string[], ...given: readonly Given[]) =>
    engineWrite.transactOnce(world.engine, toActions(given), ids);

  test('is executed once, also if it generates keys, and returns the keys again', async () => {
    const club = newClub();
    const ids = Array.from({ length: 4 }, () => randomUUID());
    await now(['guests', { create: member(club, 'old') }]);
    const actions: Given[] = [
      ['visits', { create: { club, by: 'ann' } }],
      ['guests', { create: member(club, 'ann') }],
      ['guests', { delete: { club, userId: 'old' } }],
      ['balances', { put: { club, of: 'ann', amount: 1 } }],
    ];
    const first = await repeat(ids, ...actions);
    expect(first.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'deleted', 'stored']);
    const before = await rowsOf(world.storage, table);
    expect(await repeat(ids, ...actions)).toEqual(first);
    expect(await rowsOf(world.storage, table)).toEqual(before);
    const others = Array.from({ length: 4 }, () => randomUUID());
    await expect(repeat(others, ...actions)).rejects.toMatchObject({ code: 'not-found' });
    expect(await rowsOf(world.storage, table)).toEqual(before);
  });

  test('says which action is not valid', async () => {
    const club = newClub();
    const ids = [randomUUID(), randomUUID()];
    const invalid = repeat(ids, ['visits', { create: { club, by: 'ann' } }], ['clubs', { create: { club } }]);
    await expect(invalid).rejects.toThrow('The action at 1: "title"');
    expect(await stateOf(club)).toMatchObject({ visits: [] });
  });

  test('is executed once by concurrent attempts', { tags: ['slow'] }, async () => {
    const club = newClub();
    const ids = [randomUUID(), randomUUID()];
    const attempt = () =>
      repeat(ids, ['visits', { create: { club, by: 'ann' } }], ['guests', { create: member(club, 'ann') }]);
    const done = await Promise.all([attempt(), attempt(), attempt()]);
    expect(done).toEqual([done[0], done[0], done[0]]);
    expect(await stateOf(club)).toMatchObject({ guests: [{}], visits: [{}] });
    await expectAgreement();
  });
});

describe('a transaction beside other writers', () => {
  test('puts what another one puts at the same time', async () => {
    const club = newClub();
    const puts = Array.from({ length: 4 }, (_, at) =>
      now(['clubs', { put: { club, title: `${at}` } }], ['balances', { put: { club, of: `${at}` } }]),
    );
    await Promise.all(puts);
    expect(await stateOf(club)).toMatchObject({ clubs: [{}], balances: [{}, {}, {}, {}] });
  });

  test('counts and adds up whatever its rivals do', { tags: ['slow'] }, async () => {
    const club = newClub();
    await engineWrite.createEntity(world.engine, clubs, { club, title: 'a' });
    const patient = {
      ...world.engine,
      now: (
        (at) => () =>
          at
      )(Date.now()),
    };
    const each = Array.from({ length: 8 }, (_, at) =>
      run(patient, [
        ['guests', { create: member(club, `m${at}`, { team: 'red' }) }],
        ['bills', { create: { club, expenseId: `e${at}`, paidBy: `m${at}`, amount: 2, team: 'red' } }],
      ]),
    );
    const others = Array.from({ length: 4 }, (_, at) =>
      engineWrite.createEntity(patient, guests, member(club, `n${at}`)),
    );
    await Promise.all([...each, ...others]);
    expect(await valuesOf('clubs', { club })).toMatchObject({ memberCount: 12 });
    await expectAgreement();
  });

  test('gives a unique value to one of two transactions', { tags: ['slow'] }, async () => {
    const club = newClub();
    const email = `both@${club}`;
    const outcomes = await Promise.all([
      outcomeOf(now(['guests', { create: member(club, '1', { email }) }], ['balances', { put: { club, of: '1' } }])),
      outcomeOf(now(['guests', { create: member(club, '2', { email }) }], ['balances', { put: { club, of: '2' } }])),
    ]);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(1);
    expect(await stateOf(club)).toMatchObject({ balances: [{}] });
    await expectAgreement();
  });

  test('meets a change of one of its entities at any storage call', { tags: ['slow'] }, async () => {
    const set = async () => {
      const club = newClub();
      await now(
        ['clubs', { create: { club, title: 'a' } }],
        ['guests', { create: member(club, 'ann') }],
        ['bills', { create: { club, expenseId: '1', paidBy: 'ann', amount: 1 } }],
      );
      let rivals = 0;
      return {
        act: (through: Engine) =>
          run(through, [
            ['guests', { create: member(club, 'bob') }],
            ['clubs', { patch: { club, title: 'b', leadId: 'bob' } }],
            ['bills', { patch: { club, expenseId: '1', paidBy: 'bob' } }],
          ]),
        interrupt: async () => {
          rivals += 1;
          await engineWrite.createEntity(world.engine, guests, member(club, `rival${rivals}`));
          await engineWrite.patchEntity(world.engine, bills, { club, expenseId: '1' }, { amount: 9 });
        },
        check: async (label: string) => {
          expect(await stateOf(club), label).toMatchObject({
            clubs: [{ title: 'b', leadName: 'Name bob', memberCount: 2 + rivals }],
            bills: [{ paidBy: 'bob', amount: 9 }],
          });
        },
      };
    };
    await tryInterruptions(world, set, { what: 'Transaction over entities, a change at each storage call', size: 4 });
    await expectAgreement();
  });
});

describe('any fault at any call', () => {
  test('of a transaction over several entities leaves it done completely or not at all, and the indexes agree', {
    tags: ['slow'],
  }, async () => {
    await tryFaults(
      async (trial) => {
        const { client, timing, label } = trial;
        const club = newClub();
        await now(
          ['guests', { create: member(club, 'ann', { badge: 'B1', team: 'red' }) }],
          ['guests', { create: member(club, 'old') }],
          ['clubs', { create: { club, title: 'a', leadId: 'ann' } }],
          ['bills', { create: { club, expenseId: '1', paidBy: 'ann', amount: 1 } }],
          ['receipts', { create: { club, expenseId: '1', receiptId: 'r' } }],
        );
        const before = await stateOf(club);
        const outcome = await outcomeOf(
          run(world.engineThrough(client, timing), [
            ['guests', { create: member(club, 'bob', { team: 'red' }) }],
            ['clubs', { patch: { club, leadId: 'bob' } }],
            ['guests', { patch: { club, userId: 'ann', badge: 'B2', team: 'blue' } }],
            ['bills', { create: { club, expenseId: '2', paidBy: 'bob', amount: 3, team: 'red' } }],
            ['receipts', { create: { club, expenseId: '2', receiptId: 'r' } }],
            ['receipts', { delete: { club, expenseId: '1', receiptId: 'r' } }],
            ['guests', { delete: { club, userId: 'old' } }],
            ['balances', { put: { club, of: 'bob', amount: -3 } }],
          ]),
        );
        const state = await stateOf(club);
        const after = {
          clubs: [{ leadName: 'Name bob', memberCount: 2 }],
          guests: [{ badge: 'B2' }, { userId: 'bob' }],
          bills: [{ amount: 1 }, { paidBy: 'bob' }],
          receipts: [{ expenseId: '2' }],
          balances: [{ amount: -3 }],
        };
        expectRetried(trial, outcome, UNANSWERED_INSERT);
        const isDone = (state as { balances: unknown[] }).balances.length > 0;
        if (outcome === 'done') expect(isDone, label).toBe(true);
        if (isDone) expect(state, label).toMatchObject(after);
        else expect(state, label).toEqual(before);
      },
      { what: ({ fault }) => `Transaction over entities, each storage call: ${fault}`, size: 3, concurrency: 4 },
    );
    await expectAgreement();
  });
});
