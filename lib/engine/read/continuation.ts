import { randomBytes } from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { RowkeyError } from '../../errors.ts';
import { runUnexplained } from '../../storage/explain.ts';
import { readRow, tryAction } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * Continuation tokens name the last row that was read, so that they stay good however the data changes; they are
 * signed and bound to their query, so that they cannot be made up or used to read what another query would not give.
 */

/** What all instances of a deployment share and nobody writes by hand. */
export const SYSTEM_TABLE = 'system';
const SECRET_ADDRESS = { table: SYSTEM_TABLE, partition: 'secrets', row: 'continuation' };
const SECRET_BYTES = 32;

const Position = z.object({ row: z.string(), period: z.string().optional(), partition: z.string().optional() });
/** The last row read, with its period if each period has a table, and its partition if a whole table is read. */
export type Position = z.infer<typeof Position>;

/** Makes a token for `position` within `query`, any text that names what is asked and for whom. */
export async function toContinuation(storage: Storage, query: string, position: Position): Promise<string> {
  return new SignJWT({ ...position })
    .setProtectedHeader({ alg: 'HS256' })
    .setAudience(query)
    .sign(await secretOf(storage));
}

/** The position in a token. Throws `invalid-input` when it was not made here for this query. */
export async function fromContinuation(storage: Storage, query: string, token: string): Promise<Position> {
  const secret = await secretOf(storage);
  try {
    const { payload } = await jwtVerify(token, secret, { algorithms: ['HS256'], audience: query });
    return Position.parse(payload);
  } catch (error) {
    if (!(error instanceof errors.JOSEError || error instanceof z.ZodError)) throw error;
    throw new RowkeyError('invalid-input', 'The continuation is not valid for this query.', {
      field: 'continuation',
      accepted: 'the continuation from the Link header, with the rest of the query unchanged',
    });
  }
}

const secrets = new WeakMap<Storage, Promise<Uint8Array>>();

/** Read once a process; made by whoever needs it first. */
function secretOf(storage: Storage): Promise<Uint8Array> {
  const known = secrets.get(storage);
  if (known) return known;
  const secret = runUnexplained(() => readOrMakeSecret(storage));
  secrets.set(storage, secret);
  // A failure is not remembered.
  secret.catch(() => secrets.delete(storage));
  return secret;
}

async function readOrMakeSecret(storage: Storage): Promise<Uint8Array> {
  for (;;) {
    const row = await readRow(storage, SECRET_ADDRESS);
    if (row) return Buffer.from(String(row.properties.Secret), 'base64');
    const properties = { Secret: randomBytes(SECRET_BYTES).toString('base64') };
    await tryAction(storage, SECRET_ADDRESS, { kind: 'insert', row: SECRET_ADDRESS.row, properties });
  }
}
