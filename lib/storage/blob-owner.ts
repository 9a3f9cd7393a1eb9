import { ofAccount } from './errors.ts';
import { BACKUP_CONTAINER } from './row-journal.ts';
import { isStillOwner, lastKnown, lookAt, type Owner, ownerOfPlace } from './slot-map.ts';
import { indexIn, isOwned, stateOf } from './slot-row.ts';
import { type Placed, slotOf } from './slots.ts';
import { type Account, type Accounts, accountsOf, type Storage } from './storage.ts';

/**
 * Which account has a blob. The name of a blob begins with its slot. The bytes of such a blob never change, so a move needs no fence: it copies
 * the blobs, and one that it has not copied yet is found where the slot comes from. Uploads of clients stay there until the clean-up.
 */

/** The blobs of these containers are appended to, or changed under ETags. All are in the first account, unless the model places the container. */
export const AUDIT_CONTAINER = 'audit';
export const PERIOD_ARCHIVES_CONTAINER = 'period-archives';
const FIXED: readonly string[] = [AUDIT_CONTAINER, PERIOD_ARCHIVES_CONTAINER, BACKUP_CONTAINER];
/** False for a container whose blobs have no slot. */
export const isMovable = (container: string) => !FIXED.includes(container);

/** The account that has all blobs of a container. Undefined if each blob is in the account of its slot. */
export function accountOfContainer({ accounts }: Pick<Storage, 'accounts'>, container: string): Account | undefined {
  return accounts?.containers.get(container) ?? (isMovable(container) ? undefined : accounts?.list[0]);
}
/** The slot, the table, a hash of the row's key, the part of the row, and the hashes of the partition key. */
const NAME = /^([\da-f]{3})\/(?:([A-Za-z][A-Za-z0-9]{2,62})\/(?:[^/]+\/[^/]+\/((?:[\w-]{8})+)\/)?)?/;

/** The parts above, without the slot and the hashes in names of earlier releases, and the unique id of the blob or of its upload. */
const OWN_NAME =
  /^(?:[\da-f]{3}\/)?[A-Za-z][A-Za-z0-9]{2,62}\/[\w-]{22}\/[^/]+\/(?:(?:[\w-]{8})+\/)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:\.[^/]+)?$/;

/** True for the name of a blob of the app, and false for that of another program in one of its containers, which no command touches. */
export function isOwnBlob(name: string): boolean {
  return OWN_NAME.test(name);
}

interface BlobAddress {
  readonly container: string;
  readonly name: string;
}

/**
 * The slot of a blob is the beginning of its name; in a name of an earlier release, the hash of the whole name. The table of its row follows,
 * so the blobs of a layer of tables are with its rows. Hashes of the partition key follow later, for a layer of keys; names of earlier
 * releases lack them.
 */
export function placeOfBlob(name: string): Placed {
  const [, slot, table, hashes] = NAME.exec(name) ?? [];
  return slot === undefined ? { slot: slotOf(name) } : { slot, table, keyHashes: hashes?.match(/.{8}/g) ?? [] };
}

/** The account in which a blob is written. */
export async function accountOfBlob(storage: Storage, { container, name }: BlobAddress): Promise<Storage> {
  const whole = accountOfContainer(storage, container);
  if (!storage.accounts || whole) return whole ?? storage;
  return (await ownerOfPlace(storage.accounts, placeOfBlob(name))).account;
}

/** The account in which a client can read a blob. Looks for the blob only if a move may have left it in another account. */
export async function accountToRead(
  storage: Storage,
  blob: BlobAddress,
  isIn: (account: Storage) => Promise<boolean>,
): Promise<Storage> {
  const { accounts } = storage;
  if (!accounts || accountOfContainer(storage, blob.container)) return accountOfBlob(storage, blob);
  const owner = await ownerOfPlace(accounts, placeOfBlob(blob.name));
  if ((await othersWith(accounts, owner)).length === 0) return owner.account;
  const find = async (account: Storage) => ((await isIn(account)) ? account : undefined);
  return (await readInAccount(storage, blob, find)) ?? owner.account;
}

/** Reads a blob in its account, or where a move has left it. `read` returns undefined if the blob is not there. */
export async function readInAccount<Result>(
  storage: Storage,
  { container, name }: BlobAddress,
  read: (account: Storage) => Promise<Result | undefined>,
): Promise<Result | undefined> {
  const { accounts } = storage;
  const whole = accountOfContainer(storage, container);
  if (!accounts || whole) return whole ? ofAccount(whole, read(whole)) : read(storage);
  for (;;) {
    const owner = await ownerOfPlace(accounts, placeOfBlob(name));
    const found = await ofAccount(owner.account, read(owner.account));
    if (found !== undefined) return found;
    if (owner.phase !== 'at rest' && !(await isStillOwner(accounts, owner))) continue;
    for (const other of await othersWith(accounts, owner)) {
      const left = await ofAccount(other, read(other));
      if (left !== undefined) return left;
    }
    return undefined;
  }
}

/** Changes a blob in its account, and in each other one that may have it: a move may have copied it. */
export async function changeInAccounts(
  storage: Storage,
  { container, name }: BlobAddress,
  change: (account: Storage, isOwner: boolean) => Promise<unknown>,
): Promise<void> {
  const { accounts } = storage;
  const whole = accountOfContainer(storage, container);
  if (!accounts || whole) {
    await (whole ? ofAccount(whole, change(whole, true)) : change(storage, true));
    return;
  }
  const owner = await ownerOfPlace(accounts, placeOfBlob(name));
  await ofAccount(owner.account, change(owner.account, true));
  for (const other of await othersWith(accounts, owner)) await ofAccount(other, change(other, false));
}

/** The accounts from which the slot came, and the one to which it goes. */
async function othersWith(accounts: Accounts, { account, place, to }: Owner): Promise<Account[]> {
  const others = accounts.list.filter((other) => other !== account);
  const known = await Promise.all(
    others.map(async (other) => {
      const last = await lastKnown(accounts, other);
      // It was the owner when its row was read.
      return isOwned(last, indexIn(last, place)) ? lookAt(accounts, other) : last;
    }),
  );
  return others.filter(
    ({ name }, at) =>
      name === to || (known[at] !== undefined && stateOf(known[at], indexIn(known[at], place)).phase === 'gone'),
  );
}

/** Merges the listings of all accounts by name. A blob that a move has copied is listed once: from the account that owns its slot. */
export async function* listInAccounts<Listed extends { readonly name: string }>(
  storage: Storage,
  container: string,
  list: (account: Storage) => AsyncGenerator<Listed>,
): AsyncGenerator<Listed> {
  const whole = accountOfContainer(storage, container);
  if (!storage.accounts || whole) {
    yield* list(whole ?? storage);
    return;
  }
  const listings = accountsOf(storage).map((account) => ({ account, items: list(account) }));
  const next = async ({ account, items }: (typeof listings)[number]): Promise<{ readonly blob?: Listed }> => {
    const result = await ofAccount(account, items.next());
    return result.done ? {} : { blob: result.value };
  };
  const heads = await Promise.all(listings.map(next));
  for (;;) {
    const blobs = heads.flatMap(({ blob }) => (blob ? [blob] : []));
    const [first] = blobs.sort((one, other) => (one.name < other.name ? -1 : 1));
    if (!first) return;
    const { account: owner } = await ownerOfPlace(storage.accounts, placeOfBlob(first.name));
    let shown = first;
    for (const [index, listing] of listings.entries()) {
      const blob = heads[index]?.blob;
      if (blob?.name !== first.name) continue;
      if (listing.account === owner) shown = blob;
      heads[index] = await next(listing);
    }
    yield shown;
  }
}
