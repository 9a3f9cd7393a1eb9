/**
 * The names under which the Functions host gives a function what it knows of a message. The host puts the top-level
 * properties of a JSON body over them, ignoring case, so a body that has such a property hides what the host knows. No
 * message of this app has one.
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

/** The names of trigger metadata that a message body replaces, in lower case. */
export function replacedMetadata(body: unknown): string[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return [];
  return Object.keys(body)
    .map((name) => name.toLowerCase())
    .filter((name) => TRIGGER_METADATA.has(name));
}
