import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, RowkeyError } from '../../../lib/index.ts';
import { httpDoor } from '../../kit/http.ts';
import { openApp } from '../../open-app.ts';
import { testApp, testInvocation, testRequest } from './request.ts';

/** The handler of docs/access.md that serves each caller the rows of that caller. */

const common = { access: { read: ['hr'], write: ['hr'] } } as const;
const employees = defineEntity('employees', {
  ...common,
  schema: z.object({ department: z.string(), employeeId: z.string(), email: z.email() }),
  table: 'employees',
  key: { partition: '{department}', row: '{employeeId}' },
  indexes: {
    emailCompanyWide: interPartitionIndex({ table: 'byemail', partition: '{email#}', row: '{email}', unique: true }),
  },
});
const expenses = defineEntity('expenses', {
  ...common,
  schema: z.object({ employeeId: z.string(), claimId: z.string(), amount: z.number() }),
  table: 'expenses',
  key: { partition: '{employeeId}', row: '{claimId}' },
});
const model = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [employees, expenses] });
const rowkey = openApp(import.meta.url, model);

async function call(claims: Record<string, string>) {
  const app = testApp(import.meta.url, { authenticate: async () => ({ subject: 'ann', roles: ['reader'], claims }) });
  const handler = httpDoor.createHandler(
    () => app,
    { roles: ['reader'] },
    async (_request, { caller }) => {
      const { email } = caller.claims;
      const employee = typeof email === 'string' && (await rowkey.store.employees.by.emailCompanyWide({ email }));
      if (!employee) throw new RowkeyError('forbidden', 'The token has no verified email of an employee.');
      const { items } = await rowkey.store.expenses.range({ employeeId: employee.employeeId }).page();
      return { jsonBody: items };
    },
  );
  return handler(testRequest(), testInvocation().invocation);
}

test('a handler of an app can serve each caller their own rows', async () => {
  await rowkey.provision();
  const { store } = rowkey;
  for (const employeeId of ['1', '2']) {
    await store.employees.create({ department: 'Sales', employeeId, email: `e${employeeId}@contoso.com` });
    await store.expenses.create({ employeeId, claimId: 'a', amount: Number(employeeId) });
  }
  expect(await call({ email: 'e2@contoso.com' })).toMatchObject({
    jsonBody: [{ employeeId: '2', claimId: 'a', amount: 2 }],
  });
  expect(await call({})).toMatchObject({ status: 403 });
  expect(await call({ email: 'e3@contoso.com' })).toMatchObject({ status: 403 });
});
