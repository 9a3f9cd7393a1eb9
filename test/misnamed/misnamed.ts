import { z } from 'zod';
import { createClient } from '../../lib/client/index.ts';
import {
  createRowkey,
  defineClaims,
  defineEntity,
  defineModel,
  defineOperation,
  defineUnion,
  fromEnvironment,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  memberOf,
  type Store,
  total,
} from '../../lib/index.ts';
import type { model } from '../fixtures/model.ts';

/** What adopters misname. compiler-errors.test.ts has the compiler's sentence for each call, by the comment above the call. */

const access = { read: [], write: [] } as const;
const claims = defineClaims({ departments: { verifiedBy: {} } });
const common = {
  schema: z.object({
    department: z.string(),
    employeeId: z.string(),
    hireDate: z.iso.date(),
    email: z.string(),
    teamId: z.string().optional(),
    size: z.int32().optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: '{employeeId}' },
  access,
} as const;
const email = interPartitionIndex({ table: 'byemail', partition: '{email#}', row: '{email}', unique: true });
const teams = defineEntity('teams', { ...common, table: 'teams' });

// a field of an index
const hireDate = intraPartitionIndex({ row: 'hired_{hiredate}_{employeeId}' });
defineEntity('employees', { ...common, indexes: { email, hireDate } });
// a field of a unique index
const mail = interPartitionIndex({ table: 'bymail', partition: '{mail#}', row: '{mail}', unique: true });
defineEntity('employees', { ...common, indexes: { mail } });
// a field that an index copies
const dated = interPartitionIndex({ table: 'dated', partition: '{hireDate}', row: '{employeeId}', copies: ['mail'] });
defineEntity('employees', { ...common, indexes: { dated } });
// a field of a list
const list = indexEntity({ row: 'team_{team}', holds: '{employeeId}' });
defineEntity('employees', { ...common, indexes: { list } });
// an encrypted field of an index
defineEntity('employees', { ...common, indexes: { email }, encrypted: ['email'] });
// a field of a total
const byMonth = total({ table: 'hired', partition: '{hired.month}', row: '{department}' });
defineEntity('employees', { ...common, totals: { byMonth } });
// an encrypted field of a total
const byEmail = total({ table: 'hired', partition: '{email}', row: '{department}' });
defineEntity('employees', { ...common, totals: { byEmail }, encrypted: ['email'] });
// a field of the partition key
defineEntity('employees', { ...common, key: { partition: '{departmnt}', row: '{employeeId}' } });
// a field of the row key
defineEntity('employees', { ...common, key: { partition: '{department}', row: 'empid_{id}' } });
// an encrypted field of the key
defineEntity('employees', {
  schema: common.schema,
  table: 'employees',
  key: { partition: '{department}', row: '{employeeId}' },
  encrypted: ['department'],
  access,
});
// a restricted field
defineEntity('employees', { ...common, access: { read: [], write: [], restricted: { salary: ['hr'] } } });
// a disclosed field
defineEntity('employees', { ...common, access: { read: [], write: [], discloses: ['salary'] } });
// the index of the owner
defineEntity('employees', {
  ...common,
  indexes: { email },
  access: { read: [], write: [], own: { claim: 'email', index: 'mail' } },
});
// the index of a lookup
defineEntity('employees', { ...common, indexes: { email }, lookup: { index: 'mail' } });
// a derived field
defineEntity('employees', { ...common, derived: { sise: () => 1 } });
// a derived field of a union
defineUnion('employees', { ...common, kinds: {}, derived: { sise: () => 1 } });
// a count
defineEntity('employees', { ...common, counts: { sise: teams } });
// a field with copies
defineEntity('employees', { ...common, denormalized: { teamId: { source: teams, copies: { sise: () => 1 } } } });
// a field that refers to a source of copies
defineEntity('employees', { ...common, denormalized: { team: { source: teams, copies: { size: () => 1 } } } });
// a field that refers
defineEntity('employees', { ...common, references: { team: { to: teams, onDelete: 'refuse' } } });
// an entity that is referred to
defineEntity('employees', { ...common, references: { teamId: { to: 'teams', onDelete: 'refuse' } } });
// a rule of a reference
defineEntity('employees', { ...common, references: { teamId: { to: teams, onDelete: 'cascade' } } });
// the clock of an expiry
defineEntity('employees', { ...common, expiry: { days: 30, clock: 'hiredate' } });
// the field of a period
defineEntity('employees', { ...common, period: { per: 'day', field: 'hiredate', keep: 1 } });
// a large field
defineEntity('employees', { ...common, large: ['mail'] });
// an encrypted field
defineEntity('employees', { ...common, encrypted: ['mail'] });
// a field that a move changes
defineEntity('employees', { ...common, movable: ['departmnt'] });
// a field apart
defineEntity('employees', { ...common, split: { contact: ['mail'] } });
// an option of an entity
defineEntity('employees', { ...common, indices: {} });
// a field of a rule
defineEntity('employees', { ...common, access: { read: [{ role: 'reader', where: { mail: 'x' } }], write: [] } });
// a field of a rule of a restricted field
defineEntity('employees', {
  ...common,
  access: { ...access, restricted: { email: [{ role: 'reader', where: { mail: 'x' } }] } },
});
// a field of a rule before a change
defineEntity('employees', {
  ...common,
  access: { ...access, write: { update: { before: [{ role: 'reader', where: { mail: 'x' } }], after: ['reader'] } } },
});
// a field of a rule after one of several changes
defineEntity('employees', {
  ...common,
  access: { ...access, write: { update: [{ before: ['reader'], after: [{ role: 'reader', where: { mail: 'x' } }] }] } },
});
// a field of a check
defineEntity('employees', { ...common, access, checks: { 'an email address is needed': ({ mail }) => mail !== '' } });
// a claim of a rule
claims.departmnts;
// the key of a membership
memberOf(teams, 'teamid');
// a field of the members
memberOf(teams, 'teamId', { nmae: 'x' });
// an option of the access
defineEntity('employees', { ...common, access: { reads: [], write: [] } });
// an option of an index in the partition
intraPartitionIndex({ row: '{email}', unique: true });
// an option of an index in other partitions
interPartitionIndex({ table: 'byemail', partition: '{email#}', row: '{email}', uniq: true });
// an option in place of a required one
interPartitionIndex({ table: 'byemail', partition: '{email#}', rows: '{email}' });
// an option of a list
indexEntity({ row: '{email}', holds: '{employeeId}', copies: 'keys' });
// an option of a total
total({ table: 'hired', partition: '{department}', row: '{hireDate}', sums: ['size'] });
// a role
const read = defineEntity('employees', { ...common, access: { read: ['raeder'], write: ['reader'] } });
defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [teams, read] });
// a role after a change
const after = defineEntity('employees', {
  ...common,
  access: {
    ...access,
    write: { update: [{ before: [{ role: 'reader', where: { email: 'x' } }], after: ['raeder'] }] },
  },
});
defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [teams, after] });
// a role of a restricted field
const restricted = defineEntity('employees', { ...common, access: { ...access, restricted: { email: ['raeder'] } } });
defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [restricted] });
// the role of operators
defineModel({ roles: ['reader'], operatorRole: 'raeder', entities: [teams] });
// the role of a limit
defineModel({
  roles: ['reader'],
  operatorRole: 'reader',
  limits: [{ role: 'raeder', requests: 1, per: 'day' }],
  entities: [teams],
});
// the entity of a limit
defineModel({
  roles: ['reader'],
  operatorRole: 'reader',
  limits: [{ role: 'reader', entity: 'team', requests: 1, per: 'day' }],
  entities: [teams],
});
// the operation of a limit
const roles = ['reader'] as const;
const schemas = { input: z.object({ email: z.string() }), output: z.object({ teamId: z.string() }) };
const invite = defineOperation('invite', { summary: 'Invite', kind: 'write', roles, ...schemas });
defineModel({
  roles,
  operatorRole: 'reader',
  limits: [{ role: 'reader', operation: 'invit', requests: 1, per: 'day' }],
  entities: [teams],
  operations: [invite],
});
// the role of an operation
const expel = defineOperation('expel', { summary: 'Expel', kind: 'write', roles: ['raeder'], ...schemas });
defineModel({ roles, operatorRole: 'reader', entities: [teams], operations: [expel] });
// an option of an operation
defineOperation('expel', { summary: 'Expel', kind: 'write', rolls: [], roles, ...schemas });
const app = { model: defineModel({ roles, operatorRole: 'reader', entities: [teams], operations: [invite] }) };
const settings = fromEnvironment({});
// the implementation of an operation
createRowkey({ ...app, ...settings, operations: { invit: async () => ({ teamId: 'a' }) } });
// a member of the input
createRowkey({ ...app, ...settings, operations: { invite: async ({ input }) => ({ teamId: input.mail }) } });

declare const store: Store<typeof model.entities>;
// a range without its first field
store.employees.by.hireDate.range({});
// a range with a field in place of another
store.movies.by.actor.range({ cast: 'Charlie Chaplin', title: 'The Kid' });
// a range with a field that is not in the key
store.employees.by.hireDate.range({ department: 'Sales', jobTitle: 'Clerk' });
// a range of totals
store.sales.totals.byMonth.range({});

const client = createClient<typeof model>({ url: '', token: async () => '' });
// a range through the client
client.employees.by.hireDate.range({});
// a range in a query
client.query(({ employees }) => ({ hired: employees.by.hireDate.range({}) }));
const invited = createClient<typeof app.model>({ url: '' });
// an operation through the client
invited.operations.invit({ email: 'a' });
// a member of the input through the client
invited.operations.invite({ mail: 'a' });
