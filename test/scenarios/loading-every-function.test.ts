import { expect, test } from 'vitest';
import { runCommand, useStartProcess } from '../start-process.ts';

/** The deployed app, under whichever host the tests run. CI runs this file first under Core Tools. */
const started = useStartProcess({ deployed: true }, ['--empty']);

test('the host loads every function, and every route of the deployed model returns 401 without a token', async () => {
  const { process: running } = started;
  // The words of Core Tools, which serve the other functions of an app.
  expect(running.said()).not.toMatch(/function is in error|conflicts with/);
  const { code, said } = await runCommand('smoke', ['--url', running.url, '--patience', '0'], { deployed: true });
  expect(said).toMatch(/^\d+ routes returned 401 without a token\.$/m);
  expect(code).toBe(0);
});

test('a row that was created can be read by its key', async () => {
  const ask = await started.process.as('hr');
  const row = {
    department: 'Sales',
    employeeId: '000123',
    email: 'ann@contoso.com',
    firstName: 'Ann',
    lastName: 'Lee',
    jobTitle: 'Clerk',
    hireDate: '2020-01-02',
  };
  expect((await ask('POST', 'employees', row)).status).toBe(201);
  const read = await ask('GET', 'employees/Sales/000123');
  expect([read.status, await read.json()]).toMatchObject([200, row]);
});
