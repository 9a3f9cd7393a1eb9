import { createHash } from 'node:crypto';
import type { InvocationContext } from '@azure/functions';
import { jsonText } from '../json-text.ts';
import { MAX_ATTEMPTS, type Message } from './poison.ts';
import { listReplacedMetadata } from './trigger-metadata.ts';

/** Reads a message from the queue trigger. Ignores metadata that the body may have replaced. */
export function toMessage(queue: string, body: unknown, { triggerMetadata = {} }: InvocationContext): Message {
  const replaced = new Set(listReplacedMetadata(body));
  const readMetadata = (name: string) => (replaced.has(name.toLowerCase()) ? undefined : triggerMetadata[name]);
  const attempts = Number(readMetadata('dequeueCount'));
  const insertedAt = Date.parse(String(readMetadata('insertionTime')));
  return {
    queue,
    id: String(readMetadata('id') ?? createHash('sha256').update(jsonText(body)).digest('hex').slice(0, 32)),
    attempts: Number.isSafeInteger(attempts) ? attempts : MAX_ATTEMPTS,
    insertedAt: Number.isNaN(insertedAt) ? Date.now() : insertedAt,
    body,
  };
}
