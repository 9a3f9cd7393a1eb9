import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  between,
  defineClaims,
  defineEntity,
  defineModel,
  defineOperation,
  interPartitionIndex,
  memberOf,
  oneOf,
  own,
  startsWith,
  subject,
} from '../../../../lib/index.ts';
import { openApp } from '../../../open-app.ts';

/** What the role of requests without a token cannot have. Each test names one reason, and the same model without it is accepted. */

type Limit = {
  readonly role: string;
  readonly entity?: string;
  readonly operation?: string;
  readonly action?: 'create' | 'write' | 'read' | 'update' | 'delete';
  readonly requests: number;
  readonly per: 'hour';
};

const claims = defineClaims({ team: { verifiedBy: {} } });
const members = defineEntity('members', {
  schema: z.object({ teamId: z.string(), userId: z.string() }),
  table: 'members',
  key: { partition: '{teamId}', row: '{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{teamId}' }) },
  access: { read: ['operator'], write: ['operator'] },
});
const people = defineEntity('people', {
  schema: z.object({ personId: z.string(), email: z.string() }),
  table: 'people',
  key: { partition: '{personId}', row: 'person' },
  indexes: { email: interPartitionIndex({ table: 'peoplebyemail', partition: '{email}', row: 'x', unique: true }) },
  access: { read: ['user'], write: ['operator'], own: { claim: 'oid', index: 'email' } },
});
const things = (access: object, more: object = {}) =>
  defineEntity('things', {
    schema: z.object({ thingId: z.string(), ownerId: z.string(), kind: z.string(), secret: z.string().optional() }),
    table: 'things',
    key: { partition: '{ownerId}', row: '{thingId}' },
    indexes: {
      ownerId: interPartitionIndex({ table: 'thingsbyowner', partition: '{kind}', row: '{ownerId}', unique: true }),
    },
    ...more,
    access: access as never,
  });

const ALL: Limit = { role: 'visitor', requests: 9, per: 'hour' };

function declare(access: object, { limits = [ALL], anyone = 'visitor', more = {}, operations = [] as never[] } = {}) {
  return defineModel({
    roles: ['visitor', 'user', 'operator'],
    operatorRole: 'operator',
    ...(anyone === '' ? {} : { anyone: anyone as 'visitor' }),
    limits: limits as never,
    entities: [members, people, things(access, more)],
    operations,
  });
}

describe('rejects a rule that compares with', () => {
  const terms = [
    ['the subject', 'ownerId', subject()],
    ['a claim', 'ownerId', claims.team],
    ['the own entity', 'ownerId', own(people, 'personId')],
    ['a membership', 'ownerId', memberOf(members, 'teamId')],
  ] as const;
  const rules = ['read', 'create', 'update', 'delete'] as const;
  const accessOf = (action: (typeof rules)[number], rule: object[]) =>
    action === 'read' ? { read: rule, write: [] } : { read: ['user'], write: { [action]: rule } };

  test.each(rules.flatMap((action) => terms.map(([is, field, term]) => [is, action, field, term] as const)))(
    '%s, to %s',
    (is, action, field, term) => {
      const rule = { role: 'visitor', where: { [field]: term }, lists: 'filtered' };
      const found = `the rule to ${action} of the role "visitor" compares "${field}" with ${is} of the caller, and a request without a token has none.`;
      expect(() => declare(accessOf(action, [rule]))).toThrow(found);
      expect(() => declare(accessOf(action, [{ ...rule, role: 'user' }]))).not.toThrow();
      expect(() => declare(accessOf(action, [rule]), { anyone: '', limits: [] })).not.toThrow();
    },
  );

  test.each(terms)('%s, to read a restricted field', (is, field, term) => {
    const access = (role: string) => ({
      read: ['visitor', 'user'],
      write: [],
      restricted: { secret: [{ role, where: { [field]: term } }] },
    });
    expect(() => declare(access('visitor'))).toThrow(
      `the rule to read "secret" of the role "visitor" compares "${field}" with ${is} of the caller`,
    );
    expect(() => declare(access('user'))).not.toThrow();
  });
});

test('accepts rules that compare with values', () => {
  for (const term of ['x', oneOf('x', 'y'), startsWith('x'), between('a', 'b')])
    expect(() =>
      declare({ read: [{ role: 'visitor', where: { kind: term }, lists: 'filtered' }], write: [] }),
    ).not.toThrow();
});

test('rejects access.set for what it creates', () => {
  const access = (role: string, action: string) => ({
    read: ['user'],
    write: { create: ['user'], [action]: ['user', role] },
    set: { ownerId: subject() },
  });
  expect(() => declare(access('visitor', 'create'))).toThrow(
    'access.set takes "ownerId" from the caller, and the role "visitor" of anyone has no identity.',
  );
  expect(() => declare(access('visitor', 'delete'))).not.toThrow();
  expect(() => declare(access('operator', 'create'))).not.toThrow();
});

test('rejects access.own of rows that it may read, with which grants come', () => {
  const access = (...read: string[]) => ({ read, write: [], own: { claim: 'oid', index: 'ownerId' } });
  const more = {
    indexes: {
      ownerId: interPartitionIndex({ table: 'thingsbyowner', partition: '{ownerId}', row: 'x', unique: true }),
    },
  };
  expect(() => declare(access('user', 'visitor'), { more })).toThrow(
    'access.own gives each caller who may read it a row of its own and grants, and the role "visitor" of anyone has no identity.',
  );
  expect(() => declare(access('user'), { more })).not.toThrow();
});

describe('rejects writes without a limit', () => {
  const limitsOf = (over: Partial<Limit>) => [{ ...ALL, ...over }];
  const insufficient = [
    [],
    limitsOf({ role: 'user' }),
    limitsOf({ entity: 'people' }),
    limitsOf({ action: 'read' }),
    limitsOf({ entity: 'things', action: 'read' }),
  ];

  test.each(['create', 'update', 'delete'] as const)('to %s', (action) => {
    const access = { read: ['user'], write: { [action]: ['visitor'] } };
    const other = action === 'create' ? 'update' : 'create';
    for (const limits of [...insufficient, limitsOf({ entity: 'things', action: other })])
      expect(() => declare(access, { limits })).toThrow(
        `Entity "things": the role "visitor" of anyone may ${action} any number of rows. Add to limits: { role: 'visitor', entity: 'things', action: '${action}'`,
      );
    for (const over of [
      {},
      { entity: 'things' },
      { action },
      { action: 'write' as const },
      { entity: 'things', action },
    ])
      expect(() => declare(access, { limits: limitsOf(over) })).not.toThrow();
  });

  test('to delete what is archived, which the limit of the entity does not count', () => {
    const access = { read: ['user'], write: { delete: ['visitor'] } };
    const more = { archive: { table: 'oldthings' } };
    expect(() => declare(access, { more, limits: limitsOf({ entity: 'things' }) })).toThrow(
      "may delete any number of rows. Add to limits: { role: 'visitor', action: 'delete'",
    );
    expect(() => declare(access, { more, limits: limitsOf({ action: 'delete' }) })).not.toThrow();
  });

  test('by one rule for all writes, and not those of other roles', () => {
    const message = (action: string) => `may ${action} any number of rows`;
    for (const action of ['create', 'update', 'delete'])
      expect(() => declare({ read: ['visitor'], write: ['visitor'] }, { limits: [] })).toThrow(message(action));
    expect(() => declare({ read: ['visitor'], write: ['user'] }, { limits: [] })).not.toThrow();
  });

  const operation = (kind: 'read' | 'write', role: string) =>
    [
      defineOperation('send', { summary: 'Sends', kind, roles: [role], input: z.strictObject({}), output: z.string() }),
    ] as never[];

  test('of an operation', () => {
    const access = { read: ['visitor'], write: [] };
    for (const limits of [[], limitsOf({ entity: 'things' }), limitsOf({ action: 'create' })])
      expect(() => declare(access, { limits, operations: operation('write', 'visitor') })).toThrow(
        'Operation "send": the role "visitor" of anyone may call it any number of times. Add to limits: { role: \'visitor\', operation: \'send\'',
      );
    for (const limits of [[ALL], limitsOf({ operation: 'send' }), limitsOf({ action: 'write' })])
      expect(() => declare(access, { limits, operations: operation('write', 'visitor') })).not.toThrow();
    expect(() => declare(access, { limits: [], operations: operation('read', 'visitor') })).not.toThrow();
    expect(() => declare(access, { limits: [], operations: operation('write', 'user') })).not.toThrow();
  });

  test('of a function of the app', () => {
    const open = (limits: readonly Limit[]) =>
      openApp(import.meta.url, declare({ read: ['visitor'], write: [] }, { limits: [...limits] }));
    const create = (limits: readonly Limit[], roles: readonly string[]) => () =>
      open(limits).handler({ roles }, () => ({}));
    expect(create([], ['user', 'visitor'])).toThrow('may call the function any number of times');
    expect(create(limitsOf({ entity: 'things' }), ['visitor'])).toThrow('may call the function any number of times');
    expect(create([ALL], ['visitor'])).not.toThrow();
    expect(create([], ['user'])).not.toThrow();
  });
});
