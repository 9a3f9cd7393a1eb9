import { type HttpClient, RestError } from '@azure/core-rest-pipeline';
import { afterAll, expect, test } from 'vitest';
import { RowkeyError } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { employees, sales } from '../fixtures/model.ts';
import { engineWrite } from '../kit/engine.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../world.ts';

/**
 * A write commits, its reply is lost, and another writer changes the entity before the SDK sends the write again. Storage then
 * rejects a write that took effect. Its index entries must follow all the same.
 */

const world = await openWorld(import.meta.url);
afterAll(async () => {
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
  await expectIndexesToAgree(world.storage, sales);
});

/** Loses the reply to the first write of the table, and calls `meanwhile` before the SDK repeats the write. */
function losing(table: string, meanwhile: () => Promise<unknown>): HttpClient {
  let isLost = false;
  return {
    async sendRequest(request) {
      const response = await httpClient.sendRequest(request);
      const { pathname } = new URL(request.url);
      const target = pathname.endsWith('$batch') ? String(request.body) : pathname;
      const isWrite = request.method !== 'GET' && new RegExp(`/${table}(\\(| |$)`).test(target);
      if (!isWrite || isLost) return response;
      isLost = true;
      await meanwhile();
      throw new RestError('The reply is lost.', { code: 'ECONNRESET', request });
    },
  };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (error: unknown) => (error instanceof RowkeyError ? error.code : String(error)),
  );
}

function employee(number: number) {
  const employeeId = String(number).padStart(6, '0');
  return { department: 'Lost', employeeId, email: `lost${number}@contoso.com`, firstName: 'A', lastName: `L${number}` };
}

const renameOther = (one: ReturnType<typeof employee>) => () =>
  engineWrite.patchEntity(world.engine, employees, one, { firstName: 'Other' });

test('a create keeps its unique value', async () => {
  const one = employee(1);
  const engine = world.engineThrough(losing('employees', renameOther(one)));
  expect(await codeOf(engineWrite.createEntity(engine, employees, one))).toBe('storage-unavailable');
  await world.settle();
  const same = { ...employee(11), email: one.email };
  expect(await codeOf(engineWrite.createEntity(world.engine, employees, same))).toBe('duplicate-value');
});

test('a change gives up its former unique value and keeps the new one', async () => {
  const one = employee(2);
  await engineWrite.createEntity(world.engine, employees, one);
  const engine = world.engineThrough(losing('employees', renameOther(one)));
  const email = 'lost2new@contoso.com';
  expect(await codeOf(engineWrite.patchEntity(engine, employees, one, { email, lastName: 'New' }))).toBe(
    'storage-unavailable',
  );
  await world.settle();
  const rows = await rowsOf(world.storage, 'employeesbyemail');
  expect(rows.filter(({ rowKey }) => [one.email, email].includes(String(rowKey))).map(({ rowKey }) => rowKey)).toEqual([
    email,
  ]);
  expect(await codeOf(engineWrite.createEntity(world.engine, employees, { ...employee(12), email }))).toBe(
    'duplicate-value',
  );
});

test('a delete does not delete an entity that was created again', async () => {
  const one = employee(3);
  await engineWrite.createEntity(world.engine, employees, one);
  const engine = world.engineThrough(losing('employees', () => engineWrite.createEntity(world.engine, employees, one)));
  expect(await codeOf(engineWrite.deleteEntity(engine, employees, one))).toBe('storage-unavailable');
  await world.settle();
  expect(await codeOf(engineWrite.createEntity(world.engine, employees, one))).toBe('duplicate-key');
});

test('each entity of a batch is counted in its totals', async () => {
  const creates = Array.from({ length: 4 }, (_, index) => {
    return { create: { branch: 'Lost', saleId: `S00001${index}`, soldOn: '2026-03-07', amount: 10 } };
  });
  const change = () => engineWrite.patchEntity(world.engine, sales, { branch: 'Lost', saleId: 'S000010' }, { tip: 1 });
  const engine = world.engineThrough(losing('sales', change));
  expect(await codeOf(engineWrite.writeBatch(engine, sales, creates))).toBe('storage-unavailable');
});
