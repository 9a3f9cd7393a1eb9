import { setTimeout as sleep } from 'node:timers/promises';
import { type Consumer, consumerOf } from '../../lib/engine/consume/consume.ts';
import { listParts } from '../../lib/engine/reconcile/queues.ts';
import { unlessRefused } from '../../lib/storage/errors.ts';
import { showMessages, sinceAborted } from './known-messages.ts';

/** How long the host holds a message. */
const HELD_FOR_SECONDS = 600;
/** The delay after a failure; the host waits for five seconds. */
const BACK_AFTER_SECONDS = 1;
/** Longer than an intent is hidden, also with the timing of production. */
const SETTLE_WITHIN_MS = 180_000;
const POLL_MS = 20;

export interface QueueWorker {
  /** Handles a batch of visible messages of each queue, and returns their number. */
  handleVisible(): Promise<number>;
  /**
   * Handles messages until the queues are empty, hidden ones immediately, as if their time had passed. Call this when no
   * writer or other consumer is running.
   */
  settle(): Promise<void>;
  /** Handles messages until the queues are empty. Waits until hidden ones become visible by themselves. */
  settleInTime(): Promise<void>;
}

/** Handles the queue messages of an app in this process. The storage of the consumer uses the client of `known-messages.ts`. */
export function createQueueWorker(consumer: Consumer, { lastLogged }: { lastLogged(): string }): QueueWorker {
  const { storage, timing } = consumer.engine;
  const queues = listParts(consumer.engine);
  // Attempts by message id, counted here, because a test may have received a message before.
  const attempts = new Map<string, number>();

  async function handleVisible() {
    let handled = 0;
    for (const queue of queues) {
      const client = storage.queue(queue);
      const { receivedMessageItems } = await client.receiveMessages({
        numberOfMessages: 16,
        visibilityTimeout: HELD_FOR_SECONDS,
      });
      handled += receivedMessageItems.length;
      await Promise.all(
        receivedMessageItems.map(async ({ messageId: id, popReceipt, messageText, insertedOn, dequeueCount }) => {
          // At least the second one, if a test has received the message.
          const attempt = Math.max((attempts.get(id) ?? 0) + 1, Math.min(dequeueCount, 2));
          attempts.set(id, attempt);
          const message = { queue, id, attempts: attempt, insertedAt: insertedOn.getTime(), body: parsed(messageText) };
          const isDone = await consumerOf(queue)(consumer, message).then(
            () => true,
            () => false,
          );
          const end = isDone
            ? client.deleteMessage(id, popReceipt)
            : client.updateMessage(id, popReceipt, messageText, BACK_AFTER_SECONDS);
          // The reply to an earlier attempt of the SDK may have been lost.
          await unlessRefused(['missing'], end);
        }),
      );
    }
    return handled;
  }

  async function settleInTime(show: () => Promise<unknown> = async () => undefined) {
    const until = Date.now() + SETTLE_WITHIN_MS;
    for (let left = 1; left > 0; ) {
      if ((await handleVisible()) > 0) continue;
      left = 0;
      // Counted after all messages were handled, because an archive sends intents.
      for (const queue of queues) left += (await storage.queue(queue).getProperties()).approximateMessagesCount ?? 0;
      if (Date.now() > until) throw new Error(`The queues do not become empty: ${lastLogged()}`);
      if (left === 0) return;
      await sleep(POLL_MS);
      await show();
    }
  }

  async function settle() {
    // A request without a response may still change storage, and the protocol relies on its time limit.
    const isSafe = () => sinceAborted() > timing.hideIntentForSeconds * 1_000;
    await settleInTime(async () => {
      if (isSafe()) await Promise.all(queues.map((queue) => showMessages(storage.queue(queue))));
    });
  }

  return { handleVisible, settle, settleInTime: () => settleInTime() };
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
