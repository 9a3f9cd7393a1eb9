import { createHash } from 'node:crypto';
import { RowkeyError } from '../errors.ts';
import type { RequestContext } from './route.ts';

const LONGEST = 200;

/**
 * The id of a request that its caller may repeat: it follows from the `Idempotency-Key` header, the caller, the route and the
 * body, so that a repetition finds what the first attempt has made and no record has to be kept of it. Undefined
 * without the header. Throws `invalid-input`. https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
 */
export async function requestId(call: RequestContext, route: string): Promise<string | undefined> {
  const key = call.header('idempotency-key');
  if (key === undefined) return undefined;
  if (!/^[\x21-\x7e]{1,}$/.test(key) || key.length > LONGEST)
    throw new RowkeyError('invalid-input', 'The header Idempotency-Key is not valid.', {
      field: 'Idempotency-Key',
      accepted: `1 to ${LONGEST} printable characters of ASCII`,
    });
  const hash = createHash('sha256');
  for (const part of [call.caller.subject, route, JSON.stringify(call.params), key, await call.bytes()])
    hash.update(part).update('\0');
  const [, ...groups] = /^(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(hash.digest('hex')) ?? [];
  return groups.join('-');
}
