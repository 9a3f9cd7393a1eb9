import pMap from 'p-map';
import { INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE } from '../engine/reconcile/intent.ts';
import { storageCall } from '../storage/errors.ts';
import type { Storage } from '../storage/storage.ts';

interface QueueState {
  readonly queue: string;
  /** The estimate of storage, with the hidden messages: intents of writes in progress, reminders and delayed messages. */
  readonly messages: number;
  /** When the oldest message that a consumer could receive was sent, in milliseconds; undefined if none waits. */
  readonly oldestWaitingSince: number | undefined;
}

/** Describes the queues of the engine and their poison queues. Two storage transactions each. */
export function readQueueStates(storage: Storage): Promise<QueueState[]> {
  const names = [INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE].flatMap((queue) => [queue, `${queue}-poison`]);
  return pMap(names, async (queue) => {
    const client = storage.queue(queue);
    const [properties, peeked] = await Promise.all([
      storageCall(client.getProperties(), client.name),
      storageCall(client.peekMessages({ numberOfMessages: 1 }), client.name),
    ]);
    return {
      queue,
      messages: properties.approximateMessagesCount ?? 0,
      oldestWaitingSince: peeked.peekedMessageItems[0]?.insertedOn.getTime(),
    };
  });
}
