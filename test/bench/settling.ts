import { consumeIntent } from '../../lib/engine/consume/consume.ts';
import { createEngine } from '../../lib/engine/engine.ts';
import { INDEX_CHANGES_QUEUE } from '../../lib/engine/reconcile/intent.ts';
import { createEntity } from '../../lib/engine/write/entity-store.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { measureCost } from '../../lib/storage/cost.ts';
import { provision } from '../../lib/storage/provision.ts';
import { openStorage } from '../../lib/storage/storage.ts';
import { employees, model } from '../fixtures/model.ts';
import { createEmployee } from './requests.ts';

/** The transactions of one create, of its caller and of the queue together, by who settles the index entries. */

interface SettlingCost {
  readonly caller: number;
  /** Receiving and deleting the messages included. */
  readonly queue: number;
}

const HELD_SECONDS = 600;

export async function countSettling(connectionString: string): Promise<Record<'inline' | 'queue', SettlingCost>> {
  const storage = openStorage({ connectionString });
  await provision(storage, resourcesOf(model.list, Date.now()));
  const queue = storage.queue(INDEX_CHANGES_QUEUE);
  const log = { warn: () => undefined, error: console.error };
  const count = async (settleInline?: number): Promise<SettlingCost> => {
    const engine = createEngine(storage, settleInline === undefined ? {} : { settleInline });
    const caller = await measureCost(async (cost) => {
      await createEntity(engine, employees, createEmployee());
      return cost.transactions;
    });
    const queued = await measureCost(async (cost) => {
      const { receivedMessageItems } = await queue.receiveMessages({
        numberOfMessages: 16,
        visibilityTimeout: HELD_SECONDS,
      });
      for (const { messageId: id, popReceipt, messageText, dequeueCount, insertedOn } of receivedMessageItems) {
        const received = { queue: INDEX_CHANGES_QUEUE, id, attempts: dequeueCount, insertedAt: insertedOn.getTime() };
        await consumeIntent({ engine, entities: model.list, log }, { ...received, body: JSON.parse(messageText) });
        await queue.deleteMessage(id, popReceipt);
      }
      // A poll that receives nothing is not a cost of the write.
      return receivedMessageItems.length === 0 ? 0 : cost.transactions;
    });
    return { caller, queue: queued };
  };
  return { inline: await count(), queue: await count(0) };
}
