import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';
import { createEngine } from '../../lib/engine/engine.ts';
import { createEntity } from '../../lib/engine/write/entity-store.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { verifyPage } from '../../lib/operations/verify.ts';
import { provision } from '../../lib/storage/provision.ts';
import { readRow } from '../../lib/storage/rows.ts';
import { openStorage } from '../../lib/storage/storage.ts';
import { createMemoryStorage } from '../../lib/testing/index.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { deploy } from '../fixtures/deploy.ts';
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
  const storage = openStorage(createMemoryStorage());
  await provision(storage, resourcesOf([notes], Date.now()));
  const engine = createEngine(storage, { timing: QUICK });
  const tags = Array.from({ length: 30 }, (_, index) => `t${index + 10}`);
  await storage.table('notesbytag').createEntity({ partitionKey: 't10', rowKey: 'one', Foreign: true });
  await createEntity(engine, notes, { id: 'one', tags });
  const log = { warn: () => undefined, error: () => undefined };
  await createQueueWorker({ engine, entities: [notes], log }, { lastLogged: () => '' }).settle();
  const rows = await Promise.all(
    tags.map((partition) => readRow(storage, { table: 'notesbytag', partition, row: 'one' })),
  );
  expect(rows.map((row) => row?.properties.SourceRow)).toEqual([undefined, ...tags.slice(1).map(() => 'note')]);
  expect(rows[0]?.properties).toMatchObject({ Foreign: true });
  const { findings } = await verifyPage(engine, notes, { top: 100, repair: true, patience: 0 });
  expect(findings).toMatchObject([{ kind: 'conflict', partition: 't10', repaired: false }]);
});
