import { createHash } from 'node:crypto';
import type { InvocationContext } from '@azure/functions';
import { jsonText } from '../json-text.ts';
import { MAX_ATTEMPTS, type Message } from './poison.ts';

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

/**
 * The names of the metadata that the Functions host passes with a message. Top-level properties of a JSON body replace
 * metadata of the same name, ignoring case. No message of the app has such a property.
 */
const TRIGGER_METADATA = new Set([
  'queuetrigger',
  'id',
  'dequeuecount',
  'insertiontime',
  'nextvisibletime',
  'expirationtime',
  'popreceipt',
]);

/** Returns the names of the metadata that a message body replaces, in lower case. */
export function listReplacedMetadata(body: unknown): string[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return [];
  return Object.keys(body)
    .map((name) => name.toLowerCase())
    .filter((name) => TRIGGER_METADATA.has(name));
}
