import { dirname } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { loadSamples } from '../../local/packs/load-samples.ts';
import { model } from '../../model/model.ts';
import { defineKeys } from '../../test/kit/define.ts';
import { engineCore } from '../../test/kit/engine.ts';
import { operationsModel } from '../../test/kit/operations.ts';
import { useProduct } from '../../test/product.ts';

const product = useProduct(import.meta.url, { app: deployedApp });
beforeAll(async () => {
  await loadSamples({ folder: dirname(product.keyFile), url: product.url, token: await product.token('hr') });
});

test('another key of employees is rejected until npm run purge has deleted them with all they left elsewhere', async () => {
  const { run, storage } = product;
  const changed = model.list.map((entity) =>
    entity.name === 'employees' ? { ...entity, row: defineKeys.compileTemplate('{employeeId}') } : entity,
  );
  const guard = () => operationsModel.guardModel(engineCore.createEngine(storage), changed, undefined);
  const rowsIn = async (table: string) => (await Array.fromAsync(storage.table(table).listEntities())).length;
  const ofEmployees = ['employeesbyemail', 'employeesbyid', 'employeesbylastname'];

  const refused = await guard().catch((error: Error) => error.message);
  expect(refused).toMatch(
    /employees: the row changed from empid_\{employeeId\} to \{employeeId\}, and the table employees has rows that no request would find, .*; undo the change, name the former key as key\.former to move them, or delete the rows with the former release: npm run purge -- employees\.$/,
  );

  const before = await Promise.all(ofEmployees.map(rowsIn));
  expect(before.every((rows) => rows > 0)).toBe(true);
  expect(await run('purge', 'employees')).toEqual({
    code: 0,
    said: expect.stringMatching(/^\d+ employees would be deleted, .* Nothing is deleted without --yes\.\n$/),
  });
  expect(await Promise.all(ofEmployees.map(rowsIn))).toEqual(before);
  expect(await run('purge', 'nobody')).toEqual({
    code: 1,
    said: expect.stringMatching(/Entity "nobody" not found; accepted are .*employees/),
  });

  expect(await run('purge', 'employees', '--yes')).toEqual({
    code: 0,
    said: expect.stringMatching(/^(\d+) of \1 employees deleted\.\n$/),
  });
  const left = async () => (await storage.queue('index-changes').getProperties()).approximateMessagesCount;
  await expect.poll(left).toBe(0);
  expect(await Promise.all(ofEmployees.map(rowsIn))).toEqual(ofEmployees.map(() => 0));
  expect((await run('verify', 'employees')).said).toMatch(/ 0 do not agree\.\n$/);
  expect(await product.as('hr')('GET', '/api/departments/Sales')).toMatchObject({ body: { employeeCount: 0 } });
  expect(await guard()).toEqual([]);
});
