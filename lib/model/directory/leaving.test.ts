import { expect, test } from 'vitest';
import { deployedApp } from '../../../local/instance/deployed-app.ts';
import { eventually, useProduct } from '../../../test/product.ts';

/** What the indexes return after an employee has left a department: for another one, the archive, or for good. */

const product = useProduct(import.meta.url, { app: deployedApp });

async function createEmployee(department: string, employeeId: string) {
  const hr = product.as('hr');
  const email = `e${employeeId}@contoso.com`;
  const one = { department, employeeId, email, firstName: 'Ann', lastName: 'Lee' };
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  return { hr, email, path: `/api/employees/${department}/${employeeId}` };
}

test.each([
  ['a department', { name: 'Research', budgetCode: 'R-1' }],
  ['a department without a row', undefined],
])('the full copy of an index has the fields of %s that the employee was moved to', async (_, to) => {
  const number = to ? '1' : '2';
  const [from, department] = [`From${number}`, `To${number}`];
  const { hr, email, path } = await createEmployee(from, `00000${number}`);
  await hr('PUT', `/api/departments/${from}`, { body: { name: 'Sales', budgetCode: 'S-1' } });
  if (to) await hr('PUT', `/api/departments/${department}`, { body: to });
  const byEmail = () => hr('GET', `/api/employees/by/emailCompanyWide/${email}`);
  await eventually(byEmail, ({ body }) => body.departmentName === 'Sales');
  expect((await hr('POST', `${path}/move`, { body: { department } })).status).toBe(202);
  const moved = await eventually(
    () => hr('GET', path.replace(from, department)),
    ({ status }) => status === 200,
  );
  const { body } = await eventually(byEmail, (reply) => reply.body.department === department);
  expect(body).toEqual(moved.body);
  expect([body.departmentName, body.budgetCode]).toEqual([to?.name, to?.budgetCode]);
});
