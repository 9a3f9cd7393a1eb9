import { setTimeout as sleep } from 'node:timers/promises';
import { type DequeuedMessageItem, QueueServiceClient } from '@azure/storage-queue';
import type { TypedData } from './functions-core.ts';
import type { QueueSettings } from './host-settings.ts';
import { invoke } from './invoke.ts';
import type { HostedFunction, QueueTrigger } from './load-app.ts';
import { formatError, writeLog } from './log.ts';

/** As the real host has it. A test that kills hosts does not wait for so long. */
const INVISIBLE_SECONDS = Number(process.env.ROWKEY_HOLD_SECONDS ?? 10 * 60);
const SHORTEST_POLL_MS = 100;
const BASE64 = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;

export interface QueueListener {
  /** Receives no more and resolves when the messages under way are done with. */
  stop(): Promise<void>;
}

/**
 * Calls a function for each message of its queue, with the semantics of the real host.
 *
 * A message is received with ten minutes of invisibility, renewed at half time while its function runs. Success
 * deletes it. Failure makes it visible again after `visibilityTimeout`, until it has been received `maxDequeueCount`
 * times: then it is copied to `<queue>-poison` and deleted. So is at once what is not base64 where that is the encoding.
 * A queue that is itself a poison queue has none: what fails there stays invisible, lest it come back in a fast loop.
 * If this process dies, its messages come back when their invisibility ends. The body's properties hide trigger metadata.
 *
 * It receives again as soon as no more than `newBatchThreshold` calls run, waiting between empty answers for longer
 * and longer. It does not create its queue, and waits quietly for one that is missing.
 */
export function startQueueListener(target: HostedFunction<QueueTrigger>, settings: QueueSettings): QueueListener {
  const { queueName, connection } = target.trigger;
  const service = connect(target);
  const queue = service.getQueueClient(queueName);
  const poison = queueName.endsWith('-poison') ? undefined : service.getQueueClient(`${queueName}-poison`);
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let lastTrouble = '';

  async function poll() {
    let pause = SHORTEST_POLL_MS;
    while (!stopping.signal.aborted) {
      if (running.size > settings.newBatchThreshold) {
        await Promise.race(running);
        continue;
      }
      const messages = await receive();
      for (const message of messages) {
        const work: Promise<void> = handle(message).finally(() => running.delete(work));
        running.add(work);
      }
      if (messages.length > 0) pause = SHORTEST_POLL_MS;
      else {
        // Cut short by the stop.
        await sleep(pause, undefined, { signal: stopping.signal }).catch(() => undefined);
        pause = Math.min(pause * 2 * (0.8 + 0.4 * Math.random()), settings.maxPollingInterval);
      }
    }
  }

  async function receive(): Promise<readonly DequeuedMessageItem[]> {
    try {
      const { receivedMessageItems } = await queue.receiveMessages({
        numberOfMessages: settings.batchSize,
        visibilityTimeout: INVISIBLE_SECONDS,
      });
      lastTrouble = '';
      return receivedMessageItems;
    } catch (error) {
      const trouble = readErrorCode(error);
      // A storage that is away is told of once, not at every poll.
      if (trouble !== 'QueueNotFound' && trouble !== lastTrouble)
        writeLog('warning', target.name, `cannot read the queue ${queueName}: ${formatError(error)}`);
      lastTrouble = trouble;
      return [];
    }
  }

  /** Never rejects: where storage fails here, the message comes back when its invisibility ends. */
  async function handle(message: DequeuedMessageItem) {
    const lease = leaseMessage(message);
    try {
      const text = decode(message.messageText, settings.messageEncoding);
      // Received too often without an end: the process died over it each time.
      const lost = poison && message.dequeueCount > settings.maxDequeueCount;
      const succeeded = text !== undefined && !lost && (await call(message, text));
      const popReceipt = await lease.release();
      if (succeeded) await queue.deleteMessage(message.messageId, popReceipt);
      else if (!poison) return;
      else if (text !== undefined && message.dequeueCount < settings.maxDequeueCount)
        await queue.updateMessage(
          message.messageId,
          popReceipt,
          undefined,
          Math.round(settings.visibilityTimeout / 1000),
        );
      else {
        await poison.createIfNotExists();
        await poison.sendMessage(message.messageText);
        await queue.deleteMessage(message.messageId, popReceipt);
        writeLog('warning', target.name, `message ${message.messageId} moved to ${queueName}-poison`);
      }
    } catch (error) {
      writeLog('error', target.name, `cannot finish message ${message.messageId}: ${formatError(error)}`);
    } finally {
      await lease.release();
    }
  }

  /** Whether the function succeeded; its failure is logged already. */
  function call(message: DequeuedMessageItem, text: string): Promise<boolean> {
    const triggerMetadata = overlayBody(text, {
      QueueTrigger: { string: text },
      DequeueCount: { int: message.dequeueCount },
      Id: { string: message.messageId },
      InsertionTime: { json: JSON.stringify(message.insertedOn) },
      NextVisibleTime: { json: JSON.stringify(message.nextVisibleOn) },
      ExpirationTime: { json: JSON.stringify(message.expiresOn) },
      PopReceipt: { string: message.popReceipt },
    });
    return invoke(target, { data: { string: text }, triggerMetadata }).then(
      () => true,
      () => false,
    );
  }

  /** Renews the invisibility until released; every renewal changes the receipt with which the message is deleted. */
  function leaseMessage({ messageId, popReceipt }: DequeuedMessageItem) {
    let receipt = popReceipt;
    let renewal: Promise<void> = Promise.resolve();
    const renew = async () => {
      try {
        const answer = await queue.updateMessage(messageId, receipt, undefined, INVISIBLE_SECONDS);
        receipt = answer.popReceipt ?? receipt;
      } catch (error) {
        writeLog('warning', target.name, `cannot renew message ${messageId}: ${formatError(error)}`);
      }
    };
    const timer = setInterval(
      () => {
        renewal = renewal.then(renew);
      },
      (INVISIBLE_SECONDS / 2) * 1000,
    );
    return {
      async release() {
        clearInterval(timer);
        await renewal;
        return receipt;
      },
    };
  }

  function connect({ name }: HostedFunction): QueueServiceClient {
    try {
      // Few retries: what fails for longer is polled again anyway, and must not hold up the stop.
      const retryOptions = { maxTries: 3, maxRetryDelayInMs: 1000 };
      return QueueServiceClient.fromConnectionString(process.env[connection] ?? '', { retryOptions });
    } catch {
      // Without the SDK's reason, which may hold what was set.
      throw new Error(
        `The function ${name} needs the environment variable ${connection}: a storage connection string.`,
      );
    }
  }

  const polling = poll();
  return {
    async stop() {
      stopping.abort();
      await polling;
      await Promise.all(running);
    },
  };
}

/**
 * As the real host does it (`ApplyBindingData`): the top-level properties of a JSON object are put over the metadata, ignoring
 * case, but not arrays and nulls. Scalars become texts.
 */
function overlayBody(text: string, metadata: Record<string, TypedData>): Record<string, TypedData> {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return metadata;
    const over = { ...metadata };
    for (const [name, value] of Object.entries(body)) {
      if (value === null || Array.isArray(value)) continue;
      const known = Object.keys(metadata).find((other) => other.toLowerCase() === name.toLowerCase());
      over[known ?? name] = typeof value === 'object' ? { json: JSON.stringify(value) } : { string: String(value) };
    }
    return over;
  } catch {
    // Not JSON, or nested too deeply for the host.
    return metadata;
  }
}

/** The text of a message, or `undefined` for one that is not base64 and should be. */
function decode(text: string, encoding: QueueSettings['messageEncoding']): string | undefined {
  if (encoding === 'none') return text;
  return BASE64.test(text) ? Buffer.from(text, 'base64').toString('utf8') : undefined;
}

function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
