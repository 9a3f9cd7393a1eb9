import pMap from 'p-map';
import { ROW_TYPES } from '../base/engine-names.ts';
import { RowkeyError } from '../base/errors.ts';
import { AUDIT_CONTAINER, accountOfContainer, isMovable } from '../storage/blob-owner.ts';
import { listContainer } from '../storage/blobs.ts';
import { askAccount } from '../storage/errors.ts';
import { type Row, readRow, submit } from '../storage/rows.ts';
import {
  ACCOUNTS_PARTITION,
  ACCOUNTS_ROW,
  accountsIn,
  CONTAINERS_ROW,
  changeLayers,
  createOwned,
  isAtRest,
  isOwned,
  type Layer,
  type Layers,
  newestLayers,
  type Owned,
  type Phase,
  readOwned,
  type SlotState,
  SYSTEM_TABLE,
  stateOf,
} from '../storage/slot-row.ts';
import { SLOTS, slotAt, slotIndex } from '../storage/slots.ts';
import { type Account, type Accounts, FIRST_ACCOUNT, type Storage } from '../storage/storage.ts';

/** An account and what its row says of the slots. */
export interface Placement {
  readonly account: Account;
  readonly owned: Owned;
}

/** Slots, and the name of the account that gets them. */
export interface Plan {
  readonly slots: readonly string[];
  readonly to: string;
}

/** The accounts of an app that has several. */
export function severalAccounts({ accounts }: Storage): Accounts {
  if (!accounts)
    throw new RowkeyError(
      'invalid-input',
      'The app has one storage account: there is nothing to move. Name further ones in STORAGE_ACCOUNTS; a local instance gets them by --accounts 2.',
    );
  return accounts;
}

/** What the accounts say. One point query for each. */
export async function readPlacement(accounts: Accounts): Promise<Placement[]> {
  return pMap(accounts.list, async (account) => {
    for (;;) {
      const owned = await readOwned(account);
      if (owned) return { account, owned };
      await createOwned(accounts);
    }
  });
}

/** The mover that changes layers, and what it may write. */
interface LayerWriter {
  readonly accounts: Accounts;
  readonly mayWrite: () => void;
}

/** What the accounts say, after the layers that a mover has changed in some accounts are changed in all. */
export async function completeLayers(mover: LayerWriter): Promise<Placement[]> {
  for (;;) {
    const placements = await readPlacement(mover.accounts);
    const layers = newestLayers(placements.map(({ owned }) => owned));
    if (placements.every(({ owned }) => owned.layers.version === layers.version)) return placements;
    await writeLayers(mover, layers);
  }
}

/** Gives each account that has older layers these ones. */
export async function writeLayers({ accounts, mayWrite }: LayerWriter, layers: Layers): Promise<void> {
  for (const account of accounts.list)
    await changeLayers(account, layers, (owned) => {
      mayWrite();
      requireAtRest(owned);
    });
}

export function requireAtRest(owned: Owned): void {
  if (!isAtRest(owned)) throw new RowkeyError('busy', 'Slots are moving. Resume or abort their moves first.');
}

/** The layers of the accounts, also if they are changed in some only. */
export const layersIn = (placements: readonly Placement[]): readonly Layer[] =>
  newestLayers(placements.map(({ owned }) => owned)).list;

export const stateIn = ({ owned }: Placement, slot: string): SlotState => stateOf(owned, slotIndex(slot));

/** The account that owns the slot. Undefined for the moment between two owners. */
export const findOwner = (placements: readonly Placement[], slot: string): Placement | undefined =>
  placements.find(({ owned }) => isOwned(owned, slotIndex(slot)));

/** The slots of a layer that are in the phase at the account. */
export function slotsIn(placement: Placement, phase: Phase, layer = 0): string[] {
  const all = Array.from({ length: SLOTS }, (_, index) => slotAt(layer * SLOTS + index));
  return all.filter((slot) => stateIn(placement, slot).phase === phase);
}

/** Spreads the slots at rest evenly over all accounts, with as few moves as possible. */
export function planBalance(placements: readonly Placement[]): Plan[] {
  const slots = placements.map((placement) => slotsIn(placement, 'at rest'));
  const all = slots.reduce((sum, of) => sum + of.length, 0);
  const most = slots.map((of, index) => ({ index, length: of.length })).sort((one, other) => other.length - one.length);
  const wanted = new Map(
    most.map(({ index }, place) => [index, Math.floor((all + slots.length - 1 - place) / slots.length)] as const),
  );
  const spare = slots.flatMap((of, index) => of.slice(wanted.get(index)));
  return placements.flatMap(({ account }, index) => {
    const missing = Math.max(0, (wanted.get(index) ?? 0) - (slots[index]?.length ?? 0));
    const given = spare.splice(0, missing);
    return given.length > 0 ? [{ slots: given, to: account.name }] : [];
  });
}

/**
 * Rejects a process that lacks an account in which the app has data: it would not find them, and write others in their place. `rows` are those
 * beside which the names of the accounts are: a process with one account has read them already.
 */
export async function requireAccounts({ accounts }: Storage, rows: readonly Row[]): Promise<void> {
  const readNoted = async ({ list: [first] }: Accounts) => {
    const address = { table: SYSTEM_TABLE, partition: ACCOUNTS_PARTITION, row: ACCOUNTS_ROW };
    // The slots of an account that this process lacks have no owner for it: then they are not served, which is safe.
    return (await askAccount(first, readRow(first, address))).result;
  };
  const noted = accounts ? await readNoted(accounts) : rows.find(({ row }) => row === ACCOUNTS_ROW);
  const names = noted ? accountsIn(noted.properties) : [];
  const given = accounts?.list.map(({ name }) => name) ?? [FIRST_ACCOUNT];
  const missing = names.filter((name) => !given.includes(name));
  if (missing.length === 0) return;
  const further = names.filter((name) => name !== FIRST_ACCOUNT).join(' ');
  throw new RowkeyError(
    'wrong-setting',
    `Invalid settings: the app has data in storage accounts that STORAGE_ACCOUNTS does not name: ${missing.join(', ')}. Set STORAGE_ACCOUNTS="${further}", with the settings of each.`,
  );
}

/** The name of an account for each container; empty if each blob is in the account of its slot. */
type Places = Readonly<Record<string, string>>;

/**
 * Rejects another account for a container that has blobs: nothing would find them. Records what the model places, in the first account. With
 * several accounts, one point query, and listings after a change.
 */
export async function requireContainers(storage: Storage, containers: readonly string[]): Promise<void> {
  const { accounts } = storage;
  if (!accounts) return;
  const [first] = accounts.list;
  const address = { table: SYSTEM_TABLE, partition: ACCOUNTS_PARTITION, row: CONTAINERS_ROW };
  const { result: row, away } = await askAccount(first, readRow(first, address));
  if (away !== undefined) return;
  const before: Places = row ? JSON.parse(String(row.properties.Containers)) : {};
  const placeBefore = (container: string) => before[container] ?? (isMovable(container) ? '' : first.name);
  // The audit log is read in all accounts.
  const placed = containers.filter((container) => container !== AUDIT_CONTAINER);
  const places = placed.map((container) => [container, accountOfContainer(storage, container)?.name ?? ''] as const);
  const changed = places.filter(([container, place]) => place !== placeBefore(container));
  if (changed.length === 0) return;
  for (const [container, place] of changed)
    for (const account of accounts.list)
      if (account.name !== place && (await hasBlobs(account, container)))
        throw new RowkeyError(
          'wrong-setting',
          `The model moved the container ${container} ${place ? `to the storage account ${place}` : 'to the accounts of the slots'}, and ${account.name} has blobs of it that nothing would find. Undo the change of containerAccounts${place ? ', or stop the app, copy the blobs with AzCopy, and delete them there' : ''}.`,
        );
  const properties = {
    EntityType: ROW_TYPES.containers,
    Containers: JSON.stringify({ ...before, ...Object.fromEntries(changed) }),
  };
  const actions = [{ kind: 'upsert', row: CONTAINERS_ROW, properties }] as const;
  await submit(first, { ...address, actions: [...actions], isRepeatable: true });
}

async function hasBlobs(account: Account, container: string): Promise<boolean> {
  for await (const _ of listContainer(account, container, '')) return true;
  return false;
}
