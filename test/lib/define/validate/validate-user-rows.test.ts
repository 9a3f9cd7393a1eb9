import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type DeclaredEntity,
  defineEntity,
  defineModel,
  defineSeries,
  interPartitionIndex,
  memberOf,
  subject,
} from '../../../../lib/index.ts';

/** What ofUser must name, and what it cannot. Each test names one reason, and the same model without it is accepted. */

const byOwner = interPartitionIndex({ table: 'thingsbyowner', partition: '{ownerId}', row: '{shelf}_{thingId}' });
const things = (ofUser: object | undefined, more: object = {}) =>
  defineEntity('things', {
    schema: z.object({
      shelf: z.string(),
      thingId: z.string(),
      ownerId: z.string(),
      code: z.string().toLowerCase(),
      size: z.int().optional(),
      secret: z.string().optional(),
      sum: z.string().optional(),
    }),
    table: 'things',
    key: { partition: '{shelf}', row: 'thing_{thingId}' },
    indexes: { ownerId: byOwner },
    derived: { sum: () => 'x' },
    attachments: { photo: { container: 'photos', maxBytes: 1_000, types: ['image/png'] } },
    ...(ofUser ? { ofUser } : {}),
    access: { read: ['user'], write: ['user'] },
    ...more,
  } as never) as unknown as DeclaredEntity;
const declare = (...entities: DeclaredEntity[]) =>
  defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities });

test('accepts a field whose rows a list has', () => {
  for (const erasing of ['delete', 'keep', { ownerId: 'nobody', size: null, photo: null }])
    expect(() => declare(things({ ownerId: erasing }))).not.toThrow();
  const key = { partition: '{ownerId}', row: '{thingId}' };
  expect(() => declare(things({ ownerId: 'delete' }, { key, indexes: {} }))).not.toThrow();
});

test.each([
  [
    'a field without a list',
    { ownerId: 'delete' },
    { indexes: {} },
    'no list has the rows of one user alone. Add an index: ownerId: interPartitionIndex',
  ],
  [
    'a list of some rows',
    { ownerId: 'delete' },
    { indexes: { ownerId: { ...byOwner, when: () => true } } },
    'no list has',
  ],
  [
    'a bucket of several users',
    { ownerId: 'keep' },
    {
      indexes: {
        ownerId: interPartitionIndex({
          table: 'thingbuckets',
          partition: '{ownerId#}',
          row: '{ownerId}_{shelf}_{thingId}',
        }),
      },
    },
    'no list has',
  ],
  [
    'a field that the schema does not have',
    { owner: 'delete' },
    {},
    'ofUser names "owner", which the schema does not have',
  ],
  ['a field that changes its values', { code: 'delete' }, {}, 'may store two subjects as one value'],
  ['a number', { size: 'delete' }, {}, 'may store two subjects as one value'],
  [
    'an archive without the list',
    { ownerId: 'delete' },
    { archive: { table: 'oldthings' } },
    'Entity "oldthings": ofUser names "ownerId", and an archive has no indexes to find the rows of a user. Leave the field out of the archive: without: [\'ownerId\']',
  ],
  [
    'values that leave the subject',
    { ownerId: { size: 1 } },
    {},
    'and leaves the subject there. Set "ownerId" to another value',
  ],
  [
    'a value of another type',
    { ownerId: { ownerId: 'x', size: 'y' } },
    {},
    'sets "size" to "y", which its schema does not accept',
  ],
  [
    'no value for a required field',
    { ownerId: { ownerId: null } },
    {},
    'sets "ownerId" to null, which its schema does not accept',
  ],
  ['a value of a key field', { ownerId: { ownerId: 'x', shelf: 'y' } }, {}, 'sets "shelf", which is in the key'],
  ['a value of a derived field', { ownerId: { ownerId: 'x', sum: 'y' } }, {}, 'sets "sum", which callers cannot write'],
  [
    'a value of an encrypted field',
    { ownerId: { ownerId: 'x', secret: 'y' } },
    { encrypted: ['secret'], access: { read: ['user'], write: ['user'], restricted: { secret: ['user'] } } },
    'sets "secret", which is encrypted',
  ],
  ['a value of a file', { ownerId: { ownerId: 'x', photo: 'y' } }, {}, 'sets "photo", which is a file. Set it to null'],
  ['a value of no field', { ownerId: { ownerId: 'x', width: 1 } }, {}, 'sets "width", which the schema does not have'],
] as const)('rejects %s', (_, ofUser, more, message) => {
  expect(() => declare(things(ofUser, more))).toThrow(message);
});

test('proposes a table of its own for each entity of a table', () => {
  const bare = (name: string) =>
    defineEntity(name, {
      schema: z.object({ shelf: z.string(), thingId: z.string(), ownerId: z.string() }),
      table: 'things',
      key: { partition: '{shelf}', row: `${name}_{thingId}` },
      ofUser: { ownerId: 'delete' },
      access: { read: ['user'], write: ['user'] },
    });
  expect(() => declare(bare('books'), bare('tools'))).toThrow(/'booksbyownerid'.*'toolsbyownerid'/s);
});

test('rejects what is neither of the words nor values', () => {
  expect(() => declare(things({ ownerId: 'erase' }))).toThrow('needs "delete", "keep" or the values to set');
});

test('accepts an archive without the field', () => {
  const archive = { table: 'oldthings', without: ['ownerId'] };
  expect(() => declare(things({ ownerId: 'delete' }, { archive }))).not.toThrow();
});

test('rejects a change of a series, which has its key alone', () => {
  const counts = (erasing: unknown) =>
    defineSeries('steps', {
      schema: z.object({ ownerId: z.string(), day: z.iso.date() }),
      table: 'steps',
      key: { partition: '{ownerId}', row: '{day}' },
      slots: { name: 'hour', first: 0, last: 23 },
      ofUser: { ownerId: erasing } as never,
      access: { read: ['user'], write: ['user'] },
    }) as unknown as DeclaredEntity;
  expect(() => declare(counts({ ownerId: 'nobody' }))).toThrow('a data series has its key alone');
  expect(() => declare(counts('delete'))).not.toThrow();
});

describe('once an entity has ofUser, each field that is taken for the subject needs it', () => {
  const members = (ofUser: { readonly userId?: 'delete' }) =>
    defineEntity('members', {
      schema: z.object({ shelf: z.string(), userId: z.string() }),
      table: 'members',
      key: { partition: '{shelf}', row: '{userId}' },
      indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{shelf}' }) },
      ofUser,
      access: { read: ['user'], write: ['user'] },
    });
  const other = defineEntity('others', {
    schema: z.object({ userId: z.string() }),
    table: 'others',
    key: { partition: '{userId}', row: 'other' },
    ofUser: { userId: 'delete' },
    access: { read: ['user'], write: ['user'] },
  });
  const rule = [{ role: 'user', where: { ownerId: subject() } }];
  const all = ['user'];
  const message = 'Entity "things": its rules take "ownerId" for the subject of a user, and ofUser does not say';

  test.each([
    ['a rule to read', { read: rule, write: all }],
    ['a rule to update', { read: all, write: { update: rule } }],
    ['a pair of rules', { read: all, write: { update: { before: rule, after: all } } }],
    ['a rule for a restricted field', { read: all, write: [], restricted: { size: rule } }],
    ['a field that is set', { read: all, write: all, set: { ownerId: subject() } }],
    ['the own row', { read: all, write: all, own: { claim: 'sub', index: 'one' } }],
  ])('%s', (_, access) => {
    const indexes = {
      ownerId: byOwner,
      one: interPartitionIndex({ table: 'thingofone', partition: '{ownerId}', row: 'one', unique: true }),
    };
    const more = { access, indexes };
    expect(() => declare(things(undefined, more), other)).toThrow(message);
    expect(() => declare(things({ ownerId: 'keep' }, more), other)).not.toThrow();
    expect(() => declare(things(undefined, more))).not.toThrow();
  });

  test('a membership', () => {
    const of = (ofUser: { readonly userId?: 'delete' }) => {
      const member = members(ofUser);
      return [
        things(undefined, {
          access: { read: [{ role: 'user', where: { shelf: memberOf(member, 'shelf') } }], write: [] },
        }),
        member,
        other,
      ];
    };
    expect(() => declare(...(of({}) as DeclaredEntity[]))).toThrow(
      'Entity "members": its rules take "userId" for the subject',
    );
    expect(() => declare(...(of({ userId: 'delete' }) as DeclaredEntity[]))).not.toThrow();
  });
});
