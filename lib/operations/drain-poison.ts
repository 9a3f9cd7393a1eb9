import pMap from 'p-map';
import { type Consumer, consumePoison } from '../engine/consume/consume.ts';
import { MAX_ATTEMPTS, reasonOf } from '../engine/consume/poison.ts';
import { INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE } from '../engine/reconcile/intent.ts';
import { deleteMessage, type ReceivedMessage, receiveMessages } from '../storage/messages.ts';
import { inPattern } from '../telemetry/span.ts';

const QUEUES = [INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE];
/** Less than the minute between two runs, so that the next run sees the messages that this one could not handle. */
const HIDE_SECONDS = 50;
/** The most messages that one request returns: https://learn.microsoft.com/rest/api/storageservices/get-messages */
const BATCH = 32;
const CONCURRENCY = 8;

/**
 * Handles the messages that the functions host moved to the queues `<queue>-poison`: sends each back to its queue or
 * records it as poison. A queue trigger cannot do this: the host passes the message as metadata, and @azure/functions
 * overflows the stack on a deeply nested one before it calls the function.
 *
 * A message is deleted last. If the process dies before that, the message becomes visible again and is recorded again under
 * the same id. An empty queue costs one storage transaction. No batch starts after `until` (milliseconds). Throws if some
 * messages could not be handled; the next run retries them.
 */
export const drainPoison = inPattern(
  'poison messages',
  async (consumer: Consumer, { until }: { readonly until: number }): Promise<void> => {
    const drained = await Promise.allSettled(QUEUES.map((queue) => drainQueue(consumer, `${queue}-poison`, until)));
    for (const result of drained) if (result.status === 'rejected') throw result.reason;
  },
);

async function drainQueue(consumer: Consumer, queue: string, until: number): Promise<void> {
  const { now, storage } = consumer.engine;
  let failed = 0;
  let received: ReceivedMessage[];
  do {
    received = await receiveMessages(storage, queue, { limit: BATCH, hiddenFor: HIDE_SECONDS });
    const handled = await pMap(received, (message) => tryHandle(consumer, message), { concurrency: CONCURRENCY });
    failed += handled.filter((isHandled) => !isHandled).length;
  } while (received.length === BATCH && now() < until);
  if (failed > 0) throw new Error(`${failed} messages of ${queue} could not be handled and stay there.`);
}

async function tryHandle(consumer: Consumer, message: ReceivedMessage): Promise<boolean> {
  const { queue, id, text, insertedAt } = message;
  try {
    // The host has used all attempts. Attempts to read the poison queue do not count.
    await consumePoison(consumer, { queue, id, attempts: MAX_ATTEMPTS, insertedAt, body: bodyOf(text) });
    await deleteMessage(consumer.engine.storage, message);
    return true;
  } catch (error) {
    consumer.log.warn(`The message ${id} of ${queue} stays for the next run: ${reasonOf(error)}`);
    return false;
  }
}

/** Parses JSON as the host does. A JSON string stays escaped, because a table cannot store every unescaped character. */
function bodyOf(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'string' ? text : body;
  } catch {
    return text;
  }
}
