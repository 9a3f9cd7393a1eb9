import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { ofAccount } from './errors.ts';
import { runUnexplained } from './explain.ts';
import type { Address } from './row-query.ts';
import {
  changeSlots,
  createOwned,
  isOfApp,
  isOwned,
  type Owned,
  readOwned,
  type SlotState,
  stateOf,
} from './slot-row.ts';
import { SLOTS, slotOf } from './slots.ts';
import type { Account, Accounts, Storage } from './storage.ts';

/**
 * The owner of each slot, as this process knows it. It uses what it read of an account's row for `LEASE_MS`. A move fences its writes first
 * and waits for longer than that, so reads and writes of a slot at rest need no other check.
 */

/** How long a process uses what it read of an account's row, from the start of the read. */
export const LEASE_MS = 5_000;
/** A read that took longer may have been made after a move that began meanwhile. Below the wait of a mover. */
const SURE_MS = 25_000;
/** Between two owners, a slot has none for the time of one request; while its last rows are copied, its writes wait. */
const RETRY_MS = 50;
const WAIT_MS = 15_000;
/** Longer than a mover lets writes wait. After this time it has died, and a writer opens the slot again. */
const OPEN_AFTER_MS = 10_000;

interface Lease {
  known: (Owned & { readonly since: number; readonly at: number }) | undefined;
  reading: Promise<Owned> | undefined;
  next: Promise<Owned> | undefined;
}

interface SlotMap {
  readonly leases: ReadonlyMap<Account, Lease>;
  /** The last known owner of each slot. */
  readonly owners: (Account | undefined)[];
  creating: Promise<void> | undefined;
}

const slotMapOf = keptFor(
  ({ list }: Accounts): SlotMap => ({
    leases: new Map(list.map((account) => [account, { known: undefined, reading: undefined, next: undefined }])),
    owners: new Array(SLOTS),
    creating: undefined,
  }),
);

/** The owner of a slot, and the state of the slot there. */
export interface Owner extends SlotState {
  readonly account: Account;
  readonly index: number;
  readonly etag: string;
  /** When the read of the account's row began. */
  readonly since: number;
}

/** The account of a partition. A point query now and then, if there are several accounts. */
export async function ownerOf(storage: Storage, partition: string): Promise<Storage> {
  return storage.accounts ? (await ownerOfSlot(storage.accounts, slotOf(partition))).account : storage;
}

/** The owner of a slot. With `isWritable`, waits while its writes have to wait. Throws `storage-unavailable`. */
export async function ownerOfSlot(
  accounts: Accounts,
  slot: string,
  { isWritable = false, signal }: { readonly isWritable?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<Owner> {
  const map = slotMapOf(accounts);
  const index = Number.parseInt(slot, 16);
  const isUsable = ({ phase }: Owner) => !isWritable || phase !== 'draining';
  const toOwner = (account: Account | undefined) => {
    const known = account && leased(map, account);
    return account && known && isOwned(known, index)
      ? { account, index, ...known, ...stateOf(known, index) }
      : undefined;
  };
  const last = toOwner(map.owners[index]);
  if (last && isUsable(last)) return last;
  for (const end = performance.now() + WAIT_MS; ; await sleep(RETRY_MS)) {
    const known = map.owners[index];
    if (known) await lookAt(accounts, known);
    const owner = toOwner(known) ?? toOwner(await findOwner(accounts, index));
    if (owner && isUsable(owner)) return owner;
    if (owner && !owner.isClosed && performance.now() > end - WAIT_MS + OPEN_AFTER_MS) await openAgain(owner, slot);
    if (signal?.aborted || performance.now() > end)
      throw unavailable(
        owner
          ? `Storage is unavailable: the move of the slot ${slot} from ${owner.account.name} to ${owner.to} does not end.`
          : `Storage is unavailable: no account owns the slot ${slot}.`,
        undefined,
      );
  }
}

/** Ends the move of a slot as its mover can. A mover that lives after all lets no slot go that is not draining. */
async function openAgain({ account, move }: Owner, slot: string): Promise<void> {
  await changeSlots(account, [slot], (state) =>
    state.phase === 'draining' && state.move === move ? { phase: 'at rest' } : undefined,
  );
}

/** Reads the rows of all accounts, and waits for no other one when the owner is found. Undefined if no account owns the slot. */
async function findOwner(accounts: Accounts, index: number): Promise<Account | undefined> {
  const reads = accounts.list.map(async (account) => {
    if (!isOwned(await lookAt(accounts, account), index)) throw NOT_FOUND;
    return account;
  });
  try {
    const found = await Promise.any(reads);
    slotMapOf(accounts).owners[index] = found;
    return found;
  } catch (error) {
    // The account of the slot may be one of those that are away.
    for (const failure of error instanceof AggregateError ? error.errors : [error])
      if (failure !== NOT_FOUND) throw failure;
    return undefined;
  }
}

const NOT_FOUND = new Error('The account does not own the slot.');

/** What the process may still use of the account's row. */
function leased({ leases }: SlotMap, account: Account): Lease['known'] {
  const known = leases.get(account)?.known;
  // The clock of a process stands still while its machine is suspended, and that of the machine may be set back.
  return known && performance.now() - known.since < LEASE_MS && Date.now() - known.at < LEASE_MS ? known : undefined;
}

/** Reads the row of an account by a read that begins after the call, one for all callers that wait. */
export async function lookAt(accounts: Accounts, account: Account): Promise<Owned> {
  const map = slotMapOf(accounts);
  const lease = map.leases.get(account);
  if (!lease) throw new Error(`${account.name} is not one of the accounts.`);
  const begin = () => {
    lease.reading ??= runUnexplained(() => read(accounts, account, lease)).finally(() => {
      lease.reading = undefined;
    });
    return lease.reading;
  };
  if (!lease.reading) return begin();
  const beginNext = () => {
    lease.next = undefined;
    return begin();
  };
  lease.next ??= lease.reading.then(beginNext, beginNext);
  return lease.next;
}

/** What the process last read of an account's row, however long ago. */
export async function lastKnown(accounts: Accounts, account: Account): Promise<Owned> {
  return slotMapOf(accounts).leases.get(account)?.known ?? lookAt(accounts, account);
}

/** Creates the rows of all accounts if the account has none. */
async function read(accounts: Accounts, account: Account, lease: Lease): Promise<Owned> {
  const map = slotMapOf(accounts);
  for (;;) {
    const [since, at] = [performance.now(), Date.now()];
    const owned = await readOwned(account);
    if (owned) {
      if (lease.known?.etag !== owned.etag)
        for (let index = 0; index < SLOTS; index += 1) if (isOwned(owned, index)) map.owners[index] = account;
      lease.known = { ...owned, since, at };
      return owned;
    }
    map.creating ??= createOwned(accounts).finally(() => {
      map.creating = undefined;
    });
    await map.creating;
  }
}

/** Reads a partition at its owner. In a move, the read counts if the slot is still there after it. */
export async function readAtOwner<Result>(
  accounts: Accounts,
  partition: string,
  read: (account: Account) => Promise<Result>,
): Promise<Result> {
  for (;;) {
    const owner = await ownerOfSlot(accounts, slotOf(partition));
    const result = await ofAccount(owner.account, read(owner.account));
    if (owner.phase === 'at rest' && performance.now() - owner.since < SURE_MS) return result;
    if (await isStillOwner(accounts, owner)) return result;
  }
}

/** Looks whether the owner had the slot all the time until now. */
export async function isStillOwner(accounts: Accounts, { account, index, phase, move, etag }: Owner): Promise<boolean> {
  const now = await lookAt(accounts, account);
  if (now.etag === etag) return true;
  return phase !== 'at rest' && isOwned(now, index) && stateOf(now, index).move === move;
}

/** An account with the rows that it owns. */
export interface Share {
  readonly account: Account;
  /** Changes with its slots. */
  readonly etag: string;
  /** True for a row of a slot that the account owns. */
  owns(row: Address): boolean;
}

/** Reads all accounts that own slots. Rows of other slots may be left in an account. */
export async function readShares<Result>(
  accounts: Accounts,
  read: (shares: readonly Share[]) => Promise<Result>,
): Promise<Result> {
  const map = slotMapOf(accounts);
  let isFresh = false;
  for (const end = performance.now() + WAIT_MS; ; isFresh = true) {
    const all = await Promise.all(
      accounts.list.map(async (account) => {
        const since = performance.now();
        const known = isFresh ? undefined : leased(map, account);
        return { account, since, ...(known ?? (await lookAt(accounts, account))) };
      }),
    );
    const isWhole = isPartition(all);
    if (!isWhole && performance.now() > end)
      throw unavailable('Storage is unavailable: a move between accounts does not end.', undefined);
    if (!isWhole) {
      if (isFresh) await sleep(RETRY_MS);
      continue;
    }
    const shares = all.filter(({ text }) => /[ofd]/.test(text));
    const result = await read(
      shares.map((owned) => ({
        account: owned.account,
        etag: owned.etag,
        owns: (row) => isOfApp(row) && isOwned(owned, Number.parseInt(slotOf(row.partition), 16)),
      })),
    );
    const isSure = (owned: (typeof shares)[number]) =>
      !/[fd]/.test(owned.text) && performance.now() - owned.since < SURE_MS;
    const checked = shares.filter((owned) => !isSure(owned));
    const stayed = await Promise.all(checked.map((owned) => haveStayed(accounts, owned)));
    if (stayed.every(Boolean)) return result;
  }
}

/** True if each slot has one owner: the rows were read at different times. */
function isPartition(all: readonly Owned[]): boolean {
  for (let index = 0; index < SLOTS; index += 1) {
    let owners = 0;
    for (const owned of all) if (isOwned(owned, index)) owners += 1;
    if (owners !== 1) return false;
  }
  return true;
}

/** Looks whether the account had all the slots until now. */
async function haveStayed(accounts: Accounts, before: Owned & { readonly account: Account; readonly since: number }) {
  const now = await lookAt(accounts, before.account);
  if (now.etag === before.etag) return true;
  if (performance.now() - before.since > SURE_MS) return false;
  for (let index = 0; index < SLOTS; index += 1) if (isOwned(before, index) && !isOwned(now, index)) return false;
  return true;
}
