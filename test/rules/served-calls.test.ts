import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { Client } from '../../lib/client/index.ts';
import {
  defineEntity,
  defineModel,
  interPartitionIndex,
  intraPartitionIndex,
  memberOf,
  subject,
} from '../../lib/index.ts';
import { createTestStore } from '../../lib/testing/index.ts';
import { openAccessApp } from '../access-app.ts';

/** The type of the client has the lists that rules may open, and in place of the others a reason: as the API, which the tests ask too. */

const members = defineEntity('members', {
  schema: z.object({ houseId: z.string(), userId: z.string() }),
  table: 'members',
  key: { partition: '{houseId}', row: '{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{houseId}' }) },
  access: { read: ['operator'], write: ['operator'] },
});
const tools = defineEntity('tools', {
  schema: z.object({
    houseId: z.string(),
    toolId: z.string(),
    ownerId: z.string(),
    kind: z.string(),
    code: z.string(),
  }),
  table: 'tools',
  key: { partition: '{houseId}', row: 'tool_{toolId}' },
  indexes: {
    ownerId: interPartitionIndex({ table: 'toolsbyowner', partition: '{ownerId}', row: '{toolId}_{houseId}' }),
    kind: interPartitionIndex({ table: 'toolsbykind', partition: '{kind}', row: '{houseId}_{toolId}' }),
    code: interPartitionIndex({ table: 'toolsbycode', partition: '{code}', row: 'x', unique: true }),
    near: intraPartitionIndex({ row: 'kind_{kind}_{toolId}' }),
  },
  access: { read: [{ role: 'user', where: { houseId: memberOf(members, 'houseId') } }], write: ['operator'] },
});
/** A user lists the user's own by no key: each is read by its key. */
const letters = defineEntity('letters', {
  schema: z.object({ box: z.string(), letterId: z.string(), to: z.string() }),
  table: 'letters',
  key: { partition: '{box}', row: 'letter_{letterId}' },
  access: { read: [{ role: 'user', where: { to: subject() }, lists: 'none' }], write: ['operator'] },
});
/** A role has two ways to a row, of which no list has both. */
const loans = defineEntity('loans', {
  schema: z.object({ houseId: z.string(), loanId: z.string(), borrowerId: z.string() }),
  table: 'loans',
  key: { partition: '{houseId}', row: 'loan_{loanId}' },
  indexes: {
    borrowerId: interPartitionIndex({ table: 'loansbyborrower', partition: '{borrowerId}', row: '{houseId}_{loanId}' }),
  },
  access: {
    read: [
      { role: 'user', where: { houseId: memberOf(members, 'houseId') } },
      { role: 'user', where: { borrowerId: subject() } },
    ],
    write: ['operator'],
  },
});
const common = {
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  entities: [members, tools, letters, loans],
} as const;
const model = defineModel(common);
const withSteward = defineModel({ ...common, steward: 'operator' });

type Of<Declared extends { readonly entities: Parameters<typeof Object.keys>[0] }> = Declared['entities'];

test('a list that no rule opens is a reason in the type of the client', () => {
  type Tools = Client<Of<typeof model>>['tools'];
  expectTypeOf<Tools['by']['ownerId']>().toEqualTypeOf<{ readonly reason: 'No role may list tools by "ownerId"' }>();
  expectTypeOf<Tools['by']['kind']>().toBeFunction();
  expectTypeOf<Tools['by']['code']>().toBeFunction();
  expectTypeOf<Tools['by']['near']>().toBeFunction();
  expectTypeOf<Tools['mine']>().toBeFunction();
  type Letters = Client<Of<typeof model>>['letters'];
  expectTypeOf<Letters['mine']>().toEqualTypeOf<{
    readonly reason: 'No list has all letters of a caller: no partition key is compared by every rule to read';
  }>();
  type Loans = Client<Of<typeof model>>['loans'];
  expectTypeOf<Loans['mine']>().toEqualTypeOf<{
    readonly reason: 'No list has all loans of a caller: no partition key is compared by every rule to read';
  }>();
  expectTypeOf<Loans['by']['borrowerId']>().toBeFunction();
  expectTypeOf<Client<Of<typeof model>>['members']['by']['userId']>().toBeFunction();
  type Stewards = Client<Of<typeof withSteward>>['tools'];
  expectTypeOf<Stewards['by']['ownerId']>().toBeFunction();
});

test('the API serves the same lists', async () => {
  const { ask } = await openAccessApp(import.meta.url, model);
  const user = { roles: ['user'] };
  const statuses = async (...paths: string[]) =>
    Promise.all(paths.map(async (path) => (await ask(user, 'GET', path)).status));
  expect(await statuses('tools', 'tools/by/kind/saw', 'tools/by/near/h/saw')).toEqual([200, 200, 200]);
  expect(await statuses('tools/by/ownerId/ann', 'letters', 'loans')).toEqual([403, 405, 405]);
  expect(await statuses('loans/by/borrowerId/ann')).toEqual([200]);
});

test('the store names the lists that are open in place of one of all', async () => {
  const { store } = await createTestStore(model);
  const ann = store.as({ subject: 'ann', roles: ['user'], claims: {} });
  await expect(ann.loans.mine().page()).rejects.toThrow(
    'No list has all loans of a caller: mine() needs a partition key that every rule to read compares. Roles may list it of one houseId, by borrowerId.',
  );
  expect(await ann.loans.by.borrowerId.range({ borrowerId: 'ann' }).page()).toMatchObject({ items: [] });
});
