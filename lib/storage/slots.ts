import { hash } from 'node:crypto';

/**
 * Slots spread partitions and blobs, and slot-map.ts says which account owns a slot if an app has several accounts. A slot is the
 * beginning of a hash, so that keys and names that are alike are spread as well.
 */
export const SLOTS = 4_096;
const DIGITS = 3;

/** Returns the slot of a partition key, or of another text: three hexadecimal digits. Stored names contain it, so it never changes. */
export function slotOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, DIGITS);
}
