import type { InvocationContext } from '@azure/functions';
import { beforeAll, expect, test } from 'vitest';
import { CHECK_EVERY_MS, continueVerifyRun, readVerifyRun, sortByRun } from '../../../lib/operations/verify-run.ts';
import { employees, model, products } from '../../fixtures/model.ts';
import { appFunctions } from '../../kit/api.ts';
import { baseValues } from '../../kit/base.ts';
import { definePlaces } from '../../kit/define.ts';
import { engineWrite } from '../../kit/engine.ts';
import type { Internal } from '../../kit/internal.ts';
import { operationsCheck } from '../../kit/operations.ts';
import { countedMetrics } from '../../metrics.ts';
import { putAll } from '../../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody } from '../../world.ts';

const pace = { rate: 1_000_000, patience: 100 };
const counted = countedMetrics();
const world = await openWorld(import.meta.url);
beforeAll(async () => {
  const people = Array.from({ length: 60 }, (_, index) => somebody({ department: `D${index % 3}` }));
  await putAll(world.engine, employees, people);
  await world.settle();
});

/** An engine whose clock allows this many pages. */
const patientFor = (pages: number) => {
  let left = pages;
  const start = Date.now();
  return { engine: { ...world.engine, now: () => (left-- > 0 ? start : start + baseValues.DAY_MS) }, until: start + 1 };
};

test('a check continues after an interruption and runs once a week', async () => {
  const { partitionKey, rowKey } = { partitionKey: 'D1', rowKey: 'department' };
  await world.storage.table('employees').updateEntity({ partitionKey, rowKey, employeeCount: 7 }, 'Merge');
  expect(await readVerifyRun(world.engine, employees)).toBeUndefined();
  const first = patientFor(2);
  const begun = await continueVerifyRun(first.engine, employees, { until: first.until, ...pace });
  expect(begun).toMatchObject({ checked: 50 });
  expect(begun.finishedAt).toBeUndefined();
  expect(await counted('rowkey.verify.found')).toEqual([]);

  const done = await continueVerifyRun(world.engine, employees, { until: Date.now() + baseValues.DAY_MS, ...pace });
  expect(done.startedAt).toBe(begun.startedAt);
  expect(done.checked).toBeGreaterThan(60 * 3);
  expect(done).toMatchObject({
    found: 1,
    repaired: 1,
    findings: [{ kind: 'wrong-count', partition: 'D1', repaired: true }],
  });
  expect(await readVerifyRun(world.engine, employees)).toEqual(done);

  expect(await counted('rowkey.verify.found')).toEqual([]);
  expect(await continueVerifyRun(world.engine, employees, { until: Date.now() + baseValues.DAY_MS, ...pace })).toEqual(
    done,
  );
  const inAWeek = { ...world.engine, now: () => Date.now() + 8 * baseValues.DAY_MS };
  const again = await continueVerifyRun(inAWeek, employees, { until: Date.now() + 9 * baseValues.DAY_MS, ...pace });
  expect(again.startedAt > done.startedAt).toBe(true);
  expect(again.found).toBe(0);
});

test('a monthly check is repeated after a month, and the timer of a model without checks reads nothing', async () => {
  const inDays = (days: number) => ({ ...world.engine, now: () => Date.now() + days * baseValues.DAY_MS });
  const check = (days: number) => {
    const options = { until: Date.now() + 99 * baseValues.DAY_MS, every: CHECK_EVERY_MS.monthly, ...pace };
    return continueVerifyRun(inDays(days), products, options);
  };
  const first = await check(0);
  expect(await check(29)).toEqual(first);
  expect((await check(31)).startedAt > first.startedAt).toBe(true);
  const runtime = { model: { ...model, consistencyCheck: 'never' } } as unknown as Internal['Runtime'];
  await appFunctions.TIMERS.verify?.run(runtime, {} as InvocationContext);
});

test('the entity whose check began first is checked first, so that a large one leaves time for the others', async () => {
  const sorted = await sortByRun(world.engine, [products, employees]);
  expect(sorted.map(({ name }) => name)).toEqual(['employees', 'products']);
});

test('a check stays below its transaction rate', { tags: ['slow'] }, async () => {
  const later = { ...world.engine, now: () => Date.now() + 20 * baseValues.DAY_MS };
  const since = performance.now();
  const { checked } = await continueVerifyRun(later, employees, {
    until: Date.now() + 21 * baseValues.DAY_MS,
    rate: 500,
    patience: 0,
  });
  // Each row takes at least one transaction.
  expect(performance.now() - since).toBeGreaterThan((checked / 500) * 1_000);
});

test('a check with many findings under long keys stores as many findings as fit and finishes', {
  tags: ['slow'],
}, async () => {
  const long = (name: string) => name.padStart(200, '"');
  const people = Array.from({ length: 60 }, (_, index) =>
    somebody({ department: long('D'), lastName: long(String(index)) }),
  );
  await putAll(world.engine, employees, people);
  await world.settle();
  for (const { lastName } of people)
    await world.storage.table('employees').deleteEntity(long('D'), `lastname_${lastName}`);
  const later = { ...world.engine, now: () => Date.now() + 30 * baseValues.DAY_MS };
  const done = await continueVerifyRun(later, employees, { until: Date.now() + 31 * baseValues.DAY_MS, ...pace });
  expect(done.found).toBeGreaterThanOrEqual(people.length);
  expect(done.finishedAt).toBeDefined();
  expect(done.findings.length).toBeGreaterThan(20);
  expect(await readVerifyRun(world.engine, employees)).toEqual(done);
});

test('a check repairs what follows from an entity, and counts the rest for its alert', { tags: ['slow'] }, async () => {
  const { engine, storage } = world;
  const one = somebody({ department: 'D9' });
  const product = { categoryId: 9, productId: 9, productName: 'Tea', description: 'green' };
  await engineWrite.createEntity(engine, employees, one);
  await engineWrite.createEntity(engine, products, product);
  const [entry] = definePlaces.indexEntriesOf(employees, one).filter(({ index }) => index === 'emailCompanyWide');
  await storage.table('employeesbyemail').deleteEntity(entry?.partition ?? '', entry?.row ?? '');
  await storage.table('employees').deleteEntity('D9', `lastname_${one.lastName}`);
  const rows = await rowsOf(storage, 'products');
  const texts = rows.find(({ description }) => description === 'green');
  await storage.table('products').deleteEntity(String(texts?.partitionKey), String(texts?.rowKey));

  const later = { ...engine, now: () => Date.now() + 40 * baseValues.DAY_MS };
  const options = { until: Date.now() + 41 * baseValues.DAY_MS, ...pace };
  const repaired = await continueVerifyRun(later, employees, options);
  expect(repaired.findings.map(({ of, ...finding }) => [of, finding.repaired])).toEqual(
    expect.arrayContaining([
      ['emailCompanyWide', true],
      ['lastName', true],
    ]),
  );
  expect(repaired.repaired).toBe(repaired.found);
  await expectIndexesToAgree(storage, employees);

  // Its repair would end the listing of the row, and a person may still have its values.
  const { findings } = await continueVerifyRun(later, products, options);
  expect(findings).toMatchObject([{ kind: 'missing', repaired: false }]);
  // Every run of the week counts the finding, so that its alert stays active.
  const once = [{ by: { entity: 'products' }, much: 1 }];
  expect(await counted('rowkey.verify.found')).toEqual(once);
  await continueVerifyRun(later, products, options);
  expect(await counted('rowkey.verify.found')).toEqual(once);
  const asked = await operationsCheck.verifyPage(engine, products, { top: 100, repair: true, patience: 0 });
  expect(asked.findings).toMatchObject([{ kind: 'missing', repaired: true }]);
});

test('a check stops its repairs after a hundred, because so many point to a restored table', {
  tags: ['slow'],
}, async () => {
  const { engine, storage } = world;
  const people = Array.from({ length: 120 }, () => somebody({ department: 'D10' }));
  await putAll(engine, employees, people);
  for (const { lastName } of people) await storage.table('employees').deleteEntity('D10', `lastname_${lastName}`);
  const later = { ...engine, now: () => Date.now() + 50 * baseValues.DAY_MS };
  const { found, repaired } = await continueVerifyRun(later, employees, {
    until: Date.now() + 51 * baseValues.DAY_MS,
    ...pace,
  });
  expect(found).toBeGreaterThanOrEqual(people.length);
  expect(repaired).toBeGreaterThanOrEqual(100);
  expect(repaired).toBeLessThan(found);
});

test('a count is repaired after any number of other findings', { tags: ['slow'] }, async () => {
  const row = { partitionKey: 'D2', rowKey: 'department' };
  await world.storage.table('employees').updateEntity({ ...row, employeeCount: 7 }, 'Merge');
  const position = { table: 0, left: 150, known: Array.from({ length: 150 }, (_, index) => `finding${index}`) };
  const { findings } = await operationsCheck.verifyPage(world.engine, employees, {
    position,
    top: 1_000,
    repair: true,
    patience: 0,
  });
  expect(findings.filter(({ kind }) => kind === 'wrong-count')).toMatchObject([{ partition: 'D2', repaired: true }]);
});
