import { expect, test } from 'vitest';
import { employees } from './fixtures/model.ts';
import { engineWrite } from './kit/engine.ts';
import { expectIndexesToAgree, openWorld, somebody } from './world.ts';

const world = await openWorld(import.meta.url);

const leave = (rowKey: string) =>
  world.storage.table('employeesbyemail').createEntity({
    partitionKey: 'left',
    rowKey,
    EntityType: 'employees',
    SourcePartition: 'Sales',
    SourceRow: 'empid_000000',
  });
const disagreement = () =>
  expectIndexesToAgree(world.storage, employees).then(
    () => undefined,
    (error: { actual?: unknown }) => error.actual,
  );

test('reports a leftover index row, and nothing else, as long as the row exists', async () => {
  await engineWrite.createEntity(world.engine, employees, somebody());
  await world.settle();
  expect(await disagreement()).toBeUndefined();
  await leave('1');
  const difference = [expect.stringMatching(/^employees: left over in \["employeesbyemail","left","1"\]/)];
  expect(await disagreement()).toEqual(difference);
  expect(await disagreement()).toEqual(difference);
});

test('does not report a difference again that an earlier test has reported', async () => {
  expect(await disagreement()).toBeUndefined();
  await leave('2');
  expect(await disagreement()).toEqual([expect.stringContaining('["employeesbyemail","left","2"]')]);
});
