import type { HttpClient } from '@azure/core-rest-pipeline';
import type { DequeuedMessageItem } from '@azure/storage-queue';
import { storageAccounts } from '../../kit/storage.ts';
import { currentChance, currentProcess, VirtualTimer, wait } from './virtual-world.ts';

/**
 * Calls a function for each message of a queue as the Functions host does: ten minutes of invisibility, renewed at half time; a failed
 * message returns after five seconds, and is moved to the poison queue after five attempts. The settings are those of host.json.
 */

const INVISIBLE_SECONDS = 600;
const BACK_AFTER_SECONDS = 5;
const MOST_ATTEMPTS = 5;
const BATCH = 16;
const NEW_BATCH_BELOW = 8;
const SHORTEST_POLL_MS = 100;
/** The setting of host.json, and those of a host that is busy or has slept. */
const LONGEST_POLLS_MS = [1_000, 1_000, 4_000, 12_000];
/** Of a queue that nothing is in: a world at rest would consist of polls. */
const IDLE_POLL_MS = 30_000;
const IDLE_AFTER = 8;

interface Trigger {
  readonly account: { readonly connectionString: string; readonly httpClient: HttpClient };
  /** False if a poll would receive nothing, and is left out. */
  readonly canReceive: () => Promise<boolean>;
  /** How long a queue that nothing is in is not looked at. */
  readonly idlePollMs?: number | undefined;
  /** True if the processes that had a message before have died. */
  readonly spoils?: ((queue: string) => boolean) | undefined;
  readonly invoke: (body: unknown, metadata: Record<string, unknown>) => Promise<unknown>;
}

/** Starts to receive messages, and returns what stops it. */
export function startQueueTrigger(
  target: { readonly queue: string },
  { account, canReceive, invoke, spoils = () => false, idlePollMs = IDLE_POLL_MS }: Trigger,
): () => void {
  const storage = storageAccounts.openStorage(account);
  const [queue, poison] = [storage.queue(target.queue), storage.queue(`${target.queue}-poison`)];
  const longestPollMs = currentChance().pick(LONGEST_POLLS_MS);
  let isStopped = false;
  let running = 0;

  async function poll(): Promise<void> {
    let pause = SHORTEST_POLL_MS;
    let empty = 0;
    while (!isStopped) {
      if (running <= NEW_BATCH_BELOW) {
        const messages = (await canReceive()) ? await receive() : [];
        for (const message of messages) {
          running += 1;
          void handle(message).finally(() => {
            running -= 1;
          });
        }
        empty = messages.length > 0 ? 0 : empty + 1;
        pause = empty === 0 ? SHORTEST_POLL_MS : Math.min(pause * 2, longestPollMs);
        if (empty > IDLE_AFTER) pause = idlePollMs;
      }
      await wait(pause);
    }
  }

  async function receive(): Promise<readonly DequeuedMessageItem[]> {
    try {
      const wanted = { numberOfMessages: BATCH, visibilityTimeout: INVISIBLE_SECONDS };
      return (await queue.receiveMessages(wanted)).receivedMessageItems;
    } catch {
      return [];
    }
  }

  async function handle(message: DequeuedMessageItem): Promise<void> {
    const { messageId: id, messageText: text, dequeueCount } = message;
    const hold = holdMessage(message);
    try {
      const isDone = dequeueCount <= MOST_ATTEMPTS && (await call(message));
      const receipt = await hold.release();
      if (isDone) await queue.deleteMessage(id, receipt);
      else if (dequeueCount < MOST_ATTEMPTS) await queue.updateMessage(id, receipt, undefined, BACK_AFTER_SECONDS);
      else {
        await poison.sendMessage(text);
        await queue.deleteMessage(id, receipt);
      }
    } catch {
      // The message returns when its invisibility ends.
      await hold.release();
    }
  }

  function call(message: DequeuedMessageItem): Promise<boolean> {
    const metadata = {
      queueTrigger: message.messageText,
      dequeueCount: spoils(target.queue) ? MOST_ATTEMPTS + 1 : message.dequeueCount,
      id: message.messageId,
      insertionTime: message.insertedOn.toISOString(),
      expirationTime: message.expiresOn.toISOString(),
      nextVisibleTime: message.nextVisibleOn.toISOString(),
      popReceipt: message.popReceipt,
    };
    return invoke(parse(message.messageText), metadata).then(
      () => true,
      () => false,
    );
  }

  /** Renews the invisibility until `release`, which returns the latest receipt. */
  function holdMessage({ messageId, popReceipt }: DequeuedMessageItem) {
    let receipt = popReceipt;
    let renewal = Promise.resolve();
    const renew = async () => {
      try {
        receipt = (await queue.updateMessage(messageId, receipt, undefined, INVISIBLE_SECONDS)).popReceipt ?? receipt;
      } catch {
        // The next renewal tries again.
      }
    };
    const timer = new VirtualTimer(
      () => {
        renewal = renewal.then(renew);
      },
      (INVISIBLE_SECONDS / 2) * 1_000,
      true,
    );
    return {
      async release() {
        timer.close();
        await renewal;
        return receipt;
      },
    };
  }

  if (!currentProcess()) throw new Error('A queue trigger belongs to a process.');
  void poll();
  return () => {
    isStopped = true;
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
