import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, intraPartitionIndex } from '../../lib/define.ts';
import { createMemoryStorage } from '../../lib/testing/index.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineCore, engineWrite } from '../kit/engine.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageRows, storageTables } from '../kit/storage.ts';
import { rowsOf } from '../world.ts';

const { tools } = deploy(
  defineEntity('tools', {
    schema: z.object({ shed: z.string(), tool: z.string(), size: z.string(), color: z.string().optional() }),
    table: 'tools',
    sharedTable: true,
    key: { partition: '{shed}', row: 'tool_{tool}' },
    indexes: { size: intraPartitionIndex({ row: 'size_{size}_{tool}' }) },
    access: { read: [], write: [] },
  }),
);

async function openShared() {
  const memory = createMemoryStorage();
  const storage = storageAccounts.openStorage(memory);
  await storageTables.provision(storage, operationsModel.resourcesOf([tools], Date.now()));
  return { memory, storage, engine: engineCore.createEngine(storage) };
}

test('a row that another program puts in the place of a copy is not deleted by a write that has read the copy', async () => {
  const { memory, storage, engine } = await openShared();
  const key = { shed: 's', tool: 't' };
  await engineWrite.createEntity(engine, tools, { ...key, size: 'big' });
  const copy = { partitionKey: 's', rowKey: 'size_big_t' };
  let isReplaced = false;
  memory.intercept = async ({ url }, send) => {
    if (url.includes('batch') && !isReplaced) {
      isReplaced = true;
      await storage.table('tools').updateEntity({ ...copy, Foreign: true }, 'Replace');
    }
    return send();
  };
  await engineWrite.patchEntity(engine, tools, key, { size: 'small' }).catch(() => undefined);
  expect(isReplaced).toBe(true);
  const left = await storageRows.readRow(storage, { table: 'tools', partition: 's', row: copy.rowKey });
  expect(left?.properties).toMatchObject({ Foreign: true });
});

test('a copy follows its entity, unless another program has its key', async () => {
  const { storage, engine } = await openShared();
  const table = storage.table('tools');
  const key = { shed: 's', tool: 't' };
  const sizes = async () =>
    (await rowsOf(storage, 'tools'))
      .filter(({ rowKey }) => String(rowKey).startsWith('size_'))
      .map(({ rowKey, color, Foreign }) => [rowKey, color ?? Foreign]);
  await engineWrite.createEntity(engine, tools, { ...key, size: 'big' });
  await engineWrite.patchEntity(engine, tools, key, { color: 'red' });
  expect(await sizes()).toEqual([['size_big_t', 'red']]);
  await engineWrite.patchEntity(engine, tools, key, { size: 'small' });
  expect(await sizes()).toEqual([['size_small_t', 'red']]);
  // A copy that is missing, as if the index were new, is added.
  await table.deleteEntity('s', 'size_small_t');
  await engineWrite.patchEntity(engine, tools, key, { color: 'blue' });
  expect(await sizes()).toEqual([['size_small_t', 'blue']]);
  // A row of another program in its place is neither replaced nor deleted.
  const foreign = { partitionKey: 's', rowKey: 'size_small_t', Foreign: 'theirs' };
  await table.updateEntity(foreign, 'Replace');
  await expect(engineWrite.patchEntity(engine, tools, key, { color: 'green' })).rejects.toMatchObject({
    code: 'duplicate-value',
    field: 'size',
  });
  await engineWrite.patchEntity(engine, tools, key, { size: 'huge' });
  await table.createEntity({ ...foreign, rowKey: 'size_tiny_t' });
  await expect(engineWrite.patchEntity(engine, tools, key, { size: 'tiny' })).rejects.toMatchObject({
    code: 'duplicate-value',
  });
  await engineWrite.deleteEntity(engine, tools, key);
  expect(await sizes()).toEqual([
    ['size_small_t', 'theirs'],
    ['size_tiny_t', 'theirs'],
  ]);
});
