import { hash, randomBytes } from 'node:crypto';
import { EncryptJWT, errors, jwtDecrypt } from 'jose';
import { z } from 'zod';
import { SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { keptFor, loadOnce, onceFor } from '../../base/once.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { askAccount, unlessSlow } from '../../storage/errors.ts';
import { runUnexplained } from '../../storage/explain.ts';
import { type Row, readRow, submit, tryAction } from '../../storage/rows.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * A continuation token names the last row that was read, so it stays valid when data changes. It is encrypted, because the key
 * of a row at which storage paused may have fields that the caller may not read. It is bound to its query, so a caller can
 * neither forge a token nor use it to read what another query would not return.
 */

const SECRET_ADDRESS = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.secrets, row: SYSTEM_ROWS.secret };
/** In the partition of the account's own row, which a move neither copies nor deletes. */
const COPY_ADDRESS = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.slots, row: SYSTEM_ROWS.secret };
const SECRET_BYTES = 32;
/** The secret is the key itself. */
const ENCRYPTION = { alg: 'dir', enc: 'A256GCM' };

const Position = z.object({
  row: z.string(),
  period: z.string().optional(),
  partition: z.string().optional(),
  member: z.string().optional(),
  resume: z.string().optional(),
  place: z.string().optional(),
  key: z.string().optional(),
});
/**
 * The last row read, with its period if each period has a table, its partition if a whole table is read, and its last member
 * if the row is a list that is not read to its end. With `resume`, storage paused a read after this row, or from the beginning if it
 * is empty, and continues there. `place` names the partition of a read of several.
 * `key` tells the key of the entities, while another one is being given up.
 */
export type Position = z.infer<typeof Position>;

/** The row after which the read of a page begins; undefined for the beginning of the range. */
export function startOf(after: Position | undefined): string | undefined {
  return after?.resume !== undefined && after.row === '' ? undefined : after?.row;
}

const keyOf = onceFor(({ partition, row }: Pick<Entity, 'partition' | 'row'>) =>
  hash('sha256', `${partition.template} ${row.template}`, 'base64url').slice(0, 8),
);

/** A list by the new key has another order than one by the former key, which the former release has begun. */
export function bindToKey(entity: Entity, next: Position): Position {
  return entity.formerKey ? { ...next, key: keyOf(entity) } : next;
}

/** Throws `invalid-input` for a position in a list by another key. */
export function requireSameKey(entity: Entity, after: Position | undefined): void {
  if (!after || (after.key === undefined ? !entity.formerKey : after.key === keyOf(entity))) return;
  throw new RowkeyError('invalid-input', `The key of ${entity.name} has changed since the list began.`, {
    field: 'continuation',
    accepted: 'none: read the list from its beginning',
  });
}

/** Creates a token for `position` in `query`, a text that identifies the query and its caller. */
export async function toContinuation(storage: Storage, query: string, position: Position): Promise<string> {
  return new EncryptJWT({ ...position })
    .setProtectedHeader(ENCRYPTION)
    .setAudience(digestOf(query))
    .encrypt(await secretOf(storage)());
}

/** Returns the position in a token. Throws `invalid-input` unless the token was created for this query. */
export async function fromContinuation(storage: Storage, query: string, token: string): Promise<Position> {
  const secret = await secretOf(storage)();
  try {
    const { payload } = await jwtDecrypt(token, secret, {
      keyManagementAlgorithms: [ENCRYPTION.alg],
      contentEncryptionAlgorithms: [ENCRYPTION.enc],
      audience: digestOf(query),
    });
    return Position.parse(payload);
  } catch (error) {
    if (!(error instanceof errors.JOSEError || error instanceof z.ZodError)) throw error;
    throw new RowkeyError('invalid-input', 'The continuation is not valid for this query.', {
      field: 'continuation',
      accepted: 'the continuation from the Link header, with the rest of the query unchanged',
    });
  }
}

/** A query may be as long as a URL, which has to hold the token beside it. */
function digestOf(query: string): string {
  return hash('sha256', query, 'base64url');
}

/** Reads the secret once per process. The first process that needs the secret creates it. */
const secretOf = keptFor((storage: Storage) => loadOnce(() => runUnexplained(() => loadSecret(storage))));

/** With several accounts, each has a copy, for processes that start while the account of the secret is away. */
async function loadSecret(storage: Storage): Promise<Uint8Array> {
  const reading = readOrCreateSecret(storage);
  if (!storage.accounts) return reading;
  const { list } = storage.accounts;
  const known = await unlessSlow(reading);
  if (known) {
    const actions = [{ kind: 'upsert', row: COPY_ADDRESS.row, properties: toProperties(known) }] as const;
    const copy = (account: Storage) => submit(account, { ...COPY_ADDRESS, actions, isRepeatable: true });
    await Promise.all(list.map((account) => askAccount(account, copy(account))));
    return known;
  }
  const copies = await Promise.all(list.map((account) => askAccount(account, readRow(account, COPY_ADDRESS))));
  const row = copies.find(({ result }) => result)?.result;
  return row ? toSecret(row) : reading;
}

const toProperties = (secret: Uint8Array) => ({ Secret: Buffer.from(secret).toString('base64') });
const toSecret = ({ properties }: Row): Uint8Array => Buffer.from(String(properties.Secret), 'base64');

async function readOrCreateSecret(storage: Storage): Promise<Uint8Array> {
  for (;;) {
    const row = await readRow(storage, SECRET_ADDRESS);
    if (row) return toSecret(row);
    const secret = randomBytes(SECRET_BYTES);
    const properties = toProperties(secret);
    // Nothing deletes the secret. Another process may be first.
    const where = { ...SECRET_ADDRESS, isRepeatable: true };
    if (await tryAction(storage, where, { kind: 'insert', row: SECRET_ADDRESS.row, properties })) return secret;
  }
}
