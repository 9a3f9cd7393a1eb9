import pMap from 'p-map';
import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS, SYSTEM_ROWS, SYSTEM_TABLE } from '../base/engine-names.ts';
import { isOutcomeUnknown, RowkeyError } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { commandLine } from '../command-line.ts';
import { ofAccount, storageCalls, unlessRefused } from './errors.ts';
import { isFenceRow } from './fence-rows.ts';
import { listTables } from './provision.ts';
import type { Row } from './row-query.ts';
import { type LayerDefinition, layerMatcher, layerOf, type Placed, SLOTS, slotAt, slotIndex } from './slots.ts';
import type { Account, Accounts } from './storage.ts';

/**
 * Which slots an account owns: one row in each account, so an account that is away stops only its own slots. With one account, no such row
 * exists. A slot has one owner, or none for the moment in which it is moved: the source lets go first.
 */

export { SYSTEM_TABLE } from '../base/engine-names.ts';

const PARTITION = SYSTEM_PARTITIONS.slots;
const ROW = SYSTEM_ROWS.owned;
/** The names of all accounts, beside the shapes of the model: a process with one account reads it with them. */
export const ACCOUNTS_PARTITION = SYSTEM_PARTITIONS.record;
export const ACCOUNTS_ROW = SYSTEM_ROWS.accounts;
/** The accounts of the containers that the model places. */
export const CONTAINERS_ROW = SYSTEM_ROWS.containers;
export const REGISTRY_HEAD = SYSTEM_PARTITIONS.registries;

/** False for the rows that say where others are, and for fences. They stay in their account. The row has all of its properties: see `isAmbiguous`. */
export function isOfApp(row: Omit<Row, 'etag'>): boolean {
  return !isFenceRow(row) && !isOfAccount(row);
}

/** True for a row of the system table that says where others are. */
export function isOfAccount({ table, partition, row }: Pick<Row, 'table' | 'partition' | 'row'>): boolean {
  if (table !== SYSTEM_TABLE) return false;
  if (partition === ACCOUNTS_PARTITION) return row === ACCOUNTS_ROW || row === CONTAINERS_ROW;
  return partition === PARTITION || partition.startsWith(REGISTRY_HEAD);
}

/**
 * The phases of a slot in the row of an account. A slot that is not at rest is in a move, whose id is never used again: its writes are
 * fenced, then wait, then the slot is gone to the account `to`.
 */
const PHASES = { '-': 'none', o: 'at rest', f: 'fencing', d: 'draining', g: 'gone' } as const;
export type Phase = (typeof PHASES)[keyof typeof PHASES];
const CHARACTERS = new Map(Object.entries(PHASES).map(([character, phase]) => [phase as Phase, character]));

export interface SlotState {
  readonly phase: Phase;
  /** Set in a move. */
  readonly move?: string | undefined;
  readonly to?: string | undefined;
  /** Greater than that of every earlier move whose slots are gone from an account. */
  readonly turn?: number | undefined;
  /** True if writes wait during the whole move: no partition is opened. */
  readonly isClosed?: boolean | undefined;
  /** When the mover closed the slot, in milliseconds of its own clock: for reports alone. */
  readonly closedAt?: number | undefined;
  /** When the account let the slot go, in milliseconds of the service's clock. */
  readonly goneAt?: number | undefined;
}

/** The state of a slot that is in a move, without its phase. */
interface InMove {
  readonly move: string;
  readonly to: string;
  readonly turn: number;
  readonly isClosed: boolean;
  readonly closedAt?: number | undefined;
  readonly goneAt: number;
}

/** A layer of the accounts. */
export interface Layer extends LayerDefinition {
  readonly number: number;
  /** The layer of which it is a part: the row of an account that lacks it says of it what it says of that one. By default 0. */
  readonly of?: number | undefined;
  /** True if the model no longer places it. */
  readonly isFormer?: boolean | undefined;
}

/** The layers in the order in which they have partitions. Each change has a higher version, and no number is used again. */
export interface Layers {
  /** Not below the number of any layer, also of one that was removed. */
  readonly version: number;
  readonly list: readonly Layer[];
}

export const NO_LAYERS: Layers = { version: 0, list: [] };

/** What the row of an account says. */
export interface Owned {
  readonly etag: string;
  /** When the service returned the row, in milliseconds of its own clock, without the fraction of a second. */
  readonly readAt: number;
  /** One character for each slot, by the number of its layer. */
  readonly texts: ReadonlyMap<number, string>;
  readonly moves: ReadonlyMap<number, InMove>;
  readonly layers: Layers;
}

/** The layers of all accounts, while they are changed in some accounts only. */
export function newestLayers(all: readonly Pick<Owned, 'layers'>[]): Layers {
  return all.reduce((one, { layers }) => (layers.version > one.version ? layers : one), NO_LAYERS);
}

/**
 * What the row of an account says of the slots of newer layers. A layer that it lacks has the states of the one of which it is a part, and one
 * that is removed has none: neither changes the owner of a partition, as long as no slot moves, and as the partitions of a layer that is
 * removed come into one that agrees with it.
 */
export function withLayers<Row extends Pick<Owned, 'texts' | 'moves' | 'layers'>>(row: Row, layers: Layers): Row {
  if (row.layers.version >= layers.version) return row;
  const texts = new Map<number, string>();
  const moves = new Map<number, InMove>();
  for (const { number, of = 0 } of [{ number: 0 } as Layer, ...layers.list]) {
    const from = [number, of, 0].find((each) => row.texts.has(each)) ?? 0;
    texts.set(number, row.texts.get(from) ?? '');
    for (const [index, state] of row.moves)
      if (layerOf(index) === from) moves.set(number * SLOTS + (index % SLOTS), state);
  }
  return { ...row, texts, moves, layers };
}

const characterOf = ({ texts }: Pick<Owned, 'texts'>, index: number) => texts.get(layerOf(index))?.[index % SLOTS];

export function stateOf(owned: Pick<Owned, 'texts' | 'moves'>, index: number): SlotState {
  const phase = PHASES[characterOf(owned, index) as keyof typeof PHASES] ?? 'none';
  return { phase, ...owned.moves.get(index) };
}

/** True if the account has the slot, at rest or in a move. */
export function isOwned(owned: Pick<Owned, 'texts'>, index: number): boolean {
  const character = characterOf(owned, index);
  return character === 'o' || character === 'f' || character === 'd';
}

/** True if no slot of the account is in motion. */
export const isAtRest = ({ texts }: Pick<Owned, 'texts'>) => ![...texts.values()].some((text) => /[fd]/.test(text));

/**
 * The name of the account that gets a slot that no account owns, because a mover has died between its last two requests: the one to which
 * its last owner has let it go. Undefined if an account owns the slot.
 */
export function heirOf(rows: readonly Owned[], index: number): string | undefined {
  const layers = newestLayers(rows);
  const all = rows.map((row) => withLayers(row, layers));
  if (all.some((owned) => isOwned(owned, index))) return undefined;
  const states = all.map((owned) => stateOf(owned, index)).filter(({ phase }) => phase === 'gone');
  return states.reduce((one, other) => ((other.turn ?? 0) > (one.turn ?? -1) ? other : one), {} as Partial<SlotState>)
    .to;
}

const matchersOf = keptFor(({ list }: Layers) =>
  list.map((layer) => ({ number: layer.number, matches: layerMatcher(layer) })),
);

/** The slot of a partition or blob in the layers of a row: that of the first layer which has it. */
export function indexIn({ layers }: Pick<Owned, 'layers'>, place: Placed): number {
  const index = slotIndex(place.slot);
  if (layers.list.length === 0 || place.table === SYSTEM_TABLE) return index;
  return (matchersOf(layers).find(({ matches }) => matches(place))?.number ?? 0) * SLOTS + index;
}

/** The slots of a move, as three digits each. */
const Moves = z.record(
  z.string(),
  z.object({
    to: z.string(),
    slots: z.string(),
    turn: z.number().default(0),
    isClosed: z.boolean().default(false),
    closedAt: z.number().optional(),
    goneAt: z.number().default(0),
  }),
);

const StoredLayer = z.object({
  name: z.string(),
  tables: z.array(z.string()).optional(),
  keys: z.array(z.string()).optional(),
  separator: z.string().optional(),
  from: z.string().optional(),
  to: z.string().optional(),
  number: z.number(),
  of: z.number().optional(),
  isFormer: z.boolean().optional(),
});
const StoredLayers = z.object({ version: z.number(), list: z.array(StoredLayer) });

/**
 * The row of an account with layers has other names for the properties of its slots. A release that knows no layers fails then, and does
 * not write where it finds a partition in layer 0.
 */
function propertiesOf({ version }: Layers, layer: number): readonly [slots: string, moves: string] {
  return version === 0 ? ['Slots', 'Moves'] : [`Slots${layer}`, `Moves${layer}`];
}

/** The numbers of the layers, with layer 0. */
export const numbersOf = ({ list }: Layers): readonly number[] => [0, ...list.map(({ number }) => number)];

/** Reads the row of an account: one point query. Undefined if there is none. */
export async function readOwned(account: Account): Promise<Owned | undefined> {
  const client = account.table(SYSTEM_TABLE);
  let date: string | undefined;
  const onResponse = ({ headers }: { readonly headers: { get(name: string): string | undefined } }) => {
    date = headers.get('date');
  };
  const reading = client.getEntity<Record<string, unknown>>(PARTITION, ROW, { onResponse });
  const found = await ofAccount(account, unlessRefused(['missing'], reading, client.tableName));
  if (!found) return undefined;
  if (found.Name !== account.name)
    throw new RowkeyError(
      'wrong-setting',
      `Invalid settings: the storage account ${account.name} has the data of the account ${found.Name}.`,
    );
  const layers = found.Layers === undefined ? NO_LAYERS : StoredLayers.parse(JSON.parse(String(found.Layers)));
  const moves = new Map<number, InMove>();
  const texts = new Map<number, string>();
  for (const number of numbersOf(layers)) {
    const [slotsName, movesName] = propertiesOf(layers, number);
    texts.set(number, String(found[slotsName]));
    for (const [move, { slots, ...rest }] of Object.entries(Moves.parse(JSON.parse(String(found[movesName])))))
      for (const slot of slots.match(/.../g) ?? []) moves.set(number * SLOTS + slotIndex(slot), { move, ...rest });
  }
  return { etag: found.etag, readAt: Date.parse(date ?? ''), texts, moves, layers };
}

function toEntity(account: Account, { texts, moves, layers }: Pick<Owned, 'texts' | 'moves' | 'layers'>) {
  const properties: Record<string, string> = { EntityType: ROW_TYPES.slots, Name: account.name };
  if (layers.version > 0) properties.Layers = JSON.stringify(layers);
  for (const number of numbersOf(layers)) {
    const groups: Record<string, z.infer<typeof Moves>[string]> = {};
    for (const [index, { move, ...rest }] of moves) {
      if (layerOf(index) !== number) continue;
      groups[move] ??= { ...rest, slots: '' };
      groups[move].slots += slotAt(index % SLOTS);
      groups[move].goneAt = Math.max(groups[move].goneAt, rest.goneAt);
    }
    const [slotsName, movesName] = propertiesOf(layers, number);
    properties[slotsName] = texts.get(number) ?? '';
    properties[movesName] = JSON.stringify(groups);
  }
  return { partitionKey: PARTITION, rowKey: ROW, ...properties };
}

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const MAX_TEXT_LENGTH = 32_768;
const MAX_ROW_BYTES = 1_048_576;
/** More than the row has beside the names and the characters of a text, of which each takes two bytes. */
const TEXT_BYTES = 16;
const SYSTEM_BYTES = 200;
/** When slots are let go, their moves get a time of 13 digits. */
const LONGEST_TIME = 9_999_999_999_999;

/** Throws `busy` if the account could not store the row, also when slots that are in motion are let go. */
export function requireRoom(account: Account, owned: Pick<Owned, 'texts' | 'moves' | 'layers'>): void {
  const moves = new Map([...owned.moves].map(([index, state]) => [index, { ...state, goneAt: LONGEST_TIME }]));
  const texts = Object.entries(toEntity(account, { ...owned, moves }));
  const bytes = texts.reduce((sum, [name, text]) => sum + TEXT_BYTES + 2 * (name.length + text.length), SYSTEM_BYTES);
  if (bytes <= MAX_ROW_BYTES && texts.every(([, { length }]) => length <= MAX_TEXT_LENGTH)) return;
  const count = new Set([...owned.moves.values()].map(({ move }) => move)).size;
  throw new RowkeyError(
    'busy',
    `The row of the storage account ${account.name} has no room for the change: with it, ${count} moves are not cleaned up. Run ${commandLine('accounts', 'clean-up')}, 20 minutes after the last move at the earliest.`,
  );
}

type Changed = SlotState | undefined;

/**
 * Changes the states of slots in the row of an account, all or none: `change` returns the next state, or undefined if the slot may not be
 * changed. Returns false then. A change that `change` repeats for its own result can be repeated after a lost reply.
 */
export async function changeSlots(
  account: Account,
  slots: readonly string[],
  change: (state: SlotState, slot: string, readAt: number) => Changed | Promise<Changed>,
): Promise<string | undefined> {
  return changeOwned(account, async (owned) => {
    const characters = new Map<number, string[]>();
    const moves = new Map(owned.moves);
    for (const slot of slots) {
      const index = slotIndex(slot);
      const layer = layerOf(index);
      const text = characters.get(layer) ?? [...(owned.texts.get(layer) ?? '')];
      const next = text.length > 0 ? await change(stateOf(owned, index), slot, owned.readAt) : undefined;
      if (!next) return undefined;
      text[index % SLOTS] = CHARACTERS.get(next.phase) ?? '-';
      characters.set(layer, text);
      const { move, to, turn = 0, isClosed = false, closedAt, goneAt = 0 } = next;
      if (move === undefined || to === undefined) moves.delete(index);
      else moves.set(index, { move, to, turn, isClosed, closedAt, goneAt });
    }
    const changed = [...characters].map(([layer, text]) => [layer, text.join('')] as const);
    return { ...owned, texts: new Map([...owned.texts, ...changed]), moves };
  });
}

/** Gives an account these layers, unless it has them. `check` is called before each write, and throws if they may not be changed. */
export async function changeLayers(account: Account, layers: Layers, check: (owned: Owned) => void): Promise<boolean> {
  const etag = await changeOwned(account, (owned) => {
    if (owned.layers.version >= layers.version) return undefined;
    check(owned);
    return withLayers(owned, layers);
  });
  return etag !== undefined;
}

/** Writes what `next` makes of the row of an account, unless it returns undefined. Returns the new ETag. */
async function changeOwned(
  account: Account,
  next: (owned: Owned) => Owned | undefined | Promise<Owned | undefined>,
): Promise<string | undefined> {
  for (let unknown = 0; ; ) {
    const owned = await readOwned(account);
    const changed = owned && (await next(owned));
    if (!owned || !changed) return undefined;
    const entity = toEntity(account, changed);
    const write = account.table(SYSTEM_TABLE).updateEntity(entity, 'Replace', { etag: owned.etag });
    try {
      const written = await ofAccount(account, unlessRefused(['changed'], write, SYSTEM_TABLE));
      if (written) return written.etag;
    } catch (error) {
      unknown += 1;
      if (!isOutcomeUnknown(error) || unknown > MAX_UNKNOWN) throw error;
    }
  }
}

const MAX_UNKNOWN = 3;

/** The accounts that the app uses. The slots were spread over the first `spread` of them. */
const Known = z.object({ names: z.array(z.string()), spread: z.number() });

/** The names in the row `~accounts`. */
export function accountsIn(properties: Readonly<Record<string, unknown>>): readonly string[] {
  return Known.parse(JSON.parse(String(properties.Accounts))).names;
}

/**
 * Creates the missing rows of ownership. The first process decides: if no table has rows, the slots are spread evenly; else they all belong
 * to the first account, until an operator moves some. An account that is added later has none.
 */
export async function createOwned(accounts: Accounts): Promise<void> {
  const { names, spread } = await noteAccounts(accounts);
  await pMap(accounts.list, async (account) => {
    const texts = new Map([[0, firstSlots(names.indexOf(account.name), spread)]]);
    const write = account
      .table(SYSTEM_TABLE)
      .createEntity(toEntity(account, { texts, moves: new Map(), layers: NO_LAYERS }));
    // Another process may have created the row.
    await ofAccount(account, unlessRefused(['exists'], write, SYSTEM_TABLE));
  });
}

/** Adds the accounts to the record of the first account. */
async function noteAccounts({ list }: Accounts): Promise<z.infer<typeof Known>> {
  const [first] = list;
  const client = first.table(SYSTEM_TABLE);
  for (;;) {
    const read = client.getEntity<Record<string, unknown>>(ACCOUNTS_PARTITION, ACCOUNTS_ROW);
    const found = await ofAccount(first, unlessRefused(['missing'], read, client.tableName));
    const names = list.map(({ name }) => name);
    const known = found
      ? Known.parse(JSON.parse(String(found.Accounts)))
      : { names, spread: (await isEmpty(first)) ? names.length : 1 };
    const all = { ...known, names: [...new Set([...known.names, ...names])] };
    if (found && all.names.length === known.names.length) return known;
    const properties = { EntityType: ROW_TYPES.accounts, Accounts: JSON.stringify(all) };
    const entity = { partitionKey: ACCOUNTS_PARTITION, rowKey: ACCOUNTS_ROW, ...properties };
    const write = found ? client.updateEntity(entity, 'Replace', { etag: found.etag }) : client.createEntity(entity);
    // Otherwise another process was faster.
    if (await ofAccount(first, unlessRefused(['exists', 'changed', 'missing'], write, client.tableName))) return all;
  }
}

function firstSlots(index: number, spread: number): string {
  if (index >= spread) return '-'.repeat(SLOTS);
  const [from, before] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / spread)) as [number, number];
  return '-'.repeat(from) + 'o'.repeat(before - from) + '-'.repeat(SLOTS - before);
}

async function isEmpty(account: Account): Promise<boolean> {
  for (const table of await listTables(account, '')) {
    const pages = account.table(table).listEntities().byPage({ maxPageSize: 1 });
    // A page may be empty before the end.
    for await (const page of storageCalls(pages, table)) if (page.length > 0) return false;
  }
  return true;
}
