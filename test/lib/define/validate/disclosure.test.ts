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

/** Which readers of a copy or a count may read what is behind it. */

type Access = Declaration['access'];
type Where = Readonly<Record<string, unknown>>;

const members = modelParts.compileEntity('members', {
  schema: z.object({ groupId: z.string(), userId: z.string(), role: z.enum(['admin', 'member']) }),
  table: 'members',
  key: { partition: '{groupId}', row: '{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{groupId}' }) },
  access: { read: ['user'], write: [] },
});
const people = modelParts.compileEntity('people', {
  schema: z.object({ groupId: z.string(), email: z.string() }),
  table: 'people',
  key: { partition: '{groupId}', row: 'person_{email}' },
  indexes: { email: interPartitionIndex({ table: 'peoplebyemail', partition: '{email}', row: 'e', unique: true }) },
  access: { read: ['user'], write: [], own: { claim: 'email', index: 'email', verifiedBy: {} } },
});
const inGroup = memberOf(members, 'groupId');
const asAdmin = memberOf(members, 'groupId', { role: 'admin' });
const claims = defineClaims({ groups: { verifiedBy: {} }, teams: { verifiedBy: {} } });

/** Of a role that reads no list, because the lists are not the matter here. */
const user = (where: Where, role = 'user') => ({ role, where, lists: 'none' }) as never;
const reads = (...read: readonly unknown[]) => ({ read, write: [] }) as unknown as Access;

const shape = { groupId: z.string(), size: z.int32(), noteId: z.string(), state: z.enum(['draft', 'final']) };
const notesOf = (access: Access, over: Partial<Declaration> = {}) =>
  modelParts.compileEntity('notes', {
    schema: z.object(shape),
    table: 'things',
    key: { partition: '{groupId}', row: 'note_{size:4}_{noteId}' },
    access,
    ...over,
  });
/** With a count of the notes of its size. */
const groupsOf = (access: Access, notes: DeclaredEntity, groupId: z.ZodType = shape.groupId) =>
  modelParts.compileEntity('groups', {
    schema: z.object({ groupId, size: shape.size, state: shape.state, notes: z.int32() }),
    table: 'things',
    key: { partition: '{groupId}', row: 'group_{size:4}' },
    counts: { notes },
    access,
  });
/** With a copy from one note, of another partition if `fanOut`. */
const linksOf = (access: Access, notes: DeclaredEntity, fanOut = true) =>
  modelParts.compileEntity('links', {
    schema: z.object({ linkId: z.string(), ...shape, note: z.string(), copied: z.string().optional() }),
    ...(fanOut
      ? { table: 'links', key: { partition: '{groupId}_{size:4}_{note}', row: 'link_{linkId}' } }
      : { table: 'things', key: { partition: '{groupId}', row: 'link' } }),
    denormalized: { note: { source: notes, by: 'noteId', copies: { copied: ({ state }) => state }, fanOut } },
    access,
  });

const model = (...entities: DeclaredEntity[]) =>
  defineModel({ roles: ['user', 'admin'], operatorRole: 'admin', entities: [members, people, ...entities] });
const counting = (groups: Access, notes: Access) => {
  const counted = notesOf(notes);
  return () => model(counted, groupsOf(groups, counted));
};

const HIDDEN = /"notes" counts "notes", and the rules of "notes" may hide from user what "notes" shows/;

test.each<[string, Where, Where]>([
  ['the same constant', { groupId: 'g' }, { groupId: 'g' }],
  ['some of several values', { groupId: oneOf('a', 'b') }, { groupId: oneOf('b', 'c', 'a') }],
  ['a longer prefix', { groupId: startsWith('abc') }, { groupId: startsWith('ab') }],
  ['values with the prefix', { groupId: oneOf('ab', 'abc') }, { groupId: startsWith('ab') }],
  ['narrower bounds', { size: between(2, 3) }, { size: between(1, 3) }],
  ['a prefix within the bounds', { groupId: startsWith('b') }, { groupId: between('a', 'c') }],
  ['the subject', { groupId: subject() }, { groupId: subject() }],
  ['the claim', { groupId: claims.groups }, { groupId: claims.groups }],
  ['the own entity', { groupId: own(people, 'groupId') }, { groupId: own(people) }],
  ['a membership', { groupId: inGroup }, { groupId: inGroup }],
  ['a membership with a condition', { groupId: asAdmin }, { groupId: inGroup }],
  ['more terms', { groupId: inGroup, state: 'final', size: 3 }, { groupId: inGroup, size: between(1, 9) }],
])('a count is accepted for readers by %s of what the counted rows need', (_, groups, notes) => {
  counting(reads(user(groups)), reads(user(notes)))();
});

test.each<[string, Where, Where]>([
  ['another constant', { groupId: 'g' }, { groupId: 'h' }],
  ['more values', { groupId: oneOf('a', 'd') }, { groupId: oneOf('a', 'b') }],
  ['a shorter prefix', { groupId: startsWith('a') }, { groupId: startsWith('ab') }],
  ['wider bounds', { size: between(1, 4) }, { size: between(1, 3) }],
  ['a prefix that goes beyond the bounds', { groupId: startsWith('c') }, { groupId: between('a', 'c') }],
  ['bounds', { groupId: between('a', 'b') }, { groupId: startsWith('a') }],
  ['another claim', { groupId: claims.groups }, { groupId: claims.teams }],
  ['a claim', { groupId: claims.groups }, { groupId: subject() }],
  ['a membership', { groupId: inGroup }, { groupId: asAdmin }],
  ['no term on the field', { size: 3 }, { size: 3, groupId: inGroup }],
  ['a field that is not in both keys', { state: 'final' }, { state: 'final' }],
])('a count is rejected for readers by %s', (_, groups, notes) => {
  expect(counting(reads(user(groups)), reads(user(notes)))).toThrow(HIDDEN);
});

test('the message names the ways out, of which each is accepted', () => {
  const open = ['user', 'admin'];
  const notes = reads('admin', user({ groupId: inGroup }));
  expect(counting(reads(...open), notes)).toThrow(
    'Entity "groups": "notes" counts "notes", and the rules of "notes" may hide from user what "notes" shows. Give the rules to read "groups" the terms of those of "notes", remove these roles from the readers of "notes" (access.restricted, access.own), or name "notes" in access.discloses if they may know.',
  );
  counting(reads('admin', user({ groupId: inGroup })), notes)();
  counting({ ...reads(...open), restricted: { notes: ['admin'] } }, notes)();
  counting({ ...reads(...open), discloses: ['notes'] }, notes)();
});

test('a field with rules of its own is for those who may read the row and the field', () => {
  const notes = reads('admin', user({ groupId: inGroup }));
  const restricted = (where: Where) => ({ ...reads('user', 'admin'), restricted: { notes: ['admin', user(where)] } });
  counting(restricted({ groupId: asAdmin }), notes)();
  expect(counting(restricted({ size: 1 }), notes)).toThrow(HIDDEN);
  const split = { ...reads(user({ size: 1 }), 'admin'), restricted: { notes: ['admin', user({ groupId: inGroup })] } };
  counting(split, reads('admin', user({ groupId: inGroup, size: oneOf(1, 2) })))();
});

test('a role cannot use the alternatives of another role', () => {
  const notes = reads(user({ groupId: inGroup }, 'admin'), user({ groupId: 'g' }));
  expect(counting(reads(user({ groupId: inGroup })), notes)).toThrow(HIDDEN);
});

test('a claim that two schemas may change is not the same', () => {
  const notes = notesOf(reads(user({ groupId: claims.groups })));
  const groups = groupsOf(reads(user({ groupId: claims.groups })), notes, z.string().toLowerCase());
  expect(() => model(notes, groups)).toThrow(HIDDEN);
});

test('two instants of one key may be two texts, so they are not the same', () => {
  const common = { table: 'things', access: reads(user({ groupId: 'g', at: '2026-11-20T10:00:00Z' })) };
  const schema = z.object({ groupId: z.string(), at: z.iso.datetime(), noteId: z.string() });
  const notes = modelParts.compileEntity('notes', {
    ...common,
    schema,
    key: { partition: '{groupId}', row: 'note_{at~}_{noteId}' },
  });
  const groups = modelParts.compileEntity('groups', {
    ...common,
    schema: z.object({ groupId: z.string(), at: z.iso.datetime(), notes: z.int32() }),
    key: { partition: '{groupId}', row: 'group_{at~}' },
    counts: { notes },
  });
  expect(() => model(notes, groups)).toThrow(HIDDEN);
});

test.each([true, false])('a copy is compared through the reference to its source (fanOut: %s)', (fanOut) => {
  const source = notesOf(reads(user({ noteId: subject(), size: 2 })));
  const link = (where: Where) => () => model(source, linksOf(reads(user(where)), source, fanOut));
  link({ note: subject(), size: oneOf(2) })();
  const hidden = /"links": "copied" is copied from "notes", and the rules of "notes" may hide from user/;
  expect(link({ note: subject() })).toThrow(hidden);
  expect(link({ noteId: subject(), size: 2 })).toThrow(hidden);
});

test('only copies and counts can disclose', () => {
  const access = { ...reads('user'), discloses: ['size'] } as Access;
  expect(() => model(notesOf(access))).toThrow(/access\.discloses names "size", which is neither a copy nor a count/);
});

test('a copy that a role may not read is accepted if it is disclosed', () => {
  const notes = notesOf(reads('admin'));
  expect(() => model(notes, groupsOf(reads('user'), notes))).toThrow(/which user may not read.*access\.discloses/);
  model(notes, groupsOf({ ...reads('user'), discloses: ['notes'] } as Access, notes));
});
