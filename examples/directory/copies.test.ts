import { expect, test, vi } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { PATIENCE_MS } from '../../test/patience.ts';
import { type Client, eventually, type Reply, useProduct } from '../../test/product.ts';

/** Copies of fields after an employee has left a department (for another one, the archive, or for good) and after a department is renamed. */

const EMPLOYEES = 250;

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

test.each([
  ['is deleted', '3', (hr, path) => hr('DELETE', path)],
  ['moves to another department', '4', (hr, path) => hr('POST', `${path}/move`, { body: { department: 'Elsewhere' } })],
  ['is archived', '5', (hr, path) => hr('POST', `${path}/archive`)],
] satisfies [string, string, (hr: Client, path: string) => Promise<Reply>][])(
  'the list of departments has no manager after the manager %s',
  async (_, number, leave) => {
    const [department, managerId] = [`Of${number}`, `00000${number}`];
    const { hr, path } = await createEmployee(department, managerId);
    await hr('PUT', `/api/departments/${department}`, { body: { name: 'Sales', managerId } });
    const listed = async () => [
      ...(await hr('GET', '/api/departments')).body.items,
      ...(await hr('GET', `/api/departments/by/inOrder`)).body.items,
    ];
    const own = async () => (await listed()).filter((one) => one.department === department);
    expect(await own()).toEqual(Array(2).fill({ department, name: 'Sales', managerId }));
    expect((await leave(hr, path)).status).toBeLessThan(300);
    await eventually(
      () => hr('GET', `/api/departments/${department}`),
      ({ body }) => body.managerId === undefined,
    );
    await vi.waitFor(
      async () => expect(await own()).toEqual(Array(2).fill({ department, name: 'Sales' })),
      PATIENCE_MS,
    );
  },
);

test('renaming a department updates the copied fields of each of its 250 employees', async () => {
  const ask = product.as('hr');
  const key = '/api/departments/Support';
  const created = await ask('POST', '/api/departments', {
    body: { department: 'Support', name: 'Support', budgetCode: 'SUP-1' },
  });
  expect(created.status).toBe(201);
  const everyone = Array.from({ length: EMPLOYEES }, (_, at) => {
    const employeeId = String(700_000 + at);
    return {
      department: 'Support',
      employeeId,
      email: `e${employeeId}@contoso.com`,
      firstName: 'E',
      lastName: `L${at}`,
    };
  });
  for (let at = 0; at < EMPLOYEES; at += 100) {
    const actions = everyone.slice(at, at + 100).map((create) => ({ create }));
    expect((await ask('POST', '/api/employees/batch', { body: { actions } })).status).toBe(200);
  }
  const list = '/api/employees/Support?top=1000&select=employeeId,departmentName,budgetCode';
  const all = (departmentName: string, budgetCode: string) =>
    everyone.map(({ employeeId }) => expect.objectContaining({ employeeId, departmentName, budgetCode }));
  expect((await ask('GET', list)).body.items).toEqual(all('Support', 'SUP-1'));

  expect((await ask('PATCH', key, { body: { name: 'Customer support', budgetCode: 'SUP-2' } })).status).toBe(200);
  const isRenamed = (one: { departmentName: string }) => one.departmentName === 'Customer support';
  const { body } = await eventually(
    () => ask('GET', list),
    ({ body: { items } }) => items.every(isRenamed),
  );
  expect(body.items).toEqual(all('Customer support', 'SUP-2'));
  // So do the copies of the indexes, which the queue updates after the employees.
  for (const index of ['email/Support/e700249@contoso.com', 'emailCompanyWide/e700249@contoso.com'])
    await eventually(
      () => ask('GET', `/api/employees/by/${index}`),
      ({ body: one }) => isRenamed(one),
    );
  expect((await ask('GET', key)).body).toMatchObject({ name: 'Customer support', employeeCount: EMPLOYEES });
  const written = await ask('PATCH', '/api/employees/Support/700000', { body: { departmentName: 'Mine' } });
  expect(written.status).toBe(400);
});
