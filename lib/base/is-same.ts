import { isDeepStrictEqual } from 'node:util';
import { jsonText } from './json-text.ts';

/** True if two values are equal at every level, of which a row that was stored by other means may have any number. */
export function isSame(one: unknown, other: unknown): boolean {
  try {
    return isDeepStrictEqual(one, other);
  } catch (error) {
    if (error instanceof RangeError) return jsonText(one) === jsonText(other);
    throw error;
  }
}
