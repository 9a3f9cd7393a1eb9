import type { Row } from '../../lib/storage/rows.ts';
import { beginsWithValue, formOf } from './key-shape.ts';
import { typeOf, whyNoField } from './stored-types.ts';

/** Rows of a table that have keys of one form, or one value of the property that tells the kinds. */
export interface RowGroup {
  readonly rows: readonly Row[];
  /** The text with which the partition keys, and the row keys, begin. */
  readonly partitionHead: string;
  readonly rowHead: string;
  /** The property that tells the kind beside the keys, and its value. */
  readonly where?: { readonly property: string; readonly value: string | number | boolean };
  /** The property that alone tells several kinds apart, whose keys have one form, and its values. A model needs keys of different forms. */
  readonly mixed?: { readonly property: string; readonly values: readonly string[] };
}

/** The property names that programs give to the kind of a row. */
const KIND_NAME = /^(kind|type|.*(type|kind)|discriminator|schema|class(name)?)$/i;
const MAX_KINDS = 20;
/** Of so many texts with a separator, the first words are values, unless other properties follow. */
const MAX_HEADS = 6;
/** The part of the keys that have a head, if heads are no values. */
const LEAST_HEADED = 0.6;
const LEAST_SHARE = 0.03;

/** Tells the kinds of rows in a table apart by the beginning and the form of their keys, and finds the property, such as Kind, that says so, too. */
export function findKinds(rows: readonly Row[]): RowGroup[] {
  const kindProperty = findKindProperty(rows);
  const byKey = groupByKeys(rows, kindProperty);
  if (kindProperty === undefined) return byKey;
  const valuesIn = (some: readonly Row[]) => [...new Set(some.map(({ properties }) => properties[kindProperty]))];
  return byKey.map((group) => {
    const values = valuesIn(group.rows);
    const [value] = values;
    const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    // A property that has the same value everywhere tells nothing.
    if (values.length === 1)
      return isPlain && byKey.length > 1 ? { ...group, where: { property: kindProperty, value } } : group;
    if (!isTellingIn(group.rows, kindProperty)) return group;
    return { ...group, mixed: { property: kindProperty, values: values.map(String).sort() } };
  });
}

/** The property that has few values, and other properties go with them. */
function findKindProperty(rows: readonly Row[]): string | undefined {
  const names = new Set(
    rows.flatMap(({ properties }) =>
      Object.keys(properties).filter((name) => KIND_NAME.test(name) && whyNoField(name) === undefined),
    ),
  );
  return [...names].find((name) => isTellingIn(rows, name));
}

/** True if rows of different values of the property have different properties. */
function isTellingIn(rows: readonly Row[], name: string): boolean {
  const byValue = Map.groupBy(rows, ({ properties }) => properties[name]);
  byValue.delete(undefined);
  const isPlain = [...byValue.keys()].every((value) => typeof value === 'string' || typeof value === 'number');
  if (!isPlain || byValue.size < 2 || byValue.size > MAX_KINDS) return false;
  const presences = [...byValue.values()].map(presenceOf);
  return presences.every((one, index) => presences.slice(index + 1).every((other) => differ(one, other)));
}

/** The part of the rows that have each property. */
function presenceOf(rows: readonly Row[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { properties } of rows)
    for (const name of Object.keys(properties)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map([...counts].map(([name, count]) => [name, count / rows.length]));
}

/** True if most rows of one group have a property that no row of the other has. */
function differ(one: Map<string, number>, other: Map<string, number>): boolean {
  const hasOwn = (first: Map<string, number>, second: Map<string, number>) =>
    [...first].some(([name, part]) => part >= 0.8 && !second.has(name));
  return hasOwn(one, other) || hasOwn(other, one);
}

interface KeyGroup extends RowGroup {
  readonly partitionWord: Head;
  readonly rowWord: Head;
}

function groupByKeys(rows: readonly Row[], kindProperty: string | undefined): RowGroup[] {
  const partitionHeads = headsOf(rows.map(({ partition }) => partition));
  const rowHeads = headsOf(rows.map(({ row }) => row));
  const groups = Map.groupBy(rows, ({ partition, row }) =>
    JSON.stringify([
      partitionHeads(partition),
      formAfter(partition, partitionHeads),
      rowHeads(row),
      formAfter(row, rowHeads),
    ]),
  );
  let all = [...groups].map(([id, ofGroup]): KeyGroup => {
    const [partitionWord, , rowWord] = JSON.parse(id) as [Head, string, Head, string];
    return { rows: ofGroup, partitionWord, rowWord, partitionHead: partitionWord.text, rowHead: rowWord.text };
  });
  const isAlike = (one: KeyGroup, other: KeyGroup) => haveOneKind(one.rows, other.rows, kindProperty);
  // The same beginnings, and a part that has several forms.
  all = merge(
    all,
    (one, other) => one.partitionHead === other.partitionHead && one.rowHead === other.rowHead && isAlike(one, other),
  );
  all = mergeValues(all, 'partition', isAlike);
  return mergeValues(all, 'row', isAlike).map(({ partitionWord: _, rowWord: __, ...group }) => group);
}

/** Merges groups that differ only in the word of one of their keys, if the words are values: too many words, or whole keys. */
function mergeValues(
  all: readonly KeyGroup[],
  of: 'partition' | 'row',
  isAlike: (one: KeyGroup, other: KeyGroup) => boolean,
) {
  const [word, head] =
    of === 'partition' ? (['partitionWord', 'partitionHead'] as const) : (['rowWord', 'rowHead'] as const);
  const other = of === 'partition' ? 'rowHead' : 'partitionHead';
  const areValues = (one: KeyGroup, another: KeyGroup) => {
    if (one[other] !== another[other] || !isAlike(one, another)) return false;
    // Merged before.
    if (one[head] === another[head]) return true;
    const isWhole = one[word].isWhole || another[word].isWhole || one[head] === '' || another[head] === '';
    return (
      isWhole ||
      new Set(all.filter((each) => each[other] === one[other] && isAlike(each, one)).map((each) => each[head])).size >
        MAX_HEADS
    );
  };
  return merge(all, areValues);
}

function merge(groups: readonly KeyGroup[], areOne: (one: KeyGroup, other: KeyGroup) => boolean): KeyGroup[] {
  const merged: KeyGroup[] = [];
  for (const group of groups) {
    const at = merged.findIndex((known) => areOne(known, group));
    const known = merged[at];
    if (!known) {
      merged.push(group);
      continue;
    }
    const same = (head: 'partitionHead' | 'rowHead') => (known[head] === group[head] ? known[head] : '');
    merged[at] = {
      ...known,
      rows: [...known.rows, ...group.rows],
      partitionHead: same('partitionHead'),
      rowHead: same('rowHead'),
    };
  }
  return merged;
}

/** True if the rows have the same properties, for the most part, and the same kind. */
function haveOneKind(one: readonly Row[], other: readonly Row[], kindProperty: string | undefined): boolean {
  const kinds = [one, other].map((rows) =>
    kindProperty === undefined ? '' : String(rows[0]?.properties[kindProperty]),
  );
  if (kinds[0] !== kinds[1]) return false;
  const [first, second] = [typesIn(one), typesIn(other)];
  const shared = [...first].filter((each) => second.has(each)).length;
  const all = new Set([...first, ...second]).size;
  return all === 0 || shared / all >= 0.7;
}

function typesIn(rows: readonly Row[]): Set<string> {
  return new Set(
    rows.flatMap(({ properties }) => Object.entries(properties).map(([name, value]) => `${name} ${typeOf(value)}`)),
  );
}

/** The text with which a key begins, if keys of a kind have it in common. */
interface Head {
  readonly text: string;
  /** True if it is the whole key. */
  readonly isWhole: boolean;
}

const NONE: Head = { text: '', isWhole: false };

/** A word that is the whole key, or is followed by a separator or a digit. */
function wordOf(key: string): Head {
  if (formOf(key) !== 'text' || beginsWithValue(key)) return NONE;
  if (/^[A-Za-z]+$/.test(key)) return { text: key, isWhole: true };
  const text = /^[A-Za-z]+(?:[_:|~=$+.;,-]+|(?=\d))/.exec(key)?.[0] ?? '';
  return { text, isWhole: false };
}

/** Returns a function that returns the head of each key. */
function headsOf(keys: readonly string[]): (key: string) => Head {
  const distinct = [...new Set(keys)];
  const words = new Map(distinct.map((key) => [key, wordOf(key)]));
  const counts = new Map<string, number>();
  for (const { text, isWhole } of words.values()) if (!isWhole) counts.set(text, (counts.get(text) ?? 0) + 1);
  const rowsOf = Map.groupBy(keys, (key) => key);
  const rowCounts = new Map<string, number>();
  for (const key of keys) {
    const text = words.get(key)?.text ?? '';
    rowCounts.set(text, (rowCounts.get(text) ?? 0) + 1);
  }
  const isFrequent = (count: number, all: number) => count >= Math.max(2, all * LEAST_SHARE);
  const heads = new Set(
    [...counts]
      .filter(
        ([text, count]) => isFrequent(count, distinct.length) || isFrequent(rowCounts.get(text) ?? 0, keys.length),
      )
      .map(([text]) => text),
  );
  heads.delete('');
  const wholeWords = distinct.filter((key) => words.get(key)?.isWhole).length;
  const isCommon = (key: string) =>
    wholeWords <= MAX_KINDS || (rowsOf.get(key)?.length ?? 0) >= keys.length * LEAST_SHARE;
  const headed = distinct.filter((key) => heads.has(words.get(key)?.text ?? '')).length;
  const withWord = [...words.values()].filter(({ text, isWhole }) => text !== '' && !isWhole).length;
  const areHeads = headed >= withWord * LEAST_HEADED;
  return (key) => {
    const word = words.get(key) ?? NONE;
    if (word.isWhole) return isCommon(key) ? word : NONE;
    return areHeads && heads.has(word.text) ? word : NONE;
  };
}

function formAfter(key: string, heads: (key: string) => Head): string {
  const { text } = heads(key);
  const rest = key.slice(text.length);
  return rest === '' ? '' : formOf(rest);
}
