import { employees, model } from '../fixtures/model.ts';
import { engineConsume, engineCore, engineReconcile, engineWrite } from '../kit/engine.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageTables } from '../kit/storage.ts';
import { createEmployee } from './requests.ts';

/** The transactions of one create, of its caller and of the queue together, by who settles the index entries. */

interface SettlingCost {
  readonly caller: number;
  /** Receiving and deleting the messages included. */
  readonly queue: number;
}

const HELD_SECONDS = 600;

export async function countSettling(connectionString: string): Promise<Record<'inline' | 'queue', SettlingCost>> {
  const storage = storageAccounts.openStorage({ connectionString });
  await storageTables.provision(storage, operationsModel.resourcesOf(model.list, Date.now()));
  const queue = storage.queue(engineReconcile.INDEX_CHANGES_QUEUE);
  const log = { warn: () => undefined, error: console.error };
  const count = async (settleInline?: number): Promise<SettlingCost> => {
    const engine = engineCore.createEngine(storage, settleInline === undefined ? {} : { settleInline });
    const caller = await storageAccounts.measureCost(async (cost) => {
      await engineWrite.createEntity(engine, employees, createEmployee());
      return cost.transactions;
    });
    const queued = await storageAccounts.measureCost(async (cost) => {
      const { receivedMessageItems } = await queue.receiveMessages({
        numberOfMessages: 16,
        visibilityTimeout: HELD_SECONDS,
      });
      for (const { messageId: id, popReceipt, messageText, dequeueCount, insertedOn } of receivedMessageItems) {
        const received = {
          queue: engineReconcile.INDEX_CHANGES_QUEUE,
          id,
          attempts: dequeueCount,
          insertedAt: insertedOn.getTime(),
        };
        await engineConsume.consumeIntent(
          { engine, entities: model.list, log },
          { ...received, body: JSON.parse(messageText) },
        );
        await queue.deleteMessage(id, popReceipt);
      }
      // A poll that receives nothing is not a cost of the write.
      return receivedMessageItems.length === 0 ? 0 : cost.transactions;
    });
    return { caller, queue: queued };
  };
  return { inline: await count(), queue: await count(0) };
}
