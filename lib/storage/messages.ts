import { storageCall, unlessRefused } from './errors.ts';
import { isExplained } from './explain.ts';
import type { Storage } from './storage.ts';

/** A message that was sent and may be hidden for longer, or taken back, by its sender. */
export interface SentMessage {
  readonly queue: string;
  readonly id: string;
  readonly popReceipt: string;
  readonly text: string;
}

/** A message that was taken from its queue, and comes back unless it is deleted. */
export interface ReceivedMessage extends SentMessage {
  /** Milliseconds. */
  readonly insertedAt: number;
}

/** Queue storage takes 64 KiB a message: https://learn.microsoft.com/rest/api/storageservices/put-message */
export const MAX_MESSAGE_BYTES = 65_536;
/** Kept until handled: a message that expired would be an acknowledged change lost. */
const NEVER_EXPIRES = -1;
/** Somebody has taken it, or is done with it. */
const GONE = ['missing', 'changed'] as const;
/** What XML cannot write, in which messages travel, and JSON.stringify leaves as it is: https://www.w3.org/TR/xml/#charsets */
const NOT_XML = /[\ufffe\uffff]/g;

/** Sends plain JSON (host.json says `messageEncoding: none`), hidden for `hiddenFor` seconds. */
export async function sendMessage(storage: Storage, queue: string, body: unknown, hiddenFor = 0): Promise<SentMessage> {
  const text = toText(body);
  if (isExplained(() => ({ write: 'message', queue, does: 'send' }))) return { queue, id: '', popReceipt: '', text };
  const options = { visibilityTimeout: hiddenFor, messageTimeToLive: NEVER_EXPIRES };
  const sent = await storageCall(storage.queue(queue).sendMessage(text, options));
  return { queue, id: sent.messageId, popReceipt: sent.popReceipt, text };
}

/**
 * Hides a message for `seconds` from now and returns it with its new receipt. Undefined when somebody else has received
 * it meanwhile, or it is deleted.
 */
export async function hideMessage(
  storage: Storage,
  message: SentMessage,
  seconds: number,
): Promise<SentMessage | undefined> {
  const { queue, id, popReceipt } = message;
  const text = toText(message.text);
  const hidden = await unlessRefused(GONE, storage.queue(queue).updateMessage(id, popReceipt, text, seconds));
  return hidden && { ...message, popReceipt: hidden.popReceipt ?? popReceipt };
}

/** Up to `limit` messages (32 at most), the oldest first, hidden for `hiddenFor` seconds. */
export async function receiveMessages(
  storage: Storage,
  queue: string,
  { limit, hiddenFor }: { readonly limit: number; readonly hiddenFor: number },
): Promise<ReceivedMessage[]> {
  const options = { numberOfMessages: limit, visibilityTimeout: hiddenFor };
  const { receivedMessageItems } = await storageCall(storage.queue(queue).receiveMessages(options));
  return receivedMessageItems.map(({ messageId: id, popReceipt, messageText: text, insertedOn }) => {
    return { queue, id, popReceipt, text, insertedAt: insertedOn.getTime() };
  });
}

/** Deletes a message that was sent or received, unless somebody else has received it meanwhile. */
export async function deleteMessage(storage: Storage, { queue, id, popReceipt }: SentMessage): Promise<void> {
  if (isExplained(() => ({ write: 'message', queue, does: 'delete' }))) return;
  await unlessRefused(GONE, storage.queue(queue).deleteMessage(id, popReceipt));
}

/** What travels in XML: a string as it is, anything else as JSON. */
function toText(body: unknown): string {
  const json = typeof body === 'string' ? body : JSON.stringify(body);
  return json.replace(NOT_XML, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
}
