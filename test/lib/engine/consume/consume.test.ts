import { expect, test } from 'vitest';
import { consumeIntent } from '../../../../lib/engine/consume/consume.ts';
import { employees } from '../../../fixtures/model.ts';
import { engineCore, Transfer } from '../../../kit/engine.ts';
import { storageAccounts } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

test('handles a message of a later release that has an unknown field', async () => {
  const engine = engineCore.createEngine(
    storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }),
  );
  await engine.storage.queue('index-changes').createIfNotExists();
  const logged: string[] = [];
  const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };
  const later = { version: 1, fieldOfALaterRelease: 'as this' };
  const body = { ...later, intent: 'one', entity: 'employees', table: 'employees', items: [] };
  const message = { queue: 'index-changes', id: 'one', attempts: 1, insertedAt: Date.now(), body };
  await consumeIntent({ engine, entities: [employees], log }, message);
  expect(logged).toEqual([]);
  const transfer = { operation: 'archive', operationId: 'one', entity: 'employees', key: {}, incarnation: 'one' };
  expect(Transfer.safeParse({ ...later, ...transfer }).success).toBe(true);
});
