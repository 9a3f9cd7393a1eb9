import pMap from 'p-map';
import { deleteMessage, type ReceivedMessage, receiveMessages } from '../../storage/messages.ts';
import { inPattern } from '../../telemetry/span.ts';
import { listParts } from '../reconcile/queues.ts';
import { type Consumer, consumePoison, consumerOf, MAX_ATTEMPTS, reasonOf } from './consume.ts';

/** Less than the minute between two runs, so that the next run sees the messages that this one could not handle. */
const HIDE_POISON_SECONDS = 50;
/** Longer than one message takes. A message of a process that died comes back to a later run. */
const HIDE_WORK_SECONDS = 600;
/** The most messages that one request returns: https://learn.microsoft.com/rest/api/storageservices/get-messages */
const BATCH = 32;
const DRAIN_CONCURRENCY = 8;

interface DrainOptions {
  /** No batch starts after this time, in milliseconds. */
  readonly until: number;
  /** The queues of parts that the model no longer declares. */
  readonly formerParts?: readonly string[];
}

/**
 * Handles the messages that no queue trigger receives: those of poison queues, and those of parts that the model no longer
 * declares.
 *
 * The functions host moves messages to the queues `<queue>-poison`. Each is sent back to its queue or recorded as poison. A queue
 * trigger cannot do this: the host passes the message as metadata, and @azure/functions overflows the stack on a deeply nested one before
 * it calls the function.
 *
 * A message is deleted last. If the process dies before that, the message becomes visible again, and poison is recorded again under
 * the same id. An empty queue costs one storage transaction. Throws if some messages could not be handled; the next run retries them.
 */
export const drainQueues = inPattern(
  'poison messages',
  async (consumer: Consumer, { until, formerParts = [] }: DrainOptions): Promise<void> => {
    const poison = listParts(consumer.engine).map((part) => `${part}-poison`);
    const drained = await Promise.allSettled(
      [...poison, ...formerParts].map((queue) => drainQueue(consumer, queue, until)),
    );
    for (const result of drained) if (result.status === 'rejected') throw result.reason;
  },
);

async function drainQueue(consumer: Consumer, queue: string, until: number): Promise<void> {
  const { now, storage } = consumer.engine;
  const hiddenFor = isPoison(queue) ? HIDE_POISON_SECONDS : HIDE_WORK_SECONDS;
  let failed = 0;
  let received: ReceivedMessage[];
  do {
    received = await receiveMessages(storage, queue, { limit: BATCH, hiddenFor });
    const handled = await pMap(received, (message) => tryHandle(consumer, message), { concurrency: DRAIN_CONCURRENCY });
    failed += handled.filter((isHandled) => !isHandled).length;
  } while (received.length === BATCH && now() < until);
  if (failed > 0) throw new Error(`${failed} messages of ${queue} could not be handled and stay there.`);
}

function isPoison(queue: string): boolean {
  return queue.endsWith('-poison');
}

async function tryHandle(consumer: Consumer, message: ReceivedMessage): Promise<boolean> {
  const { queue, id, text, insertedAt } = message;
  const handle = isPoison(queue) ? consumePoison : consumerOf(queue);
  // The host has used all attempts. Attempts to read the poison queue do not count.
  const attempts = isPoison(queue) ? MAX_ATTEMPTS : message.attempts;
  try {
    await handle(consumer, { queue, id, attempts, insertedAt, body: bodyOf(text) });
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
