import { setTimeout as sleep } from 'node:timers/promises';
import { type DequeuedMessageItem, QueueServiceClient } from '@azure/storage-queue';
import type { TypedData } from './functions-core.ts';
import type { QueueSettings } from './host-settings.ts';
import { invoke } from './invoke.ts';
import type { HostedFunction, QueueTrigger } from './load-app.ts';
import { formatError, writeLog } from './log.ts';

/** Ten minutes, as in the real host. Tests that kill hosts set a shorter time. */
const INVISIBLE_SECONDS = Number(process.env.ROWKEY_HOLD_SECONDS ?? 10 * 60);
const SHORTEST_POLL_MS = 100;
const BASE64 = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;

interface QueueListener {
  /** Receives no more messages, and resolves when those in progress are finished. */
  stop(): Promise<void>;
}

/**
 * Calls a function for each message of its queue, with the semantics of the real host.
 *
 * A message is received with ten minutes of invisibility, renewed at half time while its function runs. Success
 * deletes it. Failure makes it visible again after `visibilityTimeout`, until it has been received `maxDequeueCount`
 * times: then it is copied to `<queue>-poison` and deleted. With base64 encoding, any other text is moved there immediately.
 * A poison queue has no poison queue of its own: a message that fails there stays invisible, to avoid a fast loop. If this
 * process dies, its messages become visible when their invisibility ends. Properties of the body hide trigger metadata.
 *
 * The listener receives again as soon as no more than `newBatchThreshold` calls run, and waits longer after each empty
 * response. It does not create the queue, and logs nothing while the queue is missing.
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
        // The stop interrupts the sleep.
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
      // Logs unavailable storage once, not at every poll.
      if (trouble !== 'QueueNotFound' && trouble !== lastTrouble)
        writeLog('warning', target.name, `cannot read the queue ${queueName}: ${formatError(error)}`);
      lastTrouble = trouble;
      return [];
    }
  }

  /** Never rejects: if storage fails, the message becomes visible when its invisibility ends. */
  async function handle(message: DequeuedMessageItem) {
    const lease = leaseMessage(message);
    try {
      const text = decode(message.messageText, settings.messageEncoding);
      // Received too often without a result: the process died each time.
      const isLost = poison && message.dequeueCount > settings.maxDequeueCount;
      const isDone = text !== undefined && !isLost && (await call(message, text));
      const popReceipt = await lease.release();
      if (isDone) await queue.deleteMessage(message.messageId, popReceipt);
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

  /** Returns true if the function succeeded. `invoke` has logged a failure. */
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

  /** Renews the invisibility until `release`, which returns the latest receipt: each renewal changes it. */
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
      // Few retries: the next poll tries again anyway, and a stop must not wait for them.
      const retryOptions = { maxTries: 3, maxRetryDelayInMs: 1000 };
      return QueueServiceClient.fromConnectionString(process.env[connection] ?? '', { retryOptions });
    } catch {
      // Omits the SDK's reason, which may contain the value of the variable.
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
 * Does what `ApplyBindingData` of the real host does: the top-level properties of a JSON object replace metadata of the same name,
 * ignoring case. Arrays and nulls are skipped, and scalars become text.
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

/** Returns undefined if the encoding is base64 and the text is not. */
function decode(text: string, encoding: QueueSettings['messageEncoding']): string | undefined {
  if (encoding === 'none') return text;
  return BASE64.test(text) ? Buffer.from(text, 'base64').toString('utf8') : undefined;
}

function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
