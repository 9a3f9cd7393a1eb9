import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll } from 'vitest';
import { buildFixtures } from '../fixtures/build.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsBackup } from '../kit/operations.ts';
import { storageAccounts } from '../kit/storage.ts';
import { type Product, useProduct } from '../product.ts';
import { testStorage } from '../storage.ts';
import { model } from './model.ts';

const app = {
  model,
  folder: fileURLToPath(new URL('../../dist/looking-back', import.meta.url)),
  packs: undefined,
};

/** The app of looking-back/model.ts with a backup in another account, whose first snapshot is that of the empty app. */
export function useBackedUpProduct(url: string, backup: string): Product {
  beforeAll(() => buildFixtures(app, '../looking-back/functions.ts'));
  const product = useProduct(url, { app, backup });
  beforeAll(async () => {
    const accounts = [{ connectionString: testStorage(backup), name: 'backup' }];
    const storage = { ...product.storage, backup: storageAccounts.openStorage({ accounts }, '') };
    const { finishedAt = '' } = await operationsBackup.takeSnapshot(engineCore.createEngine(storage), model.list, {
      days: 7,
    });
    // Its clock has whole seconds, so its end may be later than now. The backup begins there.
    while (Date.now() <= Date.parse(finishedAt)) await sleep(50);
  });
  return product;
}

/** The present instant, which no row has as its time. */
export async function pause(): Promise<string> {
  await sleep(5);
  const now = new Date().toISOString();
  await sleep(5);
  return now;
}
