import { beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, indexEntity } from '../../lib/index.ts';
import { allPages } from '../all-pages.ts';
import type { Entity } from '../kit/define.ts';
import { operationsCheck, operationsModel, type VerifyPosition } from '../kit/operations.ts';
import { openApp } from '../open-app.ts';
import { PATIENCE_MS } from '../patience.ts';
import { testStorage } from '../storage.ts';
import { openWorld } from '../world.ts';
import { log } from './models.ts';
import { asOfService, existingRows, loadRows, openTable, readRows } from './tables.ts';

/** Shapes of Microsoft's table design guide, as .NET wrote them. */

const connection = testStorage(import.meta.url);
const access = { read: ['reader'], write: ['editor'] } as const;
const company = defineModel({
  roles: ['reader', 'editor'],
  operatorRole: 'editor',
  entities: [
    defineEntity('employees', {
      schema: z.object({ department: z.string(), employeeId: z.string(), lastName: z.string(), age: z.int32() }),
      table: 'Employees',
      key: { partition: '{department}', row: 'empid_{employeeId}' },
      existing: { properties: { lastName: 'LastName', age: 'Age' } },
      indexes: {
        byLastName: indexEntity({
          table: 'employeeids',
          partition: '{department}',
          row: '{lastName}',
          holds: '{department}|{employeeId}',
        }),
      },
      access,
    }),
  ],
});
const [employees] = company.list as [Entity];
const employeeRows = existingRows('Employees').filter((_, at) => at % 5 === 0);
const requestRows = existingRows('RequestLog')
  .filter((row) => row.includes('"PartitionKey":"20240301"'))
  .slice(0, 20);

beforeAll(async () => {
  await loadRows(openTable(connection, 'Employees'), employeeRows);
  await loadRows(openTable(connection, 'RequestLog'), requestRows);
});

test('the log tail pattern: keys of reverse ticks are instants, the last one first', async () => {
  const app = openApp(import.meta.url, log);
  await app.provision();
  const times = (await Array.fromAsync(app.store.requests.range({ day: '20240301' }))).map(({ loggedOn }) => loggedOn);
  expect(times).toEqual(requestRows.map((row) => asOfService(JSON.parse(row).LoggedOn)));
  expect(times).toEqual(times.toSorted().toReversed());
});

test('an index has the lists of ids that the program keeps in a property, and leaves those alone', async () => {
  const { engine } = await openWorld(import.meta.url, [employees]);
  const app = openApp(import.meta.url, company);
  await app.provision();
  await allPages((position: VerifyPosition | undefined) =>
    operationsCheck.verifyPage(engine, employees, { position, top: 100, repair: true, only: 'byLastName' }),
  );
  const { byLastName } = app.store.employees.by;
  // A process looks once in a second whether another one has built an index.
  await vi.waitFor(
    async () => {
      await operationsModel.markBuilt(engine, employees, 'byLastName');
      await byLastName({ department: 'none', lastName: 'none' }).page();
    },
    { timeout: PATIENCE_MS },
  );
  const wanted = Map.groupBy(
    employeeRows.map((row) => JSON.parse(row)),
    ({ Department, LastName }) => JSON.stringify([Department, LastName]),
  );
  expect(wanted.size).toBeGreaterThan(5);
  for (const [key, ofName] of wanted) {
    const [department, lastName] = JSON.parse(key);
    const found = await Array.fromAsync(byLastName({ department, lastName }));
    expect(found.map(({ employeeId }) => employeeId)).toEqual(ofName.map((row) => row.EmployeeId));
  }
  expect(await readRows(openTable(connection, 'Employees'))).toEqual(employeeRows);
});
