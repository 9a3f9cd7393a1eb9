import { hash } from 'node:crypto';

/** Slots spread partitions and blobs. A slot is the beginning of a hash, so that keys and names that are alike are spread as well. */
const DIGITS = 3;

/** Returns the slot of a partition key, or of another text: three hexadecimal digits. Stored names contain it, so it never changes. */
export function slotOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, DIGITS);
}
