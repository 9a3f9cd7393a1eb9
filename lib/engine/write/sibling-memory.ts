import { LRUCache } from 'lru-cache';
import type { Action, Address, Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * The lists and counts that this process wrote last, so that the next write of the same partition plans from them
 * without reading them. Each is written under its ETag: where another process came between, the transaction is
 * refused and they are read. A create so takes the transactions that it must, and no more.
 */
const MAX_CHARACTERS = 8_000_000;
/** Of a row with its keys and its place in the memory. */
const OVERHEAD = 1_000;

const memories = new WeakMap<Storage, LRUCache<string, Row>>();

function memoryOf(storage: Storage): LRUCache<string, Row> {
  const known =
    memories.get(storage) ?? new LRUCache<string, Row>({ maxSize: MAX_CHARACTERS, sizeCalculation: sizeOf });
  memories.set(storage, known);
  return known;
}

/** The row as it was written last from here; it may have changed since. */
export function recall(storage: Storage, address: Address): Row | undefined {
  return memoryOf(storage).get(keyOf(address));
}

/** Keeps what an action has made of a row; `before` is the row that a merge was planned from. */
export function remember(
  storage: Storage,
  address: Address,
  { action, etag, before }: { action: Action; etag: string | undefined; before: Row | undefined },
): void {
  if (etag === undefined || action.kind === 'delete' || (action.kind === 'merge' && !before)) {
    memoryOf(storage).delete(keyOf(address));
    return;
  }
  const kept = action.kind === 'merge' ? before?.properties : {};
  memoryOf(storage).set(keyOf(address), { ...address, etag, properties: { ...kept, ...action.properties } });
}

function sizeOf({ properties }: Row): number {
  return Object.values(properties).reduce((size: number, value) => size + String(value).length, OVERHEAD);
}

function keyOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}
