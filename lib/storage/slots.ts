import { hash } from 'node:crypto';

/**
 * Slots spread partitions and blobs, and slot-map.ts says which account owns a slot if an app has several accounts. A slot is the
 * beginning of a hash, so that keys and names that are alike are spread as well.
 *
 * A layer is slots of their own, by the same hash, for the partitions of some tables or keys: of an entity or a tenant, which so can have an
 * account of its own. All others are in layer 0. The rows of the accounts have the definitions of the layers, and no process has them from
 * elsewhere: so all agree where a partition is, whichever release they run. Each layer has a number that no other one ever gets.
 */
export const SLOTS = 4_096;
const DIGITS = 3;

/** Returns the slot of a partition key, or of another text: three hexadecimal digits. Stored names contain it, so it never changes. */
export function slotOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, DIGITS);
}

/** A partition of a table, or a blob, by what its slot depends on. */
export interface Placed {
  /** In layer 0. */
  readonly slot: string;
  /** Undefined for a blob whose name does not have it. */
  readonly table?: string | undefined;
  /** Undefined for a blob. */
  readonly partition?: string | undefined;
  /** Of a blob whose name has them: see `hashKey`. */
  readonly keyHashes?: readonly string[] | undefined;
}

export function placeOf(table: string, partition: string): Placed {
  return { slot: slotOf(partition), table, partition };
}

/** Ends a beginning of a partition key that a placement can name. Escapes in keys begin with `!`. */
const PUNCTUATION = /[ "-/:-@[-`{-~]/g;
const MAX_KEY_HASHES = 8;

/**
 * Returns what the name of a blob says of the partition key of its row: hashes of the beginnings of the key that end with punctuation, and of
 * the whole key. So a layer of keys has the blob if it has the row, and a URL does not show the key. Stored names contain the hashes, so they
 * never change.
 *
 * Only the first eight count, in order. So a layer that has the blob for one of its keys would have it for each beginning of this key, too, as
 * `intersectLayers` and `subtractLayers` assume: otherwise a change of layers would change the account of a blob without a move.
 */
export function hashKey(partition: string): readonly string[] {
  const beginnings = Array.from(partition.matchAll(PUNCTUATION), ({ index }) => partition.slice(0, index + 1));
  return [...beginnings, wholeKey(partition)].slice(0, MAX_KEY_HASHES).map(hashOf);
}

/** No key has a slash. */
const wholeKey = (key: string) => `${key}/`;

/** 48 bits: other keys with the same hash are not to be expected among those of an app. */
const hashOf = (text: string) => hash('sha256', text, 'base64url').slice(0, 8);

/** True if `hashKey` tells which keys begin with another key and the separator. */
export const isSeparator = (separator: string) => separator.slice(-1).search(PUNCTUATION) >= 0;

/** Slots of all layers have numbers one after the other. A slot of another layer than 0 is written with its layer: `1-07a`. */
export function slotIndex(slot: string): number {
  const [digits = '', layer = '0'] = slot.split('-').reverse();
  return Number(layer) * SLOTS + Number.parseInt(digits, 16);
}

export function slotAt(index: number): string {
  const digits = (index % SLOTS).toString(16).padStart(DIGITS, '0');
  return index < SLOTS ? digits : `${layerOf(index)}-${digits}`;
}

export const layerOf = (index: number) => Math.floor(index / SLOTS);

/** Which partitions a layer has: those that all its conditions hold for. */
export interface LayerDefinition {
  readonly name: string;
  /** Tables, and those of their periods. By default all. */
  readonly tables?: readonly string[] | undefined;
  /** Partition keys: each itself, and those that begin with it and the separator. */
  readonly keys?: readonly string[] | undefined;
  readonly separator?: string | undefined;
  /** Partition keys from here, inclusive. */
  readonly from?: string | undefined;
  /** Partition keys before this one, exclusive. */
  readonly to?: string | undefined;
}

/** The names of the tables of periods end with at least a year. */
const PERIOD = /\d{4,}$/;

/** Returns a function that tells whether the layer has a partition or blob. A layer with a range of keys has no blobs: hashes have no order. */
export function layerMatcher({ tables, keys, separator = '', from, to }: LayerDefinition): (place: Placed) => boolean {
  const [ofTables, ofKeys] = [tables && new Set(tables), keys && new Set(keys)];
  const isRange = from !== undefined || to !== undefined;
  const hasKeys = keys !== undefined || isRange;
  let ofHashes: ReadonlySet<string> | undefined;
  const hashKeys = () => {
    const texts = (keys ?? []).flatMap((key) => [wholeKey(key), ...(separator ? [key + separator] : [])]);
    ofHashes = new Set(texts.map(hashOf));
    return ofHashes;
  };
  return ({ table, partition, keyHashes = [] }) => {
    if (ofTables && (table === undefined || !(ofTables.has(table) || ofTables.has(table.replace(PERIOD, '')))))
      return false;
    if (!hasKeys) return true;
    if (partition === undefined) return !isRange && keyHashes.some((each) => (ofHashes ?? hashKeys()).has(each));
    if ((from !== undefined && partition < from) || (to !== undefined && partition >= to)) return false;
    return !ofKeys || ofKeys.has(partition) || beginsWithAny(ofKeys, partition, separator);
  };
}

function beginsWithAny(keys: ReadonlySet<string>, partition: string, separator: string): boolean {
  if (separator === '') return false;
  for (let at = partition.indexOf(separator); at >= 0; at = partition.indexOf(separator, at + 1))
    if (keys.has(partition.slice(0, at))) return true;
  return false;
}

/** False if no partition can be in both. */
export function canOverlap(one: LayerDefinition, other: LayerDefinition): boolean {
  if (one.tables && other.tables && !hasAnyTable(one, other.tables) && !hasAnyTable(other, one.tables)) return false;
  if (one.keys && other.keys) return hasAnyKey(one, other) || hasAnyKey(other, one);
  const { from, to } = { from: maxOf(one.from, other.from), to: minOf(one.to, other.to) };
  if (from !== undefined && to !== undefined && from >= to) return false;
  const keys = one.keys ?? other.keys;
  const { separator = '' } = one.keys ? one : other;
  // The keys that begin with a key and the separator follow it, up to the next separator.
  const isIn = (key: string) =>
    (to === undefined || key < to) && (from === undefined || key >= from || `${key}${separator}\uffff` >= from);
  return !keys || keys.some(isIn);
}

type Conditions = Omit<LayerDefinition, 'name'>;

/** The partitions that are in both. Undefined if none can be. Of keys, both have the same separator. */
export function intersectLayers(one: Conditions, other: Conditions): Conditions | undefined {
  if (!canOverlap({ name: '', ...one }, { name: '', ...other })) return undefined;
  const both = (list: 'tables' | 'keys') => {
    const [mine, its] = [one[list], other[list]];
    if (!mine || !its) return mine ?? its;
    return [...new Set([...mine.filter(isInList(other, list)), ...its.filter(isInList(one, list))])].sort();
  };
  const { separator } = one.keys ? one : other;
  const [tables, keys, from, to] = [both('tables'), both('keys'), maxOf(one.from, other.from), minOf(one.to, other.to)];
  return {
    ...(tables && { tables }),
    ...(keys && { keys, separator }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
}

/**
 * The partitions of a layer that are in none of the others. May have some that are, but only if the layer has more than they in two kinds of
 * conditions. Undefined if all are in others.
 */
export function subtractLayers(one: Conditions, others: readonly Conditions[]): Conditions | undefined {
  let [left, before]: (Conditions | undefined)[] = [one];
  while (left !== before) {
    before = left;
    for (const other of others) left = left && subtractLayer(left, other);
  }
  return left;
}

function subtractLayer(one: Conditions, other: Conditions): Conditions | undefined {
  const isSeparated = one.keys && other.keys && one.separator !== other.separator;
  const more = (['tables', 'keys'] as const).filter(
    (list) => other[list] && (!one[list]?.every(isInList(other, list)) || (list === 'keys' && isSeparated)),
  );
  const hasMoreKeys =
    (other.from !== undefined && (one.from === undefined || one.from < other.from)) ||
    (other.to !== undefined && (one.to === undefined || one.to > other.to));
  const [list] = more;
  if (!list && !hasMoreKeys) return undefined;
  if (!list || more.length > 1 || hasMoreKeys || !one[list] || (list === 'keys' && isSeparated)) return one;
  const isIn = isInList(other, list);
  const left = one[list].filter((each) => !isIn(each));
  return left.length === one[list].length ? one : { ...one, [list]: left };
}

/** Tells whether a layer with the list has a table, or all partitions of a key. */
function isInList({ tables, keys, separator }: Conditions, list: 'tables' | 'keys'): (text: string) => boolean {
  const matches = layerMatcher(list === 'tables' ? { name: '', tables } : { name: '', keys, separator });
  return (text) => matches(list === 'tables' ? { slot: '', table: text } : { slot: '', partition: text });
}

/** A table whose name ends with digits may be one of the periods of another. */
function hasAnyTable({ tables }: LayerDefinition, others: readonly string[]): boolean {
  const matches = layerMatcher({ name: '', tables });
  return others.some((table) => matches({ slot: '', table }));
}

function hasAnyKey({ keys, separator }: LayerDefinition, other: LayerDefinition): boolean {
  const matches = layerMatcher({ name: '', keys, separator });
  const begins = (other.keys ?? []).flatMap((key) => [key, key + (other.separator ?? '')]);
  return begins.some((partition) => matches({ slot: '', partition }));
}

const maxOf = (one: string | undefined, other: string | undefined) =>
  one === undefined || (other !== undefined && other > one) ? other : one;
const minOf = (one: string | undefined, other: string | undefined) =>
  one === undefined || (other !== undefined && other < one) ? other : one;
