import { setTimeout as sleep } from 'node:timers/promises';
import type { Message } from './kit/engine.ts';
import type { Storage } from './kit/storage.ts';

/** Receives the next message of a queue, as a host does, with the receipt to delete it. */
export async function receiveMessage(
  storage: Storage,
  queue: string,
): Promise<{ readonly message: Message; readonly receipt: string }> {
  for (;;) {
    const { receivedMessageItems } = await storage.queue(queue).receiveMessages({ visibilityTimeout: 600 });
    const [message] = receivedMessageItems;
    if (message) {
      const { messageId: id, popReceipt: receipt, dequeueCount: attempts, insertedOn, messageText } = message;
      const insertedAt = insertedOn.getTime();
      return { receipt, message: { queue, id, attempts, insertedAt, body: JSON.parse(messageText) } };
    }
    await sleep(50);
  }
}
