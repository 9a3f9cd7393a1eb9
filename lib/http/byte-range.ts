import { RowkeyError } from '../base/errors.ts';
import type { ByteRange } from '../engine/read/text-blobs.ts';
import type { RequestContext } from './route.ts';

/** One range of bytes: from a first to a last byte, from a first one to the end, or the last ones. */
const RANGE = /^bytes=(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))$/;

interface Whole {
  readonly etag: string;
  /** In bytes. */
  readonly length: number;
}

/**
 * The bytes of a file that a GET asks for (RFC 9110, 14.2). Undefined for the whole file: without a range, or with another file in
 * If-Range. Several ranges, and a header that cannot be read, are ignored, as a server may do. Throws `range-not-satisfiable`.
 */
export function readByteRange({ headers }: RequestContext, { etag, length }: Whole): ByteRange | undefined {
  const ifRange = headers.get('if-range');
  if (ifRange !== null && ifRange !== etag) return undefined;
  const [isRange, first, last, ofEnd] = RANGE.exec(headers.get('range') ?? '') ?? [];
  if (!isRange) return undefined;
  const start = ofEnd === undefined ? Number(first) : Math.max(0, length - Number(ofEnd));
  const end = Math.min(length - 1, last === undefined ? length - 1 : Number(last));
  if (last !== undefined && Number(last) < start) return undefined;
  if (start >= length)
    throw new RowkeyError('range-not-satisfiable', `The range is not within the ${length} bytes of the file.`, {
      accepted: `bytes */${length}`,
    });
  return { start, count: end - start + 1 };
}

/** The value of Content-Range. */
export function formatRange({ start, count }: ByteRange, length: number): string {
  return `bytes ${start}-${start + count - 1}/${length}`;
}
