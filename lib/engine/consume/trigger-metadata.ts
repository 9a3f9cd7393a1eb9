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
