import type { QueueClient } from '@azure/storage-queue';
import { ofAccount, storageCall, unlessRefused } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import { settleAppends } from './row-journal.ts';
import { accountOfQueue, type Storage } from './storage.ts';

/** A sent message, which its sender may hide for longer or delete. */
export interface SentMessage {
  readonly queue: string;
  readonly id: string;
  readonly popReceipt: string;
  readonly text: string;
  /** Milliseconds by the clock of storage: when the message was sent, and until when it is hidden. Undefined if another process sent it. */
  readonly sentAt?: number;
  readonly hiddenUntil?: number | undefined;
}

/** A received message, which becomes visible again unless it is deleted. */
export interface ReceivedMessage extends SentMessage {
  /** In milliseconds. */
  readonly insertedAt: number;
  /** How often the message was received, including this time. */
  readonly attempts: number;
}

/** The limit of Queue storage: https://learn.microsoft.com/rest/api/storageservices/put-message */
export const MAX_MESSAGE_BYTES = 65_536;
/** Never expires: an expired message would lose an acknowledged change. */
const NEVER_EXPIRES = -1;
/** Another receiver has the message, or has deleted it. */
const GONE = ['missing', 'changed'] as const;
/** Messages travel in XML, which cannot contain these characters; JSON.stringify does not escape them: https://www.w3.org/TR/xml/#charsets */
const NOT_XML = /[\ufffe\uffff]/g;

/** Sends plain JSON (host.json says `messageEncoding: none`), hidden for `hiddenFor` seconds. After a lost reply it may be sent twice. */
export function sendMessage(storage: Storage, queue: string, body: unknown, hiddenFor = 0): Promise<SentMessage> {
  return ofAccount(accountOfQueue(storage, queue), send(storage.queue(queue), { queue, body, hiddenFor }));
}

/** Sends plain JSON, hidden for `hiddenFor` seconds, and never twice: after a lost reply it throws `storage-unavailable`. */
export function sendMessageOnce(
  storage: Storage,
  queue: string,
  body: unknown,
  hiddenFor: number,
): Promise<SentMessage> {
  return ofAccount(accountOfQueue(storage, queue), send(storage.queueSentOnce(queue), { queue, body, hiddenFor }));
}

async function send(
  client: QueueClient,
  { queue, body, hiddenFor }: { readonly queue: string; readonly body: unknown; readonly hiddenFor: number },
): Promise<SentMessage> {
  const text = toText(body);
  if (recordIfExplaining(() => ({ write: 'message', queue, does: 'send' })))
    return { queue, id: '', popReceipt: '', text };
  const options = { visibilityTimeout: hiddenFor, messageTimeToLive: NEVER_EXPIRES };
  const {
    messageId: id,
    popReceipt,
    insertedOn,
    nextVisibleOn,
  } = await storageCall(client.sendMessage(text, options), client.name);
  return { queue, id, popReceipt, text, sentAt: insertedOn.getTime(), hiddenUntil: nextVisibleOn.getTime() };
}

/**
 * Hides a message for `seconds` from now and returns it with its new receipt, or undefined if another receiver has it or
 * it is deleted.
 */
export async function hideMessage(
  storage: Storage,
  message: SentMessage,
  seconds: number,
): Promise<SentMessage | undefined> {
  const { queue, id, popReceipt } = message;
  const text = toText(message.text);
  const update = unlessRefused(GONE, storage.queue(queue).updateMessage(id, popReceipt, text, seconds), queue);
  const hidden = await ofAccount(accountOfQueue(storage, queue), update);
  return (
    hidden && { ...message, popReceipt: hidden.popReceipt ?? popReceipt, hiddenUntil: hidden.nextVisibleOn?.getTime() }
  );
}

/** Receives up to `limit` messages (at most 32), oldest first, and hides them for `hiddenFor` seconds. */
export async function receiveMessages(
  storage: Storage,
  queue: string,
  { limit, hiddenFor }: { readonly limit: number; readonly hiddenFor: number },
): Promise<ReceivedMessage[]> {
  const options = { numberOfMessages: limit, visibilityTimeout: hiddenFor };
  const client = storage.queue(queue);
  const received = storageCall(client.receiveMessages(options), client.name);
  const { receivedMessageItems } = await ofAccount(accountOfQueue(storage, queue), received);
  return receivedMessageItems.map(({ messageId: id, popReceipt, messageText: text, insertedOn, dequeueCount }) => {
    return { queue, id, popReceipt, text, insertedAt: insertedOn.getTime(), attempts: dequeueCount };
  });
}

/** Deletes a message, unless another receiver has it. A backup has first what was changed for it: else nobody would look again. */
export async function deleteMessage(storage: Storage, { queue, id, popReceipt }: SentMessage): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'message', queue, does: 'delete' }))) return;
  await settleAppends();
  const deletion = unlessRefused(GONE, storage.queue(queue).deleteMessage(id, popReceipt), queue);
  await ofAccount(accountOfQueue(storage, queue), deletion);
}

/** Strings are sent unchanged, other values as JSON. */
function toText(body: unknown): string {
  const json = typeof body === 'string' ? body : JSON.stringify(body);
  return json.replace(NOT_XML, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
}
