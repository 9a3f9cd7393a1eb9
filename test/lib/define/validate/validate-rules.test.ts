import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  between,
  type Declaration,
  type DeclaredEntity,
  defineClaims,
  defineModel,
  interPartitionIndex,
  memberOf,
  oneOf,
  own,
  startsWith,
  subject,
} from '../../../../lib/index.ts';
import { modelParts } from '../../../kit/define.ts';

const members = (over: Partial<Declaration> = {}) =>
  modelParts.compileEntity('members', {
    schema: z.object({ groupId: z.string(), userId: z.string(), role: z.enum(['admin', 'member']) }),
    table: 'members',
    key: { partition: '{groupId}', row: '{userId}' },
    indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{groupId}' }) },
    access: { read: ['user'], write: [] },
    ...over,
  });

const notes = (access: Declaration['access'], over: Partial<Declaration> = {}) =>
  modelParts.compileEntity('notes', {
    schema: z.object({
      groupId: z.string(),
      noteId: z.string(),
      owner: z.string(),
      alias: z.string().toLowerCase(),
      seenAt: z.iso.datetime(),
      state: z.enum(['draft', 'final']),
      size: z.int32(),
      isOpen: z.boolean(),
      tags: z.array(z.string()),
    }),
    table: 'notes',
    key: { partition: '{groupId}', row: '{noteId}' },
    access,
    ...over,
  });

const model =
  (...entities: DeclaredEntity[]) =>
  () =>
    defineModel({ roles: ['user', 'admin'], operatorRole: 'admin', entities });
const read = (where: Record<string, unknown>, more: object = {}) =>
  ({ read: [{ role: 'user', where, ...more }], write: [] }) as unknown as Declaration['access'];
const inGroup = { groupId: 'g' };

test.each<[string, Declaration['access'], RegExp, Partial<Declaration>?]>([
  [
    'a field from the caller that may store two subjects as one',
    { read: ['user'], write: [], set: { alias: subject() } },
    /access\.set names "alias", whose schema may store two subjects as one value/,
  ],
  [
    'a field from the caller that the schema does not have',
    { read: ['user'], write: [], set: { ownr: subject() } },
    /access\.set names "ownr", which the schema does not have/,
  ],
  [
    'a field from the caller that a move changes',
    { read: ['user'], write: [], set: { groupId: subject() } },
    /access\.set names "groupId", which a move changes/,
    { movable: ['groupId'] },
  ],
  [
    'a field from a claim that nobody has verified',
    { read: ['user'], write: [], set: { owner: defineClaims({ email: {} }).email } },
    /access\.set names "owner", with the claim "email", which the issuer may not have verified/,
  ],
  ['an unknown field', read({ ...inGroup, ownr: subject() }), /"ownr", which the schema does not have\. Add it/],
  ['a field that storage cannot compare', read({ ...inGroup, tags: 'x' }), /"tags", which is stored as JSON/],
  [
    'a value that no row has',
    read({ ...inGroup, state: oneOf('final', 'public') }),
    /"state", which cannot be "public"/,
  ],
  ['an empty prefix', read({ ...inGroup, noteId: startsWith('') }), /"noteId", with an empty prefix.*Give a prefix/],
  ['a prefix of a number', read({ ...inGroup, size: startsWith('1') }), /"size", which is not a text.*Use between/],
  [
    'bounds of another type',
    read({ ...inGroup, size: between('a', 'z') }),
    /"size", which has another type than the bounds/,
  ],
  [
    'a bound that is no number',
    read({ ...inGroup, size: between(Number.NaN, 5) }),
    /the rule to read of the role "user" compares "size", with a term "between" that is not valid: "from" .*a finite number/,
  ],
  [
    'an infinite bound',
    read({ ...inGroup, size: between(1, Number.POSITIVE_INFINITY) }),
    /"size", with a term "between" that is not valid: "to" .*a finite number/,
  ],
  [
    'a bound of more bits',
    read({ ...inGroup, size: between(1, 2 ** 31) }),
    /"size", with the bound 2147483648\. Use a whole/,
  ],
  ['reversed bounds', read({ ...inGroup, size: between(9, 1) }), /"size", with the bounds 9 and 1 in the wrong order/],
  [
    'bounds of a Boolean',
    read({ ...inGroup, isOpen: between(0, 1) }),
    /"isOpen", which is true or false and has no order/,
  ],
  [
    'no value',
    read({ ...inGroup, state: { is: 'one of', values: [] } }),
    /"state", with a term "one of" that is not valid: "values" .*at least one value/,
  ],
  [
    'an unknown term',
    read({ ...inGroup, owner: { is: 'owner' } }),
    /"owner", with an unknown term: use a value, oneOf/,
  ],
  ['null', read({ ...inGroup, owner: null }), /of the role "user" compares "owner", with a term that is no value/],
  [
    'a text that storage cannot have',
    read({ ...inGroup, owner: startsWith('\ud800') }),
    /"owner", with a term "prefix" that is not valid: "prefix" .*well-formed Unicode/,
  ],
  ['a key that no row has', read({ groupId: oneOf('g', '') }), /"groupId", which cannot be ""/],
  [
    'memberships of nothing',
    read({ groupId: { is: 'member', field: 'groupId', where: {} } }),
    /"groupId", with a term "member" that is not valid: "of" .*needs a declared entity/,
  ],
  [
    'a claim whose verification has no values',
    read({ ...inGroup, owner: defineClaims({ email: { verifiedBy: { email_verified: true as never } } }).email }),
    /"owner", with a term "claim" that is not valid: "verifiedBy.email_verified" .*a list of values/,
  ],
  [
    'a subject that is an instant',
    read({ ...inGroup, seenAt: subject() }),
    /"seenAt", which is a date-time, and no subject is one/,
  ],
  ['a subject that the schema changes', read({ ...inGroup, alias: subject() }), /store two subjects as one value/],
  [
    'a claim that nobody verifies',
    read({ ...inGroup, owner: defineClaims({ email: {} }).email }),
    /the claim "email", which the issuer may not have verified/,
  ],
  ['an own entity that no caller has', read({ ...inGroup, owner: own() }), /own entity of "notes", which has none/],
  [
    'a list that no partition bounds',
    read({ owner: subject() }),
    /bounds no list: no partition key consists of owner.*Declare an index, such as byOwner: interPartitionIndex\({ table: 'notesbyowner', partition: '{owner}', row: '{groupId}_{noteId}' }\), or say lists/,
  ],
  ['a cache of a browser', read(inGroup), /maxAge lets a browser show one caller/, { maxAge: 60 }],
  [
    'a public file',
    read(inGroup),
    /the attachment "photo" is public, and rules limit/,
    { attachments: { photo: { container: 'photos', maxBytes: 9, types: ['image/png'], public: true } } },
  ],
  [
    'a value that the engine sets, before a create',
    { read: ['user'], write: { create: [{ role: 'user', where: { owner: 'x' } }] } },
    /the rule to create of the role "user" compares "owner", which the engine sets/,
    {
      expiry: { days: 1, clock: 'owner' },
      schema: z.object({ groupId: z.string(), noteId: z.string(), owner: z.iso.date() }),
    },
  ],
  ['an unknown role', { read: [{ role: 'usr', where: inGroup }], write: [] }, /the role "usr", which is not a role/],
  [
    'an unknown field of a restricted field',
    { read: ['user'], write: [], restricted: { owner: [{ role: 'user', where: { ownr: subject() } }] } },
    /the rule to read "owner" of the role "user" compares "ownr", which the schema does not have/,
  ],
])('a rule with %s is an error of the model', (_, access, message, over) => {
  expect(model(notes(access, over))).toThrow(message);
});

test.each<[string, DeclaredEntity, RegExp, string?]>([
  [
    'without a list of those of a caller',
    members({ indexes: {} }),
    /no partition has all of a caller. Declare an index there/,
  ],
  [
    'whose key has a third field',
    members({ key: { partition: '{groupId}', row: '{userId}_{role}' } }),
    /memberships in "members", whose key is not "groupId" and the caller/,
  ],
  [
    'whose user the schema changes',
    members({ schema: z.object({ groupId: z.string(), userId: z.string().toLowerCase(), role: z.enum(['admin']) }) }),
    /whose "userId" may store two subjects as one value/,
  ],
  ['with a value that no row has', members(), /whose "role" is "owner", which no row has/, 'owner'],
])('memberships %s are an error of the model', (_, of, message, role) => {
  const term = memberOf(of, 'groupId' as never, (role ? { role } : {}) as never);
  expect(model(of, notes(read({ groupId: term })))).toThrow(message);
});

test('terms of each kind are accepted', () => {
  const of = members();
  const where = {
    groupId: memberOf(of, 'groupId' as never),
    owner: subject(),
    state: oneOf('draft', 'final'),
    size: between(1, 5),
    noteId: startsWith('n'),
  };
  expect(model(of, notes(read(where)))).not.toThrow();
  expect(model(of, notes(read({ owner: subject() }, { lists: 'none' })))).not.toThrow();
  expect(model(of, notes(read({ owner: subject() }, { lists: 'filtered' })))).not.toThrow();
});

test('a rule may refer to an entity that the model does not have in no other way', () => {
  expect(model(notes(read({ groupId: memberOf(members(), 'groupId' as never) })))).toThrow(
    'Entity "notes" has rules with "members", which is not in the model.',
  );
});

test('rules on writes alone are an error of an entity that clients write straight to storage', () => {
  const groups = modelParts.compileEntity('groups', {
    schema: z.object({ groupId: z.string(), email: z.string() }),
    table: 'groups',
    key: { partition: '{groupId}', row: 'group' },
    indexes: { email: interPartitionIndex({ table: 'groupsbyemail', partition: '{email}', row: 'e', unique: true }) },
    access: { read: ['user'], write: [], own: { claim: 'email', index: 'email', verifiedBy: {} } },
  });
  const granted = (permissions: string) =>
    notes({
      read: ['user'],
      write: [{ role: 'user', where: { state: 'draft' } }],
      own: { through: groups, permissions },
    } as unknown as Declaration['access']);
  expect(model(groups, granted('raud'))).toThrow(/clients may write it straight to storage/);
  expect(model(groups, granted('r'))).not.toThrow();
});

test.each(['ra', 'ru', 'raud', 'rd'])(
  'memberships that clients may write by a grant with %s are an error if they add or change them',
  (permissions) => {
    const users = modelParts.compileEntity('users', {
      schema: z.object({ userId: z.string(), name: z.string() }),
      table: 'users',
      key: { partition: '{userId}', row: 'user' },
      indexes: { userId: interPartitionIndex({ table: 'usersbyid', partition: '{userId}', row: 'u', unique: true }) },
      access: { read: ['user'], write: [], own: { claim: 'sub', index: 'userId' } },
    });
    const joined = members({
      key: { partition: '{userId}', row: '{groupId}' },
      indexes: {},
      access: { read: ['user'], write: [], own: { through: users as never, permissions } },
    });
    const rule = notes(read({ groupId: memberOf(joined, 'groupId' as never) }));
    const inField = notes({
      read: ['user'],
      write: [],
      restricted: { owner: [{ role: 'user', where: { groupId: memberOf(joined, 'groupId' as never) } }] },
    });
    for (const of of [rule, inField]) {
      const built = expect(model(users, joined, of));
      if (permissions === 'rd') built.not.toThrow();
      else
        built.toThrow(
          /which clients add or change straight in storage.*Leave a and u out of the permissions of access\.own/,
        );
    }
  },
);
