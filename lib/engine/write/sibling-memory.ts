import { LRUCache } from 'lru-cache';
import type { Action, Address, Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * The sibling rows (lists, counts) that this process wrote last. The next write of the same partition plans from them without
 * a read. Every write uses their ETags: if another process changed one, the transaction conflicts and the rows are read.
 */
const MAX_CHARACTERS = 8_000_000;
/** Overhead of a remembered row: keys and cache entry. */
const OVERHEAD = 1_000;

const memories = new WeakMap<Storage, LRUCache<string, Row>>();

function memoryOf(storage: Storage): LRUCache<string, Row> {
  const known =
    memories.get(storage) ?? new LRUCache<string, Row>({ maxSize: MAX_CHARACTERS, sizeCalculation: sizeOf });
  memories.set(storage, known);
  return known;
}

/** The row as this process last wrote it. It may be stale. */
export function recall(storage: Storage, address: Address): Row | undefined {
  return memoryOf(storage).get(keyOf(address));
}

/** Remembers the state of a row after an action; `before` is the row from which a merge was planned. */
export function remember(
  storage: Storage,
  address: Address,
  { action, etag, before }: { action: Action; etag: string | undefined; before: Row | undefined },
): void {
  if (etag === undefined || action.kind === 'delete' || (action.kind === 'merge' && !before)) {
    forget(storage, address);
    return;
  }
  const kept = action.kind === 'merge' ? before?.properties : {};
  memoryOf(storage).set(keyOf(address), { ...address, etag, properties: { ...kept, ...action.properties } });
}

export function forget(storage: Storage, address: Address): void {
  memoryOf(storage).delete(keyOf(address));
}

function sizeOf({ properties }: Row): number {
  return Object.values(properties).reduce((size: number, value) => size + String(value).length, OVERHEAD);
}

function keyOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}
