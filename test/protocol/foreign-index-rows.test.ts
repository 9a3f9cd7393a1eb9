import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';
import { createMemoryStorage } from '../../lib/testing/index.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineCore, engineWrite } from '../kit/engine.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageRows, storageTables } from '../kit/storage.ts';
import { QUICK } from '../world.ts';

const { notes } = deploy(
  defineEntity('notes', {
    schema: z.object({ id: z.string(), tags: z.array(z.string()).max(40) }),
    table: 'notes',
    key: { partition: '{id}', row: 'note' },
    indexes: { tag: interPartitionIndex({ table: 'notesbytag', partition: '{tags[]}', row: '{id}' }) },
    access: { read: [], write: [] },
  }),
);

test('a row of another program in an index does not keep the other entries of its message from being written', async () => {
  const storage = storageAccounts.openStorage(createMemoryStorage());
  await storageTables.provision(storage, operationsModel.resourcesOf([notes], Date.now()));
  const engine = engineCore.createEngine(storage, { timing: QUICK });
  const tags = Array.from({ length: 30 }, (_, index) => `t${index + 10}`);
  await storage.table('notesbytag').createEntity({ partitionKey: 't10', rowKey: 'one', Foreign: true });
  await engineWrite.createEntity(engine, notes, { id: 'one', tags });
  const log = { warn: () => undefined, error: () => undefined };
  await createQueueWorker({ engine, entities: [notes], log }, { lastLogged: () => '' }).settle();
  const rows = await Promise.all(
    tags.map((partition) => storageRows.readRow(storage, { table: 'notesbytag', partition, row: 'one' })),
  );
  expect(rows.map((row) => row?.properties.SourceRow)).toEqual([undefined, ...tags.slice(1).map(() => 'note')]);
  expect(rows[0]?.properties).toMatchObject({ Foreign: true });
  const { findings } = await operationsCheck.verifyPage(engine, notes, { top: 100, repair: true, patience: 0 });
  expect(findings).toMatchObject([{ kind: 'conflict', partition: 't10', repaired: false }]);
});
