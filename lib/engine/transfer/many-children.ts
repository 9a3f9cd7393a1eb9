import type { CarriedRows, Live } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import {
  type Action,
  type Address,
  MAX_TRANSACTION_ACTIONS,
  mostActions,
  type Row,
  transactionBytes,
  transactionLimits,
  tryAction,
  trySubmit,
} from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { announceBlobsOf } from '../write/stored-values.ts';

/** An entity with more children than fit into a transaction with it, in an operation that deletes, archives or moves it. */
export interface Family {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly address: Address;
  readonly operationId: string;
  readonly hold: Hold;
}

/** Children whose keys are read at a time, for ten transactions, of which one row each is that of the parent. */
const READ_CHILDREN = 10 * (MAX_TRANSACTION_ACTIONS - 1) + 1;

/** Closes or opens the entity: see `SystemProperties`. */
export async function mark(
  { engine: { storage }, address }: Omit<Family, 'hold'>,
  { etag }: Live,
  properties: Readonly<Partial<Record<'Leaving' | 'Left', string>>>,
): Promise<boolean> {
  return tryAction(storage, address, { kind: 'merge', row: address.row, properties, etag });
}

/**
 * Deletes the children. None is left to the transaction that deletes their parent, which may need all its room for the rows of indexes. Returns
 * the new ETag of the parent; undefined if another consumer of the message has changed something.
 */
export async function deleteChildren(family: Family, found: string): Promise<string | undefined> {
  const most = mostActions(family.engine.storage) - 1;
  let etag: string | undefined = found;
  for (;;) {
    const children = await readChildren(family);
    for (let at = 0; at < children.length; at += most) {
      const some = children.slice(at, at + most);
      await announceBlobsOf(family.engine.storage, family.entity.children, some);
      etag = await submitWithParent(
        family,
        etag,
        some.map(({ row }) => ({ kind: 'delete', row })),
      );
      if (etag === undefined) return undefined;
    }
    // A page that was full may have been followed by more.
    if (children.length < READ_CHILDREN) return etag;
  }
}

/** The rows of the first children, without most fields. */
async function readChildren({ engine, entity, address }: Family): Promise<Row[]> {
  const read = entity.features.map(({ write }) => write?.carried?.read(engine, entity, address, READ_CHILDREN) ?? []);
  return (await Promise.all(read)).flat();
}

/**
 * Writes the rows of the children at the destination, each transaction with their parent, and deletes others that are there. Returns the new
 * ETag of the parent; undefined if another consumer of the message has changed something.
 */
export async function putChildren(
  family: Family,
  found: string,
  { put, drop }: CarriedRows,
): Promise<string | undefined> {
  const kept = new Set(put.map(({ row }) => row));
  const actions = [
    ...put.map(({ row, properties }) => ({ kind: 'upsert', row, properties }) as const),
    ...drop.filter((row) => !kept.has(row)).map((row) => ({ kind: 'delete', row }) as const),
  ];
  const most = mostActions(family.engine.storage) - 1;
  let etag: string | undefined = found;
  for (let at = 0; at < actions.length && etag !== undefined; ) {
    const some = takeActions(family, actions.slice(at, at + most));
    etag = await submitWithParent(family, etag, some);
    at += some.length;
  }
  return etag;
}

/** As many of the actions as fit into the bytes of a transaction, with the touch of the parent: at least one. */
function takeActions(
  { engine: { storage }, address: { partition } }: Family,
  actions: readonly Action[],
): readonly Action[] {
  let bytes = transactionBytes(partition, []);
  const least = transactionLimits(storage, partition).mostBytes - MAX_TOUCH_BYTES;
  const end = actions.findIndex((action, index) => {
    bytes += transactionBytes(partition, [action]);
    return index > 0 && bytes > least;
  });
  return end === -1 ? actions : actions.slice(0, end);
}

/** More than the action on the parent takes, with keys of any length. */
const MAX_TOUCH_BYTES = 20_000;

/** Executes the actions in a transaction that requires the ETag of the parent, and returns the new one. */
async function submitWithParent(
  { engine, address: { table, partition, row }, operationId, hold }: Family,
  etag: string,
  actions: readonly Action[],
): Promise<string | undefined> {
  const signal = await hold.keep();
  const touch: Action = { kind: 'merge', row, properties: { TouchedBy: operationId }, etag };
  const done = await trySubmit(engine.storage, { table, partition, signal, actions: [touch, ...actions] });
  return done?.get(row);
}
