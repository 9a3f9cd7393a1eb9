import pMap from 'p-map';
import { z } from 'zod';
import { isOutcomeUnknown, RowkeyError } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { commandLine } from '../command-line.ts';
import { ofAccount, storageCalls, unlessRefused } from './errors.ts';
import { listTables } from './provision.ts';
import type { Address } from './row-query.ts';
import { type LayerDefinition, layerMatcher, layerOf, type Placed, SLOTS, slotAt, slotIndex } from './slots.ts';
import type { Account, Accounts } from './storage.ts';

/**
 * Which slots an account owns: one row in each account, so an account that is away stops only its own slots. With one account, no such row
 * exists. A slot has one owner, or none for the moment in which it is moved: the source lets go first.
 */

/** The table of the engine's own state, shared by all instances of a deployment. */
export const SYSTEM_TABLE = 'system';
const PARTITION = 'slots';
const ROW = 'owned';
/** The names of all accounts, beside the shapes of the model: a process with one account reads it with them. */
export const ACCOUNTS_PARTITION = 'model';
export const ACCOUNTS_ROW = '~accounts';
/** The accounts of the containers that the model places. */
export const CONTAINERS_ROW = '~containers';
const ACCOUNTS_TYPE = 'accounts';
/** The rows that fence a move begin with these: see fence.ts. */
export const FENCE_HEAD = '~own_';
export const MARK_HEAD = '~open_';
export const REGISTRY_HEAD = 'slots-';

/** False for the rows that say where others are. They stay in their account. */
export function isOfApp({ table, partition, row }: Address): boolean {
  if (
    row.startsWith('~') &&
    (row === ACCOUNTS_ROW || row === CONTAINERS_ROW || row.startsWith(FENCE_HEAD) || row.startsWith(MARK_HEAD))
  )
    return false;
  return table !== SYSTEM_TABLE || (partition !== PARTITION && !partition.startsWith(REGISTRY_HEAD));
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
  /** When the account let the slot go, in milliseconds of the service's clock. */
  readonly goneAt?: number | undefined;
}

/** The state of a slot that is in a move, without its phase. */
interface InMove {
  readonly move: string;
  readonly to: string;
  readonly turn: number;
  readonly isClosed: boolean;
  readonly goneAt: number;
}

/** The definitions of the layers from 1. A layer that was removed leaves its number, so that no number gets another meaning. */
export type Layers = readonly (LayerDefinition | null)[];

/** What the row of an account says. */
export interface Owned {
  readonly etag: string;
  /** When the service returned the row, in milliseconds of its own clock, without the fraction of a second. */
  readonly readAt: number;
  /** One character for each slot, those of layer 0 first. */
  readonly text: string;
  readonly moves: ReadonlyMap<number, InMove>;
  readonly layers: Layers;
}

/**
 * The layers of all accounts, while one is carved or removed in some accounts only: a layer that any account has, unless any account says that it is
 * removed. Where an account lacks it, both views say the same of each partition.
 */
export function mergeLayers(all: readonly Pick<Owned, 'layers'>[]): Layers {
  const most = Math.max(...all.map(({ layers }) => layers.length));
  return Array.from({ length: most }, (_, index) => {
    const found = all.map(({ layers }) => layers[index]);
    return found.includes(null) ? null : (found.find((layer) => layer !== undefined) ?? null);
  });
}

export function stateOf({ text, moves }: Owned, index: number): SlotState {
  const phase = PHASES[text[index] as keyof typeof PHASES] ?? 'none';
  return { phase, ...moves.get(index) };
}

/** True if the account has the slot, at rest or in a move. Of a layer that its row does not have, it owns what it owns of layer 0. */
export function isOwned({ text }: Pick<Owned, 'text'>, index: number): boolean {
  const character = text[index] ?? text[index % SLOTS];
  return character === 'o' || character === 'f' || character === 'd';
}

/**
 * The name of the account that gets a slot that no account owns, because a mover has died between its last two requests: the one to which
 * its last owner has let it go. Undefined if an account owns the slot.
 */
export function heirOf(all: readonly Owned[], index: number): string | undefined {
  if (all.some((owned) => isOwned(owned, index))) return undefined;
  const states = all.map((owned) => stateOf(owned, index)).filter(({ phase }) => phase === 'gone');
  return states.reduce((one, other) => ((other.turn ?? 0) > (one.turn ?? -1) ? other : one), {} as Partial<SlotState>)
    .to;
}

const matchersOf = keptFor((layers: Layers) => layers.map((layer) => layer && layerMatcher(layer)));

/** The slot of a partition or blob in the layers of a row: that of the first layer which has it. */
export function indexIn({ layers }: Pick<Owned, 'layers'>, place: Placed): number {
  const index = slotIndex(place.slot);
  if (layers.length === 0 || place.table === SYSTEM_TABLE) return index;
  return (1 + matchersOf(layers).findIndex((matches) => matches?.(place))) * SLOTS + index;
}

/** The slots of a move, as three digits each. */
const Moves = z.record(
  z.string(),
  z.object({
    to: z.string(),
    slots: z.string(),
    turn: z.number().default(0),
    isClosed: z.boolean().default(false),
    goneAt: z.number().default(0),
  }),
);

const StoredLayers = z.array(
  z
    .object({
      name: z.string(),
      tables: z.array(z.string()).optional(),
      keys: z.array(z.string()).optional(),
      separator: z.string().optional(),
      from: z.string().optional(),
      to: z.string().optional(),
    })
    .nullable(),
);

/**
 * The row of an account with layers has other names for the properties of its slots. A release that knows no layers fails then, and does
 * not write where it finds a partition in layer 0.
 */
function propertiesOf(layers: Layers, layer: number): readonly [slots: string, moves: string] {
  return layers.length === 0 ? ['Slots', 'Moves'] : [`Slots${layer}`, `Moves${layer}`];
}

/** The numbers of the layers that are there. */
function* numbersOf(layers: Layers): Generator<number> {
  yield 0;
  for (const [before, layer] of layers.entries()) if (layer) yield before + 1;
}

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
  const layers = found.Layers === undefined ? [] : StoredLayers.parse(JSON.parse(String(found.Layers)));
  const moves = new Map<number, InMove>();
  const texts: string[] = [];
  for (const number of numbersOf(layers)) {
    const [slotsName, movesName] = propertiesOf(layers, number);
    texts[number] = String(found[slotsName]);
    for (const [move, { slots, ...rest }] of Object.entries(Moves.parse(JSON.parse(String(found[movesName])))))
      for (const slot of slots.match(/.../g) ?? []) moves.set(number * SLOTS + slotIndex(slot), { move, ...rest });
  }
  const text = Array.from({ length: 1 + layers.length }, (_, number) => texts[number] ?? texts[0]).join('');
  return { etag: found.etag, readAt: Date.parse(date ?? ''), text, moves, layers };
}

function toEntity(account: Account, { text, moves, layers }: Pick<Owned, 'text' | 'moves' | 'layers'>) {
  const properties: Record<string, string> = { EntityType: PARTITION, Name: account.name };
  if (layers.length > 0) properties.Layers = JSON.stringify(layers);
  for (const number of numbersOf(layers)) {
    const groups: Record<string, z.infer<typeof Moves>[string]> = {};
    for (const [index, { move, ...rest }] of moves) {
      if (layerOf(index) !== number) continue;
      groups[move] ??= { ...rest, slots: '' };
      groups[move].slots += slotAt(index % SLOTS);
      groups[move].goneAt = Math.max(groups[move].goneAt, rest.goneAt);
    }
    const [slotsName, movesName] = propertiesOf(layers, number);
    properties[slotsName] = text.slice(number * SLOTS, (number + 1) * SLOTS);
    properties[movesName] = JSON.stringify(groups);
  }
  return { partitionKey: PARTITION, rowKey: ROW, ...properties };
}

/** A property has at most 32,768 characters, and the texts of moves grow when their slots are let go. */
const MOVES_LENGTH = 30_000;
/** The length of the text of a move without its slots. */
const MOVE_LENGTH = 130;

/** Rejects a move that the row of an account may not be able to hold. */
export function requireRoom(account: Account, owned: Owned, slots: readonly string[]): void {
  const properties: Readonly<Record<string, string>> = toEntity(account, owned);
  const hasRoom = [...numbersOf(owned.layers)].every((number) => {
    const added = slots.filter((slot) => layerOf(slotIndex(slot)) === number);
    const { length = 0 } = properties[propertiesOf(owned.layers, number)[1]] ?? '';
    return added.length === 0 || length + MOVE_LENGTH + 3 * added.length <= MOVES_LENGTH;
  });
  if (hasRoom) return;
  const count = new Set([...owned.moves.values()].map(({ move }) => move)).size;
  throw new RowkeyError(
    'busy',
    `The storage account ${account.name} has no room for another move: ${count} are not cleaned up. Run ${commandLine('accounts', 'clean-up')}, 20 minutes after the last move at the earliest.`,
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
): Promise<boolean> {
  return changeOwned(account, async (owned) => {
    const characters = [...owned.text];
    const moves = new Map(owned.moves);
    for (const slot of slots) {
      const index = slotIndex(slot);
      const isKnown = index < SLOTS || owned.layers[layerOf(index) - 1];
      const next = isKnown ? await change(stateOf(owned, index), slot, owned.readAt) : undefined;
      if (!next) return undefined;
      characters[index] = CHARACTERS.get(next.phase) ?? '-';
      const { move, to, turn = 0, isClosed = false, goneAt = 0 } = next;
      if (move === undefined || to === undefined) moves.delete(index);
      else moves.set(index, { move, to, turn, isClosed, goneAt });
    }
    return { ...owned, text: characters.join(''), moves };
  });
}

/**
 * Gives an account these layers. The slots of a layer that it lacks get the states of those of layer 0, and a layer without a definition is
 * removed: neither changes the owner of a partition, as long as no slot moves, and as a layer that is removed agrees with layer 0.
 * `check` is called before each write, and throws if the layers may not be changed.
 */
export function changeLayers(account: Account, layers: Layers, check: (owned: Owned) => void): Promise<boolean> {
  return changeOwned(account, (owned) => {
    check(owned);
    const texts: string[] = [];
    const moves = new Map<number, InMove>();
    for (const number of numbersOf(layers)) {
      const start = number > 0 && owned.layers[number - 1] ? number * SLOTS : 0;
      texts[number] = owned.text.slice(start, start + SLOTS);
      for (const [index, state] of owned.moves)
        if (layerOf(index) * SLOTS === start) moves.set(number * SLOTS + (index % SLOTS), state);
    }
    const text = Array.from({ length: 1 + layers.length }, (_, number) => texts[number] ?? texts[0]).join('');
    return { ...owned, text, moves, layers };
  });
}

/** Writes what `next` makes of the row of an account, unless it returns undefined. Returns false then. */
async function changeOwned(
  account: Account,
  next: (owned: Owned) => Owned | undefined | Promise<Owned | undefined>,
): Promise<boolean> {
  for (let unknown = 0; ; ) {
    const owned = await readOwned(account);
    const changed = owned && (await next(owned));
    if (!owned || !changed) return false;
    const entity = toEntity(account, changed);
    const write = account.table(SYSTEM_TABLE).updateEntity(entity, 'Replace', { etag: owned.etag });
    try {
      if (await ofAccount(account, unlessRefused(['changed'], write, SYSTEM_TABLE))) return true;
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
    const text = firstSlots(names.indexOf(account.name), spread);
    const write = account.table(SYSTEM_TABLE).createEntity(toEntity(account, { text, moves: new Map(), layers: [] }));
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
    const properties = { EntityType: ACCOUNTS_TYPE, Accounts: JSON.stringify(all) };
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
