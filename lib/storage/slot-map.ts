import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { z } from 'zod';
import { RowkeyError, unavailable } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { ofAccount, storageCalls, unlessRefused } from './errors.ts';
import { runUnexplained } from './explain.ts';
import { listTables } from './provision.ts';
import type { Address } from './row-query.ts';
import { SLOTS, slotOf } from './slots.ts';
import type { Account, Accounts, Storage } from './storage.ts';

/**
 * Which account owns a slot. Each account has one row that says which slots it owns, so an account that is away stops only its own. A
 * process uses what it read of such a row for five seconds. With one account, no such row exists.
 */

/** The table of the engine's own state, shared by all instances of a deployment. */
export const SYSTEM_TABLE = 'system';
const PARTITION = 'slots';
const ROW = 'owned';
/** The names of all accounts. It is beside the shapes of the model, so that a process with one account reads it with them. */
export const ACCOUNTS_ROW = { partition: 'model', row: '~accounts' } as const;
const ACCOUNTS_TYPE = 'accounts';

/** How long a process uses what it read of an account's row, from the start of the read. */
export const LEASE_MS = 5_000;
/** Between two owners, a slot has none for the time of one request. */
const RETRY_MS = 50;
const WAIT_MS = 10_000;

/** What an account's row says of each slot, in the order of the slots. */
const NOT_OWNED = '-';
const AT_REST = 'o';

/** What an account's row said. */
interface Owned {
  readonly etag: string;
  /** One character for each slot. */
  readonly slots: string;
}

interface Lease {
  owned: Owned | undefined;
  /** When the read began that `owned` is from. */
  since: number;
  reading: Promise<Owned> | undefined;
}

interface SlotMap {
  readonly leases: ReadonlyMap<Account, Lease>;
  /** The last known owner of each slot. */
  readonly owners: (Account | undefined)[];
  creating: Promise<void> | undefined;
}

const slotMapOf = keptFor(
  ({ list }: Accounts): SlotMap => ({
    leases: new Map(list.map((account) => [account, { owned: undefined, since: 0, reading: undefined }])),
    owners: new Array(SLOTS),
    creating: undefined,
  }),
);

/** The account of a partition. A point query now and then, if there are several accounts. */
export async function ownerOf(storage: Storage, partition: string): Promise<Storage> {
  return storage.accounts ? ownerOfSlot(storage.accounts, slotOf(partition)) : storage;
}

/** Reads a partition at its owner. */
export async function readAtOwner<Result>(
  storage: Storage,
  partition: string,
  read: (account: Storage) => Promise<Result>,
): Promise<Result> {
  if (!storage.accounts) return read(storage);
  const owner = await ownerOfSlot(storage.accounts, slotOf(partition));
  return ofAccount(owner, read(owner));
}

/** Writes to a partition at its owner. */
export async function writeAtOwner<Result>(
  storage: Storage,
  { partition }: { readonly table: string; readonly partition: string },
  write: (account: Storage) => Promise<Result>,
): Promise<Result> {
  if (!storage.accounts) return write(storage);
  const owner = await ownerOfSlot(storage.accounts, slotOf(partition));
  return ofAccount(owner, write(owner));
}

/** An account with the rows that it owns. */
export interface Share {
  readonly account: Account;
  /** True for a row of a slot that the account owns. */
  owns(row: Address): boolean;
}

/** The accounts that own slots. Rows of other slots may be left in an account. */
export async function sharesOf(accounts: Accounts): Promise<Share[]> {
  const map = slotMapOf(accounts);
  const shares = await pMap(accounts.list, async (account) => {
    const { slots } = leased(map, account) ?? (await readOwned(accounts, account));
    const owns = (row: Address) => isOfApp(row) && slots[Number.parseInt(slotOf(row.partition), 16)] === AT_REST;
    return { account, slots, owns };
  });
  return shares.filter(({ slots }) => slots.includes(AT_REST));
}

/** False for the rows of this file. */
export function isOfApp({ table, partition, row }: Address): boolean {
  return row !== ACCOUNTS_ROW.row && (table !== SYSTEM_TABLE || partition !== PARTITION);
}

/** The account that owns a slot. */
export async function ownerOfSlot(accounts: Accounts, slot: string): Promise<Account> {
  const map = slotMapOf(accounts);
  const index = Number.parseInt(slot, 16);
  const last = map.owners[index];
  if (last && isOwner(map, last, index)) return last;
  for (const end = performance.now() + WAIT_MS; ; await sleep(RETRY_MS)) {
    const known = map.owners[index];
    if (known && isOwner(map, known, index, await readOwned(accounts, known))) return known;
    const found = await findOwner(accounts, index);
    if (found) return found;
    if (performance.now() > end) throw unavailable(`No storage account owns the slot ${slot}.`, undefined);
  }
}

/** Reads the rows of all accounts, and waits for no other one when the owner is found. Undefined if no account owns the slot. */
async function findOwner(accounts: Accounts, index: number): Promise<Account | undefined> {
  const map = slotMapOf(accounts);
  const reads = accounts.list.map(async (account) => {
    if (!isOwner(map, account, index, await readOwned(accounts, account))) throw undefined;
    return account;
  });
  try {
    return await Promise.any(reads);
  } catch (error) {
    // The account of the slot may be one of those that are away.
    for (const failure of error instanceof AggregateError ? error.errors : [error]) if (failure) throw failure;
    return undefined;
  }
}

function isOwner(map: SlotMap, account: Account, index: number, owned = leased(map, account)): boolean {
  return owned?.slots[index] === AT_REST;
}

/** What the process may still use of the account's row. */
function leased({ leases }: SlotMap, account: Account): Owned | undefined {
  const lease = leases.get(account);
  return lease && performance.now() - lease.since < LEASE_MS ? lease.owned : undefined;
}

/** Reads the row of an account, once for all callers that wait. Creates the rows of all accounts if there are none. */
async function readOwned(accounts: Accounts, account: Account): Promise<Owned> {
  const map = slotMapOf(accounts);
  const lease = map.leases.get(account);
  if (!lease) throw new Error(`${account.name} is not one of the accounts.`);
  lease.reading ??= runUnexplained(() => read(accounts, account, lease)).finally(() => {
    lease.reading = undefined;
  });
  return lease.reading;
}

async function read(accounts: Accounts, account: Account, lease: Lease): Promise<Owned> {
  const map = slotMapOf(accounts);
  for (;;) {
    const since = performance.now();
    const owned = await ofAccount(account, readRow(account));
    if (owned) {
      Object.assign(lease, { owned, since });
      for (let index = 0; index < SLOTS; index += 1) if (owned.slots[index] !== NOT_OWNED) map.owners[index] = account;
      return owned;
    }
    map.creating ??= createSlotRows(accounts).finally(() => {
      map.creating = undefined;
    });
    await map.creating;
  }
}

async function readRow(account: Account): Promise<Owned | undefined> {
  const client = account.table(SYSTEM_TABLE);
  const found = await unlessRefused(['missing'], client.getEntity(PARTITION, ROW), client.tableName);
  if (!found) return undefined;
  if (found.Name !== account.name)
    throw new RowkeyError(
      'wrong-setting',
      `Invalid settings: the storage account ${account.name} has the data of the account ${found.Name}.`,
    );
  return { etag: found.etag, slots: String(found.Slots) };
}

/** The accounts that the app uses. The slots were spread over the first `spread` of them. */
const Known = z.object({ names: z.array(z.string()), spread: z.number() });

/**
 * Creates the missing rows of ownership. The first process decides: if no table has rows, the slots are spread evenly; else they all belong
 * to the first account, until an operator moves some. An account that is added later has none.
 */
async function createSlotRows(accounts: Accounts): Promise<void> {
  const { names, spread } = await noteAccounts(accounts);
  await pMap(accounts.list, async (account) => {
    const slots = firstSlots(names.indexOf(account.name), spread);
    const row = { partitionKey: PARTITION, rowKey: ROW, EntityType: PARTITION, Name: account.name, Slots: slots };
    // Another process may have created the row.
    await ofAccount(account, unlessRefused(['exists'], account.table(SYSTEM_TABLE).createEntity(row), SYSTEM_TABLE));
  });
}

/** Adds the accounts to the record of the first account. */
async function noteAccounts({ list }: Accounts): Promise<z.infer<typeof Known>> {
  const [first] = list;
  const client = first.table(SYSTEM_TABLE);
  const address = { partitionKey: ACCOUNTS_ROW.partition, rowKey: ACCOUNTS_ROW.row };
  for (;;) {
    const found = await unlessRefused(['missing'], client.getEntity(ACCOUNTS_ROW.partition, ACCOUNTS_ROW.row));
    const names = list.map(({ name }) => name);
    const known = found
      ? Known.parse(JSON.parse(String(found.Accounts)))
      : { names, spread: (await isEmpty(first)) ? names.length : 1 };
    const all = { ...known, names: [...new Set([...known.names, ...names])] };
    if (found && all.names.length === known.names.length) return known;
    const entity = { ...address, EntityType: ACCOUNTS_TYPE, Accounts: JSON.stringify(all) };
    const write = found ? client.updateEntity(entity, 'Replace', { etag: found.etag }) : client.createEntity(entity);
    // Otherwise another process was faster.
    if (await unlessRefused(['exists', 'changed', 'missing'], write, client.tableName)) return all;
  }
}

function firstSlots(index: number, spread: number): string {
  if (index >= spread) return NOT_OWNED.repeat(SLOTS);
  const [from, before] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / spread)) as [number, number];
  return NOT_OWNED.repeat(from) + AT_REST.repeat(before - from) + NOT_OWNED.repeat(SLOTS - before);
}

async function isEmpty(account: Account): Promise<boolean> {
  for (const table of await listTables(account, '')) {
    const pages = account.table(table).listEntities().byPage({ maxPageSize: 1 });
    // A page may be empty before the end.
    for await (const page of storageCalls(pages, table)) if (page.length > 0) return false;
  }
  return true;
}
