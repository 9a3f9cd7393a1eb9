import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, intraPartitionIndex } from '../../lib/define.ts';
import { createMemoryStorage } from '../../lib/testing/index.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineCore, engineWrite } from '../kit/engine.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageRows, storageTables } from '../kit/storage.ts';

const { tools } = deploy(
  defineEntity('tools', {
    schema: z.object({ shed: z.string(), tool: z.string(), size: z.string() }),
    table: 'tools',
    sharedTable: true,
    key: { partition: '{shed}', row: 'tool_{tool}' },
    indexes: { size: intraPartitionIndex({ row: 'size_{size}_{tool}' }) },
    access: { read: [], write: [] },
  }),
);

test('a row that another program puts in the place of a copy is not deleted by a write that has read the copy', async () => {
  const memory = createMemoryStorage();
  const storage = storageAccounts.openStorage(memory);
  await storageTables.provision(storage, operationsModel.resourcesOf([tools], Date.now()));
  const engine = engineCore.createEngine(storage);
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
