import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { unavailable } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { isRecent } from '../base/time.ts';
import { ofAccount } from './errors.ts';
import { runUnexplained } from './explain.ts';
import { timeOf } from './row-journal.ts';
import type { Address, Row } from './row-query.ts';
import {
  changeSlots,
  createOwned,
  heirOf,
  indexIn,
  isAtRest,
  isOfApp,
  isOwned,
  type Layers,
  NO_LAYERS,
  newestLayers,
  numbersOf,
  type Owned,
  readOwned,
  type SlotState,
  stateOf,
  withLayers,
} from './slot-row.ts';
import { layerOf, type Placed, placeOf, SLOTS, slotAt, slotIndex } from './slots.ts';
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
export const WAIT_MS = 15_000;
/** Longer than a mover lets writes wait. After this time it has died, and a writer opens the slot again. */
const OPEN_AFTER_MS = 10_000;
/** Longer than a mover takes between the source's row and the target's. After this time it has died, and a process that needs the slot ends the hand-over. */
const HAND_OVER_AFTER_MS = 1_000;
/** The most accounts that one read of a table reads at a time. */
const SHARES_CONCURRENCY = 8;

interface Lease {
  known: (Owned & { readonly since: number; readonly at: number }) | undefined;
  reading: Promise<Owned> | undefined;
  next: Promise<Owned> | undefined;
}

interface SlotMap {
  readonly leases: ReadonlyMap<Account, Lease>;
  /** The last known owner of each slot, in the layers that any account was last known to have. */
  readonly owners: Map<number, Account>;
  layers: Layers;
  view: View | undefined;
  creating: Promise<void> | undefined;
}

const slotMapOf = keptFor(
  ({ list }: Accounts): SlotMap => ({
    leases: new Map(list.map((account) => [account, { known: undefined, reading: undefined, next: undefined }])),
    owners: new Map(),
    layers: NO_LAYERS,
    view: undefined,
    creating: undefined,
  }),
);

/** The owner of a slot, and the state of the slot there. */
export interface Owner extends SlotState {
  readonly account: Account;
  readonly place: Placed;
  /** The slot, in the layers of the account's row. */
  readonly index: number;
  readonly etag: string;
  /** When the read of the account's row began. */
  readonly since: number;
}

/**
 * The account of a partition. A point query now and then, if there are several accounts. Without a table, that of the partitions which are in
 * no layer of tables.
 */
export async function ownerOf(storage: Storage, partition: string, table = ''): Promise<Storage> {
  return storage.accounts ? (await ownerOfPlace(storage.accounts, placeOf(table, partition))).account : storage;
}

/**
 * The owner of the slot of a partition or blob. An account's row alone says whether the account is it. With `isWritable`, waits while writes
 * to the slot have to wait. Throws `storage-unavailable`.
 */
export async function ownerOfPlace(
  accounts: Accounts,
  place: Placed,
  { isWritable = false, signal }: { readonly isWritable?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<Owner> {
  const map = slotMapOf(accounts);
  const isUsable = ({ phase }: Owner) => !isWritable || phase !== 'draining';
  const toOwner = (account: Account | undefined) => {
    const known = account && leased(map, account);
    if (!account || !known) return undefined;
    const index = indexIn(known, place);
    return isOwned(known, index) ? { account, place, index, ...known, ...stateOf(known, index) } : undefined;
  };
  const last = toOwner(map.owners.get(indexIn(map, place)));
  if (last && isUsable(last)) return last;
  const since = performance.now();
  for (;;) {
    const known = map.owners.get(indexIn(map, place));
    if (known) await lookAt(accounts, known);
    const found = toOwner(known) ? known : await findOwner(accounts, place);
    const owner = toOwner(found);
    if (owner && isUsable(owner)) return owner;
    const waitedMs = performance.now() - since;
    const slot = slotAt(owner?.index ?? indexIn(map, place));
    if (owner && !owner.isClosed && waitedMs > OPEN_AFTER_MS) await openAgain(owner);
    if (!found && waitedMs > HAND_OVER_AFTER_MS) await endHandOver(accounts, slot);
    if (signal?.aborted || waitedMs > WAIT_MS) throw unavailable(whyNotOwned(slot, owner, found), undefined);
    await sleep(RETRY_MS);
  }
}

function whyNotOwned(slot: string, owner: Owner | undefined, found: Account | undefined): string {
  if (owner)
    return `Storage is unavailable: the move of the slot ${slot} from ${owner.account.name} to ${owner.to} does not end.`;
  if (found)
    return `Storage is unavailable: the account ${found.name} takes more than ${LEASE_MS / 1_000} seconds to return the row that says which slots it owns.`;
  return `Storage is unavailable: no account owns the slot ${slot}.`;
}

/** Ends the move of a slot as its mover can. A mover that lives after all lets no slot go that is not draining. */
async function openAgain({ account, index, move }: Owner): Promise<void> {
  await changeSlots(account, [slotAt(index)], (state) =>
    state.phase === 'draining' && state.move === move ? { phase: 'at rest' } : undefined,
  );
}

/**
 * Lets the target accept a slot that its source has let go. The rows of all accounts are read after the target's, which may not change until
 * it is written: else the target may have accepted the slot, and let it go, before. Does nothing until the clock of the target has passed the last
 * change of a source, as its mover would wait: a backup orders the versions of a row by their times.
 */
async function endHandOver({ list }: Accounts, slot: string): Promise<void> {
  const index = slotIndex(slot);
  const readHeir = async () => {
    const all = (await Promise.all(list.map(readOwned))).filter((owned) => owned !== undefined);
    const layers = newestLayers(all);
    const gone = all.filter((owned) => stateOf(withLayers(owned, layers), index).phase === 'gone');
    return { heir: heirOf(all, index), at: Math.max(...gone.map(({ etag }) => Date.parse(timeOf(etag) ?? ''))) };
  };
  const { heir } = await readHeir();
  const target = list.find(({ name }) => name === heir);
  if (target)
    await changeSlots(target, [slot], async (_state, _slot, readAt) => {
      const now = await readHeir();
      return now.heir === heir && now.at < readAt ? { phase: 'at rest' } : undefined;
    });
}

/** Reads the rows of all accounts, and waits for no other one when the owner is found. Undefined if no account owns the slot. */
async function findOwner(accounts: Accounts, place: Placed): Promise<Account | undefined> {
  const map = slotMapOf(accounts);
  const reads = accounts.list.map(async (account) => {
    const owned = await lookAt(accounts, account);
    if (!isOwned(owned, indexIn(owned, place))) throw NOT_FOUND;
    return account;
  });
  try {
    const found = await Promise.any(reads);
    map.owners.set(indexIn(map, place), found);
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
  return known && isRecent(known, LEASE_MS) ? known : undefined;
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
      if (lease.known?.etag !== owned.etag) {
        map.layers = newestLayers([owned, map]);
        for (const number of owned.texts.keys())
          for (let index = number * SLOTS; index < (number + 1) * SLOTS; index += 1)
            if (isOwned(owned, index)) map.owners.set(index, account);
      }
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
  { table, partition }: Pick<Address, 'table' | 'partition'>,
  read: (account: Account) => Promise<Result>,
): Promise<Result> {
  const place = placeOf(table, partition);
  for (;;) {
    const owner = await ownerOfPlace(accounts, place);
    const result = await ofAccount(owner.account, read(owner.account));
    if (owner.phase === 'at rest' && performance.now() - owner.since < SURE_MS) return result;
    if (await isStillOwner(accounts, owner)) return result;
  }
}

/** Looks whether the owner had the slot all the time until now. */
export async function isStillOwner(accounts: Accounts, { account, place, phase, move, etag }: Owner): Promise<boolean> {
  const now = await lookAt(accounts, account);
  if (now.etag === etag) return true;
  const index = indexIn(now, place);
  return phase !== 'at rest' && isOwned(now, index) && stateOf(now, index).move === move;
}

/** Slots that an account owns, whose rows one read returns. Rows of other slots may be left in the account. */
interface Share {
  readonly account: Account;
  /** Changes with its slots. */
  readonly etag: string;
  /** True if these are all the slots that the account owns. */
  readonly isWhole: boolean;
  /** True for a row of one of the slots; after the read, of those that the account has not let go. */
  owns(row: Row): boolean;
}

/**
 * Reads the rows of every slot at its owner. If an account lets slots go while it is read, its other rows count, and only the accounts that
 * have got these slots are read again: else a scan would not end while slots are handed over one after another.
 */
export async function readShares<Result>(
  accounts: Accounts,
  read: (share: Share) => Promise<Result>,
): Promise<{ readonly share: Share; readonly result: Result }[]> {
  const map = slotMapOf(accounts);
  /** The account at which the rows of each slot were read, like the owners of a view; undefined before the first read. */
  let readAt: Int16Array | undefined;
  let layers = NO_LAYERS;
  const done = new Map<number, { readonly share: Share; readonly result: Result }>();
  for (let [isFresh, end] = [false, performance.now() + WAIT_MS]; ; isFresh = true) {
    const all = await Promise.all(
      accounts.list.map(async (account) => {
        const since = performance.now();
        const known = isFresh ? undefined : leased(map, account);
        return { account, since, ...(known ?? (await lookAt(accounts, account))) };
      }),
    );
    const view = viewOf(map, all);
    const { owners } = view;
    if (layers.version !== view.layers.version) {
      layers = view.layers;
      readAt = undefined;
      done.clear();
    }
    const left = readAt && placesIn(readAt, (at) => at === NONE);
    const unowned = left?.filter((place) => (owners[place] ?? NONE) < 0) ?? view.unowned;
    if (unowned.length > 0) {
      if (performance.now() > end)
        throw unavailable('Storage is unavailable: a move between accounts does not end.', undefined);
      if (performance.now() > end - WAIT_MS + HAND_OVER_AFTER_MS)
        await pMap(unowned, (place) => endHandOver(accounts, slotAt(view.indexAt(place))), { concurrency: 1 });
      if (isFresh) await sleep(RETRY_MS);
      continue;
    }
    const gaining = new Set(left ? left.map((place) => owners[place]) : all.keys());
    // A view is not changed: it is the same until an account's row changes, and so for most reads.
    let now: Int16Array = readAt?.map((at) => (gaining.has(at) ? NONE : at)) ?? owners;
    readAt = now;
    await pMap(
      [...all.entries()].filter(([at]) => gaining.has(at) && view.counts[at] !== 0),
      async ([at, owned]) => {
        const { account, etag } = owned;
        const isMine = (owner: number, place: number) => owner === at && now[place] === NONE;
        const slots = left && placesIn(owners, isMine);
        for (const place of slots ?? []) now[place] = at;
        const owns = (row: Row) =>
          isOfApp(row) && readAt?.[view.placeAt(indexIn(view, placeOf(row.table, row.partition)))] === at;
        const share = { account, etag, isWhole: !slots || slots.length === view.counts[at], owns };
        done.set(at, { share, result: await read(share) });
        const hasStayed = await stayedSlots(accounts, owned);
        if (!hasStayed) return;
        if (now === owners) now = readAt = owners.slice();
        for (const place of slots ?? placesIn(owners, (owner) => owner === at))
          if (!hasStayed(view.indexAt(place))) now[place] = NONE;
      },
      { concurrency: SHARES_CONCURRENCY },
    );
    if (now === owners || !now.includes(NONE)) return [...done.values()];
    end = performance.now() + WAIT_MS;
  }
}

/** What the rows of all accounts say together. */
interface View {
  readonly etags: string;
  readonly layers: Layers;
  /** The number of the account that owns each slot of each layer. As the rows were read at different times, a slot may seem to have no owner, or two. */
  readonly owners: Int16Array;
  /** The places of those that have none or two. */
  readonly unowned: readonly number[];
  /** How many slots each account owns. */
  readonly counts: readonly number[];
  /** The place of a slot in `owners`, and the slot there. */
  placeAt(index: number): number;
  indexAt(place: number): number;
}

const NONE = -1;
const TWO = -2;

/** Looks at each slot only if an account's row has changed since. */
function viewOf(map: SlotMap, rows: readonly Owned[]): View {
  const etags = rows.map(({ etag }) => etag).join();
  if (map.view?.etags === etags) return map.view;
  const layers = newestLayers(rows);
  const numbers = numbersOf(layers);
  const firstPlaces = new Map(numbers.map((number, order) => [number, order * SLOTS]));
  const placeAt = (index: number) => (firstPlaces.get(layerOf(index)) ?? NONE) + (index % SLOTS);
  const indexAt = (place: number) => (numbers[layerOf(place)] ?? 0) * SLOTS + (place % SLOTS);
  const owners = new Int16Array(numbers.length * SLOTS).fill(NONE);
  const counts = rows.map((row, at) => {
    const owned = withLayers(row, layers);
    const places = placesIn(owners, (_, place) => isOwned(owned, indexAt(place)));
    for (const place of places) owners[place] = owners[place] === NONE ? at : TWO;
    return places.length;
  });
  map.view = { etags, layers, owners, unowned: placesIn(owners, (at) => at < 0), counts, placeAt, indexAt };
  return map.view;
}

function placesIn(owners: Int16Array, isWanted: (at: number, place: number) => boolean): number[] {
  const places: number[] = [];
  for (const [place, at] of owners.entries()) if (isWanted(at, place)) places.push(place);
  return places;
}

/** Says which slots of a read the account had all the time until now. Undefined if all. */
async function stayedSlots(
  accounts: Accounts,
  before: Owned & { readonly account: Account; readonly since: number },
): Promise<((index: number) => boolean) | undefined> {
  if (isAtRest(before) && performance.now() - before.since < SURE_MS) return undefined;
  const now = await lookAt(accounts, before.account);
  if (now.etag === before.etag) return undefined;
  if (performance.now() - before.since > SURE_MS) return () => false;
  return (index) => isOwned(now, index);
}
