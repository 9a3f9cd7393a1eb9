import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, intraPartitionIndex } from '../../lib/define.ts';
import { createEngine } from '../../lib/engine/engine.ts';
import { createEntity, patchEntity } from '../../lib/engine/write/entity-store.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { provision } from '../../lib/storage/provision.ts';
import { readRow } from '../../lib/storage/rows.ts';
import { openStorage } from '../../lib/storage/storage.ts';
import { createMemoryStorage } from '../../lib/testing/index.ts';
import { deploy } from '../fixtures/deploy.ts';

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
  const storage = openStorage(memory);
  await provision(storage, resourcesOf([tools], Date.now()));
  const engine = createEngine(storage);
  const key = { shed: 's', tool: 't' };
  await createEntity(engine, tools, { ...key, size: 'big' });
  const copy = { partitionKey: 's', rowKey: 'size_big_t' };
  let isReplaced = false;
  memory.intercept = async ({ url }, send) => {
    if (url.includes('batch') && !isReplaced) {
      isReplaced = true;
      await storage.table('tools').updateEntity({ ...copy, Foreign: true }, 'Replace');
    }
    return send();
  };
  await patchEntity(engine, tools, key, { size: 'small' }).catch(() => undefined);
  expect(isReplaced).toBe(true);
  const left = await readRow(storage, { table: 'tools', partition: 's', row: copy.rowKey });
  expect(left?.properties).toMatchObject({ Foreign: true });
});
