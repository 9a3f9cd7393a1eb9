import { createHmac, randomBytes } from 'node:crypto';
import pMap from 'p-map';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { RowkeyError } from '../base/errors.ts';
import { keptFor, loadOnce } from '../base/once.ts';
import { DAY_MS, isoInstant } from '../base/time.ts';
import type { Engine } from '../engine/engine.ts';
import { readRow, scanTable, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Storage } from '../storage/storage.ts';
import { createRateLimit } from './rate-limit.ts';

/**
 * What limits of requests need of visitors, who have no subject: a hash of their address, with a key of the day. No address is stored, and when the
 * key of a day is deleted, nothing tells which addresses the hashes of that day are of.
 */

const KEY_BYTES = 32;
const PARTITION = SYSTEM_PARTITIONS.visitors;
/** Processes whose clocks differ may still use the key of yesterday. */
const KEYS_KEPT_MS = 2 * DAY_MS;
/** So many shares of a limit a process takes for visitors in a minute. Addresses are free, and each takes at least one. */
const VISITOR_SHARES = { points: 600, duration: 60 } as const;

interface KeyOfDay {
  readonly day: string;
  readonly load: () => Promise<Buffer>;
}

const keysOf = keptFor((_: Storage): { current: KeyOfDay | undefined } => ({ current: undefined }));

/** The hash of an address, another one each day. Takes a storage transaction once a day. Throws `storage-unavailable`. */
export async function hashAddress({ storage, now }: Engine, address: string): Promise<string> {
  const day = isoInstant(now()).slice(0, 'yyyy-mm-dd'.length);
  const known = keysOf(storage);
  const key = known.current?.day === day ? known.current : { day, load: loadOnce(() => readOrCreateKey(storage, day)) };
  known.current = key;
  return createHmac('sha256', await key.load())
    .update(address)
    .digest('hex');
}

async function readOrCreateKey(storage: Storage, day: string): Promise<Buffer> {
  const address = { table: SYSTEM_TABLE, partition: PARTITION, row: day };
  for (;;) {
    const found = await readRow(storage, address);
    if (found) return Buffer.from(String(found.properties.Key), 'base64');
    const key = randomBytes(KEY_BYTES);
    const properties = { EntityType: ROW_TYPES.visitors, Key: key.toString('base64') };
    // Another process may be first.
    if (await tryAction(storage, { ...address, isRepeatable: true }, { kind: 'insert', row: day, properties }))
      return key;
  }
}

/** Deletes the keys of past days. */
export async function deleteOldKeys({ storage, now }: Engine): Promise<void> {
  const oldest = isoInstant(now() - KEYS_KEPT_MS);
  const place = { table: SYSTEM_TABLE, partition: PARTITION };
  const { rows } = await scanTable(storage, {
    table: SYSTEM_TABLE,
    type: ROW_TYPES.visitors,
    after: { partition: PARTITION, row: '' },
    beforePartition: `${PARTITION}-`,
    rowKeys: { from: '', before: oldest },
    limit: MOST_KEYS,
  });
  await pMap(rows, ({ row, etag }) =>
    tryAction(storage, { ...place, isRepeatable: true }, { kind: 'delete', row, etag }),
  );
}

/** Those of some years without the timer. */
const MOST_KEYS = 1_000;

const limitOf = createRateLimit(VISITOR_SHARES);

/** Bounds what visitors cost together, before storage is asked. Throws `too-many-requests`. */
export async function admitVisitor(storage: Storage): Promise<void> {
  const retryAfter = await limitOf(storage, 'visitors');
  if (retryAfter === undefined) return;
  throw new RowkeyError('too-many-requests', 'There are too many requests without a token at this time.', {
    accepted: 'a request with a token, or a later one',
    retryAfter,
  });
}
