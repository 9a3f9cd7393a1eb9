import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../../lib/index.ts';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { openEngine } from '../../../local/cli/open-copy.ts';
import { model as fixtures } from '../../fixtures/model.ts';
import { model as relations } from '../../fixtures/relations.ts';
import type { LinkedModel } from '../../kit/define.ts';
import { engineCore } from '../../kit/engine.ts';
import { operationsModel } from '../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../kit/storage.ts';

/** What a command asks of an app before it writes rows without the API. */

const KEY = { partition: '{shelf}', row: 'a_{bookId}' };
const OTHER = { partition: '{shelf}', row: 'b_{bookId}' };
const modelOf = (key: { partition: string; row: string; former?: typeof KEY }, by = '{title}', more: object = {}) =>
  defineModel({
    roles: ['reader'],
    operatorRole: 'reader',
    entities: [
      defineEntity('books', {
        schema: z.object({ shelf: z.string(), bookId: z.string(), title: z.string() }),
        table: 'books',
        key,
        indexes: { title: interPartitionIndex({ table: 'booksbytitle', partition: by, row: '{shelf}_{bookId}' }) },
        access: { read: ['reader'], write: ['reader'] },
      }),
    ],
    ...more,
  }) as unknown as LinkedModel;
const deployed = modelOf(KEY);

async function openApp(own = deployed) {
  const memory = createMemoryStorage();
  const storage = storageAccounts.openStorage(memory);
  await storageTables.provision(storage, operationsModel.resourcesOf(own.list, Date.now()));
  const engine = engineCore.createEngine(storage);
  const found = {
    options: memory,
    loadModel: async () => deployed as never,
    keys: undefined,
    credential: async () => undefined,
  };
  return {
    start: () => operationsModel.guardModel(engine, own.list, undefined),
    open: (model: LinkedModel) => openEngine(found, model, '.'),
  };
}

test('opens an app with the model that it has recorded, and one that has not started', async () => {
  const { start, open } = await openApp();
  await open(modelOf(OTHER));
  await start();
  await open(deployed);
  // A write then says that the entities are at their former key.
  await open(modelOf({ ...OTHER, former: KEY }));
});

test.each([fixtures, relations])('opens an app with each form of entity that it has recorded', async (model) => {
  const { start, open } = await openApp(model as unknown as LinkedModel);
  // The second start keeps what the first one has recorded.
  for (let starts = 0; starts < 2; starts += 1) await start();
  await open(model as unknown as LinkedModel);
});

test.each([
  ['key', modelOf(OTHER)],
  ['index', modelOf(KEY, 'all')],
])('refuses a model with another %s than the recorded one', async (_, model) => {
  const { start, open } = await openApp();
  await start();
  await expect(open(model)).rejects.toMatchObject({
    code: 'wrong-setting',
    message:
      'The app has recorded another declaration of books. Deploy the model first, or use that of the release that runs.',
  });
});

test('refuses a model with a backup whose account is not known', async () => {
  const { open } = await openApp();
  await expect(open(modelOf(KEY, '{title}', { backup: { days: 35 } }))).rejects.toThrow('set BackupStorage');
});
