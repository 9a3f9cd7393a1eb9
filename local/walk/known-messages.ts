import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import type { QueueClient } from '@azure/storage-queue';

interface Known {
  /** The newest pop receipt. */
  readonly receipt: string;
  /** The text that was sent, in XML. */
  readonly text: string;
}

/** The messages that this process sent or received and that still exist, by queue URL and message id. */
const messages = new Map<string, Map<string, Known>>();
const MESSAGES = /^(.*)\/messages(?:\/([^/?]+))?(?:\?.*)?$/;
const ITEMS = /<MessageId>([^<]+)<\/MessageId>[\s\S]*?<PopReceipt>([^<]+)<\/PopReceipt>/g;
const inner = createDefaultHttpClient();
let abortedAt = Number.NEGATIVE_INFINITY;

/** Sends requests to storage and remembers messages. All engines of the tests use this client. */
export const httpClient: HttpClient = {
  async sendRequest(request) {
    const response = await inner.sendRequest(request).catch((error: unknown) => {
      abortedAt = Date.now();
      throw error;
    });
    if (response.status < 300) {
      const { method, url, body } = request;
      const text = typeof body === 'string' ? body : '';
      learnMessages({ method, url, text }, response.headers.get('x-ms-popreceipt') ?? '', response.bodyAsText ?? '');
    }
    return response;
  },
};

/** Remembers the messages of a request that succeeded. */
export function learnMessages(
  { method, url, text }: { readonly method: string; readonly url: string; readonly text: string },
  popReceipt: string,
  reply: string,
): void {
  const [, queue, id] = MESSAGES.exec(url) ?? [];
  if (!queue) return;
  const known = messages.get(queue) ?? new Map<string, Known>();
  messages.set(queue, known);
  const learn = (its: string, receipt: string) =>
    known.set(its, { receipt, text: text || (known.get(its)?.text ?? '') });
  if (!id) for (const [, its = '', receipt = ''] of reply.matchAll(ITEMS)) learn(its, receipt);
  else if (method === 'DELETE') known.delete(id);
  else learn(id, popReceipt);
}

/** Milliseconds since a request ended without a response. Storage may still execute such a request. */
export function sinceAborted(): number {
  return Date.now() - abortedAt;
}

/** True if a message with this text exists, visible or hidden. */
export function isQueued(queue: QueueClient, text: string): boolean {
  return [...(messages.get(queue.url)?.values() ?? [])].some((message) => message.text.includes(text));
}

/** Makes the hidden messages of a queue visible. */
export async function showMessages(queue: QueueClient): Promise<void> {
  const known = messages.get(queue.url) ?? new Map<string, Known>();
  const show = async ([id, { receipt }]: [string, Known]) => {
    // Another process has the message, or has deleted it.
    const isGone = await queue.updateMessage(id, receipt, undefined, 0).then(
      () => false,
      () => true,
    );
    if (isGone && known.get(id)?.receipt === receipt) known.delete(id);
  };
  await Promise.all([...known].map(show));
}
