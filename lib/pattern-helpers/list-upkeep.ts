import type { Hold } from '../define/engine.ts';
import type { IndexEntry } from '../define/remote-index.ts';
import { RowkeyError } from '../errors.ts';
import { isExplaining } from '../storage/explain.ts';
import { type Action, readRow, tryAction } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';
import { dropList, listAction, membersOf, readList, toStoredList } from './member-list.ts';

/**
 * Index entities pattern, remote lists: concurrent changes of one list are written together. Each request has read its entity
 * before the list is read, so one write serves all of them. If the list changes concurrently, every request starts over from
 * its entity.
 */

interface Request {
  readonly member: string;
  readonly isWanted: boolean;
  readonly hold: Hold;
  readonly outcome: PromiseWithResolvers<boolean>;
}

const waiting = new WeakMap<Storage, Map<string, Request[]>>();

/** Adds a member to a list or removes it. False if the list changed concurrently. */
export function settleMember(
  storage: Storage,
  indexEntry: IndexEntry,
  { isWanted, hold }: { readonly isWanted: boolean; readonly hold: Hold },
): Promise<boolean> {
  const outcome = Promise.withResolvers<boolean>();
  const request = { member: indexEntry.member ?? '', isWanted, hold, outcome };
  // An explanation must not share a write with real requests.
  if (isExplaining()) return write(storage, indexEntry, [request]);
  const lists = waiting.get(storage) ?? new Map<string, Request[]>();
  waiting.set(storage, lists);
  const key = JSON.stringify([indexEntry.table, indexEntry.partition, indexEntry.row]);
  const others = lists.get(key);
  if (others) others.push(request);
  else {
    lists.set(key, [request]);
    void settleAll(storage, indexEntry, lists, key);
  }
  return outcome.promise;
}

/** Writes one batch at a time: all requests that arrived during the previous write. */
async function settleAll(
  storage: Storage,
  indexEntry: IndexEntry,
  lists: Map<string, Request[]>,
  key: string,
): Promise<void> {
  for (;;) {
    const requests = lists.get(key)?.splice(0) ?? [];
    if (requests.length === 0) {
      lists.delete(key);
      return;
    }
    try {
      const isWritten = await write(storage, indexEntry, requests);
      for (const { outcome } of requests) outcome.resolve(isWritten);
    } catch (error) {
      for (const { outcome } of requests) outcome.reject(error);
    }
  }
}

async function write(storage: Storage, indexEntry: IndexEntry, requests: readonly Request[]): Promise<boolean> {
  const row = await readList(storage, indexEntry);
  const held: Request[] = [];
  const signals: AbortSignal[] = [];
  for (const request of requests)
    try {
      signals.push(await request.hold.keep());
      held.push(request);
    } catch (error) {
      request.outcome.reject(error);
    }
  const add = held.filter(({ isWanted }) => isWanted).map(({ member }) => member);
  const remove = held.filter(({ isWanted }) => !isWanted).map(({ member }) => member);
  const isOther = row && row.properties.EntityType !== 'list';
  if ((!row || isOther) && add.length === 0) return true;
  if (isOther)
    throw new RowkeyError(
      'needs-repair',
      `A row of the table ${indexEntry.table} is in the place of a list of the index ${indexEntry.index}.`,
    );
  // A list without members is deleted.
  const isEmptied = add.length === 0 && membersOf(row).every((member) => remove.includes(member));
  const changed =
    isEmptied && row
      ? ({ kind: 'delete', row: indexEntry.row, etag: row.etag } as const)
      : listAction(row, indexEntry.row, { add, remove });
  if (!changed) return true;
  const action = await toStoredList(storage, indexEntry, changed);
  const isWritten = await tryAction(storage, { ...indexEntry, signal: AbortSignal.any(signals) }, action);
  // Deletes the blob of the list that was replaced or not written.
  if (isWritten || (await isOurs(storage, indexEntry, action))) {
    await dropList(storage, row);
    return true;
  }
  if ('properties' in action) await dropList(storage, action);
  return false;
}

/** True if the row refers to this write's blob: the conflict came from the SDK's retry of a successful write. */
async function isOurs(storage: Storage, indexEntry: IndexEntry, action: Action): Promise<boolean> {
  const blob = 'properties' in action ? action.properties.MembersBlob : undefined;
  return blob !== undefined && (await readRow(storage, indexEntry))?.properties.MembersBlob === blob;
}
