import type { InvocationContext } from '@azure/functions';
import type { Message } from './patterns/poison.ts';

/** What the queue trigger gives of a message. */
export function toMessage(queue: string, body: unknown, { triggerMetadata = {} }: InvocationContext): Message {
  const { id, dequeueCount, insertionTime } = triggerMetadata;
  const insertedAt = Date.parse(String(insertionTime));
  return {
    queue,
    id: String(id),
    attempts: Number(dequeueCount),
    insertedAt: Number.isNaN(insertedAt) ? Date.now() : insertedAt,
    body,
  };
}
