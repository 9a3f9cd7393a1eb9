import { hash } from 'node:crypto';
import pMap from 'p-map';
import { unavailable } from '../base/errors.ts';
import { isTableGone, ofAccount, StorageConflict, storageCall, storageCalls, unlessRefused } from './errors.ts';
import { fenceOf, isFenceRow, isOfFormerRelease, markOf } from './fence-rows.ts';
import { type Address, literal, toRowProperties } from './row-query.ts';
import { lookAt, type Owner, ownerOfPlace } from './slot-map.ts';
import { indexIn, isOwned, REGISTRY_HEAD, SYSTEM_TABLE, stateOf } from './slot-row.ts';
import { placeOf, slotAt } from './slots.ts';
import type { Account, Accounts } from './storage.ts';

/**
 * Writes in a move. A slot at rest has no fence: a move begins with a phase in which each write requires a row in its partition,
 * named by the id of the move (fence-rows.ts), and waits until no write without a fence is under way. A write whose fence is missing opens its partition:
 *
 * 1. It registers the partition in the account, so that the mover finds it without a scan.
 * 2. It reads the account's row again: the slot must still be in this phase.
 * 3. One transaction inserts the fence and the mark.
 *
 * Then the slot is draining: nobody opens a partition, and the mover seals those that are registered. It leaves the mark and deletes the
 * fence, so no request that storage executes late can write or open again. test/model/move.ts visits every interleaving.
 */

type Partition = Pick<Address, 'table' | 'partition'>;

/**
 * A write is repeated for at most so long after it was first sent, also if its caller has more time. So its last attempt is sent within 20
 * seconds of the read of its map (`LEASE_MS` and this). A mover waits for 40 (`leaseMs` and `lateMs` of its timing), which leaves storage 20
 * to execute it: the fence of a move that was aborted lets it pass, and the next move does not look at its partition again.
 */
const REPEATED_MS = 15_000;
const WAIT_MS = 30_000;

interface Fenced extends Partition {
  readonly signal?: AbortSignal | undefined;
  /** True if a second execution does no harm. */
  readonly isRepeatable?: boolean;
}

interface Sending {
  /** The row whose existence the transaction must require first. */
  readonly fence?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Writes to a partition at its owner. `send` sends a transaction of its own actions, or of the fence and them. */
export async function writeAtOwner<Result>(
  accounts: Accounts,
  { table, partition, signal, isRepeatable = false }: Fenced,
  send: (account: Account, sending: Sending) => Promise<Result>,
): Promise<Result> {
  const place = placeOf(table, partition);
  /** True if an earlier sending may have been executed. */
  let wasRepeated = false;
  for (const end = performance.now() + WAIT_MS; ; ) {
    const owner = await ownerOfPlace(accounts, place, { isWritable: true, signal });
    const { account, move } = owner;
    const sendTo = (fenced: Sending) =>
      ofAccount(
        account,
        inTime(signal, (within) => send(account, { ...fenced, signal: within })),
      );
    try {
      return await sendTo(move === undefined ? {} : { fence: fenceOf(move) });
    } catch (error) {
      if (!(error instanceof StorageConflict)) throw error;
      const { reason, action, cause } = error;
      wasRepeated ||= error.isRepeated;
      if (move === undefined || reason !== 'missing' || action > 0)
        throw new StorageConflict(reason, move === undefined ? action : Math.max(0, action - 1), cause, wasRepeated);
      // An earlier attempt may have been executed, and the partition sealed since.
      if ((wasRepeated && !isRepeatable) || performance.now() > end)
        throw unavailable('Storage is unavailable: the partition is moved to another account.', error);
    }
    await openPartition(accounts, owner, { table, partition });
  }
}

/** Ends the repetitions of a write in time, also if its caller waits for longer, such as the holder of a message. */
async function inTime<Result>(
  signal: AbortSignal | undefined,
  send: (within: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), REPEATED_MS);
  try {
    return await send(signal ? AbortSignal.any([signal, ending.signal]) : ending.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Lets writes pass the fence of a move. Does nothing if the slot is no longer in the phase that allows it. */
async function openPartition(accounts: Accounts, owner: Owner, { table, partition }: Partition): Promise<void> {
  const { account, place, move = '' } = owner;
  const registered = {
    partitionKey: registryOf(move, slotAt(owner.index)),
    rowKey: hash('sha256', `${table}/${partition}`),
    Table: table,
    Partition: partition,
  };
  const system = account.table(SYSTEM_TABLE);
  await ofAccount(account, storageCall(system.upsertEntity(registered, 'Replace'), system.tableName));
  const now = await lookAt(accounts, account);
  const index = indexIn(now, place);
  const state = stateOf(now, index);
  if (!isOwned(now, index) || state.phase !== 'fencing' || state.move !== move) return;
  const client = account.table(table);
  const open = client.submitTransaction([
    ['create', { partitionKey: partition, rowKey: markOf(move) }],
    ['create', { partitionKey: partition, rowKey: fenceOf(move) }],
  ]);
  // Another writer was faster, or the mover has sealed the partition.
  await ofAccount(account, unlessRefused(['exists'], open, client.tableName));
}

function registryOf(move: string, slot: string): string {
  return `${REGISTRY_HEAD}${move}-${slot}`;
}

/** The partitions that a move has to copy again, of one slot or of all: every one that was opened, and perhaps more. */
export async function listRegistered(
  account: Account,
  move: string,
  slot?: string,
): Promise<(Partition & { readonly slot: string })[]> {
  const filter =
    slot === undefined
      ? registriesFrom(`${REGISTRY_HEAD}${move}-`)
      : `PartitionKey eq ${literal(registryOf(move, slot))}`;
  return Array.fromAsync(readRegistered(account, filter), ({ opened, partitionKey }) => ({
    ...opened,
    slot: partitionKey.slice(registryOf(move, '').length),
  }));
}

/** `~` follows all characters of such keys. */
const registriesFrom = (start: string) =>
  `PartitionKey ge ${literal(start)} and PartitionKey lt ${literal(`${start}~`)}`;

async function* readRegistered(account: Account, filter: string) {
  const client = account.table(SYSTEM_TABLE);
  const rows = client.listEntities<{ Table: string; Partition: string }>({ queryOptions: { filter } });
  for await (const row of storageCalls(rows, client.tableName)) {
    const { Table: table, Partition: partition, partitionKey = '', rowKey = '', timestamp = '' } = row;
    yield { opened: { table, partition }, partitionKey, rowKey, timestamp };
  }
}

/**
 * Deletes what moves have left in partitions that were opened, and their registries, unless the move `isLive`. No other move accepts such
 * rows, so they do no harm. A partition that was registered later than `before`, by the service's clock, may still be opened.
 */
export async function deleteFences(
  account: Account,
  { isLive, before }: { readonly isLive: (move: string) => boolean; readonly before: number },
): Promise<void> {
  const remove = async (table: string, partition: string, row: string, etag = '*') => {
    const client = account.table(table);
    await unlessRefused(['missing', 'changed'], client.deleteEntity(partition, row, { etag }), client.tableName);
  };
  const removeFence = async ({ table, partition }: Partition, row: string, move: string) => {
    if (!isOfFormerRelease(move)) return remove(table, partition, row);
    // A value can spell the key.
    const client = account.table(table);
    const found = await unlessRefused(['missing'], client.getEntity(partition, row), client.tableName);
    if (found && isFenceRow({ row, properties: toRowProperties(found) }))
      await remove(table, partition, row, found.etag);
  };
  await pMap(
    readRegistered(account, registriesFrom(REGISTRY_HEAD)),
    async ({ opened, partitionKey, rowKey, timestamp }) => {
      const move = partitionKey.slice(REGISTRY_HEAD.length).split('-')[0] ?? '';
      // The clock was read without the fraction of a second.
      if (isLive(move) || Math.floor(Date.parse(timestamp) / 1_000) * 1_000 > before) return;
      try {
        for (const row of [fenceOf(move), markOf(move)]) await removeFence(opened, row, move);
      } catch (error) {
        // The table was dropped.
        if (!isTableGone(error)) throw error;
      }
      await remove(SYSTEM_TABLE, partitionKey, rowKey);
    },
    { concurrency: CONCURRENCY },
  );
}

const CONCURRENCY = 8;

/** Ends the writes of a move to a partition: those that storage executes late, too. */
export async function sealPartition(account: Account, move: string, { table, partition }: Partition): Promise<void> {
  const client = account.table(table);
  const mark = { partitionKey: partition, rowKey: markOf(move) };
  await ofAccount(account, storageCall(client.upsertEntity(mark, 'Replace'), client.tableName));
  const unfence = client.deleteEntity(partition, fenceOf(move));
  await ofAccount(account, unlessRefused(['missing'], unfence, client.tableName));
}
