import type { HttpRequest } from '@azure/functions';
import { RowkeyError } from '../base/errors.ts';
import { parseJson as parseText } from '../base/parse-json.ts';
import type { Entity } from '../define/declaration/entity.ts';

/** Enough for a batch of 100 entities of a few KB each; a body is held in memory as a whole. */
const MAX_BODY_BYTES = 1_048_576;
/** For an entity with a large text, or a wide one: a character may take six bytes in JSON. */
const MAX_LARGE_BODY_BYTES = 33_554_432;

/** The most bytes of a body that has entities. */
export function maxBodyBytesOf({ large, wide }: Entity): number {
  return large.length > 0 || wide ? MAX_LARGE_BODY_BYTES : MAX_BODY_BYTES;
}

/** Throws `too-large`, `length-required`. */
export async function readBytes(request: HttpRequest, maxBytes = MAX_BODY_BYTES): Promise<Uint8Array> {
  const declared = request.headers.get('content-length');
  // The host has read the body by now; checking the header first avoids a copy of a body that is too large.
  if (Number(declared) > maxBytes) throw bodyTooLarge(maxBytes);
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > maxBytes) throw bodyTooLarge(maxBytes);
  // The Functions host delivers a body of undeclared length as an empty one.
  if (bytes.byteLength === 0 && declared === null)
    throw new RowkeyError('length-required', 'The request has no body, or a chunked body, which is not supported.', {
      accepted: 'a body with the header Content-Length',
    });
  return new Uint8Array(bytes);
}

function bodyTooLarge(maxBytes: number): RowkeyError {
  return new RowkeyError('too-large', 'The body is too large.', { accepted: `at most ${maxBytes} bytes` });
}

const JSON_TYPE = 'application/json';
/** https://www.rfc-editor.org/rfc/rfc7396 */
const MERGE_PATCH = 'application/merge-patch+json';

/** A body without a media type is read as JSON. A PATCH accepts no other kind of patch. Throws `unsupported-media-type`. */
export function requireJson(request: HttpRequest): void {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
  const isPatch = request.method.toUpperCase() === 'PATCH';
  const isAccepted = isPatch
    ? [JSON_TYPE, MERGE_PATCH].includes(type.toLowerCase())
    : /^application\/([\w.-]+\+)?json$/i.test(type) && !/json-patch/i.test(type);
  if (type === '' || isAccepted) return;
  throw new RowkeyError('unsupported-media-type', `Unsupported media type for the body: ${type.slice(0, 100)}.`, {
    accepted: isPatch ? `${MERGE_PATCH}, ${JSON_TYPE}` : JSON_TYPE,
  });
}

/** The parsed body; `checkJson` has not checked it. Throws `invalid-input`. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return parseText(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new RowkeyError('invalid-input', 'The body is not valid JSON in UTF-8.', { accepted: 'application/json' });
  }
}
