import { toRequestId } from '../api/writes.ts';
import { RowkeyError } from '../base/errors.ts';
import type { RequestContext } from './route.ts';

const MAX_KEY_LENGTH = 200;

/**
 * The id of a request that its caller may repeat. It is derived from the `Idempotency-Key` header, the caller, the route,
 * the path and the body. So a repetition finds what the first attempt created, and requests need no record. Undefined
 * without the header. Throws `invalid-input`. https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
 */
export async function readRequestId(context: RequestContext): Promise<string | undefined> {
  const key = context.headers.get('idempotency-key');
  if (key === null) return undefined;
  if (!/^[\x21-\x7e]+$/.test(key) || key.length > MAX_KEY_LENGTH)
    throw new RowkeyError('invalid-input', 'Header "Idempotency-Key" is not valid.', {
      field: 'Idempotency-Key',
      accepted: `1 to ${MAX_KEY_LENGTH} printable ASCII characters without spaces`,
    });
  return toRequestId([
    context.caller.subject,
    context.route.name,
    JSON.stringify(context.params),
    key,
    await context.bytes(),
  ]);
}
