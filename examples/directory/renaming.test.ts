import { expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { eventually, useProduct } from '../../test/product.ts';

const EMPLOYEES = 250;

const product = useProduct(import.meta.url, { app: deployedApp });

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
