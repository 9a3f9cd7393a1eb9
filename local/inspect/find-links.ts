import { compileTemplate, parseKey } from '../../lib/define/keys/key-template.ts';
import type { Row } from '../../lib/storage/rows.ts';
import type { ProposedField, ProposedKind } from './propose-kind.ts';
import { textOf } from './stored-types.ts';

/** Rows that another program keeps as an index of other rows: a person would declare an index instead. */
export interface HandMadeIndex {
  readonly index: ProposedKind;
  readonly target: ProposedKind;
  /** The field or property of the index rows that has the id of the target, or the list of ids. */
  readonly from: string;
  /** True if the property has a list of ids. */
  readonly isList: boolean;
  /** The fields of the target whose values are in the key of the index rows, with how they are written there. */
  readonly by: readonly { readonly field: string; readonly change?: 'lower' | 'upper' }[];
  /** True if the key of the index rows has the id of the target, so that many rows may have one value. */
  readonly hasId: boolean;
  /** The field of the key of the target that the index rows have in their own key beside the values. */
  readonly within: string | undefined;
  /** The rows that were compared. */
  readonly compared: number;
  /** Ids that no row has. Undefined if that is not known, because the sample has only a part of the rows. */
  readonly dangling: number | undefined;
  /** Rows with a value to which no index row leads, as far as is known. */
  readonly missing: number | undefined;
  /** Index rows that lead to a row with another value. */
  readonly stale: number;
}

/** Rows that may be an index, and the rows that were read by the ids in them. */
export interface Followed {
  readonly index: ProposedKind;
  readonly target: ProposedKind;
  /** The rows of the index whose ids were read. */
  readonly rows: readonly Row[];
  readonly found: readonly Row[];
}

/** The part of the index rows that lead to a row of the target, at least. */
const LEAST_FOUND = 0.5;
const LEAST_EQUAL = 0.8;
const MIN_ROWS = 3;
const SOME = 100;

/** A row with its values by field or property, as texts. */
interface Values {
  readonly row: Row;
  readonly byName: ReadonlyMap<string, string>;
}

/** Finds kinds whose rows lead to rows of another kind, and have nothing else that is their own. */
export function findHandMadeIndexes(
  kinds: readonly ProposedKind[],
  { followed, partial }: { readonly followed: readonly Followed[]; readonly partial: ReadonlySet<string> },
): HandMadeIndex[] {
  const valuesOf = new Map(kinds.map((kind) => [kind, readValues(kind)]));
  const ids = idsOf(valuesOf);
  const found: HandMadeIndex[] = [];
  for (const index of kinds) {
    if (index.rows.length < MIN_ROWS) continue;
    const links = kinds.flatMap((target) => {
      const given = { index, target, rows: valuesOf.get(index) ?? [], targets: valuesOf.get(target) ?? [], ids };
      const link = target === index ? undefined : findLink(given);
      if (!link) return [];
      const dangling = partial.has(target.table) ? undefined : link.dangling;
      return {
        ...link,
        dangling,
        missing: partial.has(index.table) || partial.has(target.table) ? undefined : link.missing,
      };
    });
    const read = followed.filter((one) => one.index === index).flatMap((one) => linkFollowed(one) ?? []);
    const [best] = [...read, ...links].sort((one, other) => other.by.length - one.by.length);
    if (best) found.push(best);
  }
  // Two kinds that lead to each other: the one with more properties is the entity.
  return found.filter(
    ({ index, target }) =>
      !found.some(
        (other) => other.index === target && other.target === index && index.fields.length >= target.fields.length,
      ),
  );
}

/** The rows to which they lead have been read, so what is not found does not exist. */
function linkFollowed({ index, target, rows, found }: Followed): HandMadeIndex | undefined {
  const targets = readValues(target, [
    ...new Map([...target.rows, ...found].map((row) => [`${row.partition} ${row.row}`, row])).values(),
  ]);
  const ids = idsOf(new Map([[target, targets]]));
  const link = findLink({ index, target, rows: readValues(index, rows), targets, ids });
  return link && { ...link, missing: undefined };
}

export function readValues(kind: ProposedKind, rows: readonly Row[] = kind.rows): Values[] {
  const [partition, ofRow] = [compileTemplate(kind.partition), compileTemplate(kind.row)];
  return rows.map((row) => {
    const ofKey = { ...parseKey(partition, row.partition), ...parseKey(ofRow, row.row) };
    const byName = new Map(Object.entries(ofKey).map(([field, value]) => [field, String(value)]));
    for (const { field, property } of kind.fields) {
      const value = property === undefined ? undefined : row.properties[property];
      if (value !== undefined && !byName.has(field)) byName.set(field, textOf(value));
    }
    return { row, byName };
  });
}

function findLink({ index, target, rows, targets, ids }: Pair): Link | undefined {
  // Rows of the same partition are children, whatever else they have.
  if (index.table === target.table && index.partition === target.partition) return undefined;
  const isKey = ({ field, property }: ProposedField) => index.keyFields.includes(field) && property === undefined;
  for (const field of index.fields) {
    const link = linkThrough({
      index,
      target,
      rows,
      targets,
      byId: ids.whole(target),
      also: undefined,
      from: field.field,
      isKey: isKey(field),
    });
    if (link) return link;
  }
  // The index rows have one field of the key of the target in their own key, and the others are the id.
  for (const beside of target.keyFields.length === 2 ? target.keyFields : []) {
    const [id = ''] = target.keyFields.filter((field) => field !== beside);
    const byId = ids.beside(target, beside, id);
    for (const ofIndex of index.keyFields)
      for (const field of index.fields) {
        if (field.field === ofIndex) continue;
        const also = { ofIndex, ofTarget: beside };
        const link = linkThrough({ index, target, rows, targets, byId, also, from: field.field, isKey: isKey(field) });
        if (link) return link;
      }
  }
  return undefined;
}

type Link = HandMadeIndex & { readonly dangling: number; readonly missing: number };

interface Pair {
  readonly index: ProposedKind;
  readonly target: ProposedKind;
  readonly rows: readonly Values[];
  readonly targets: readonly Values[];
  readonly ids: ReturnType<typeof idsOf>;
}

/** Returns the rows of a target by their ids, computed once for each. */
function idsOf(valuesOf: ReadonlyMap<ProposedKind, readonly Values[]>) {
  const known = new Map<ProposedKind, Map<string, ReadonlyMap<string, Values>>>();
  const once = (target: ProposedKind, name: string, read: (values: Values) => readonly string[]) => {
    const ofTarget = known.get(target) ?? new Map<string, ReadonlyMap<string, Values>>();
    known.set(target, ofTarget);
    const byId = ofTarget.get(name) ?? indexById(valuesOf.get(target) ?? [], read);
    ofTarget.set(name, byId);
    return byId;
  };
  return {
    whole: (target: ProposedKind) =>
      once(target, '', ({ byName, row }) => [...joined(target, byName), row.partition, row.row]),
    beside: (target: ProposedKind, beside: string, id: string) =>
      once(target, beside, ({ byName }) => [idOf(byName.get(beside) ?? '', byName.get(id) ?? '')]),
  };
}

/** What programs write between the parts of an id. */
const BETWEEN = ['/', '|', ':', '_', '-'];

function joined({ keyFields }: ProposedKind, byName: Values['byName']): string[] {
  const parts = keyFields.map((field) => byName.get(field) ?? '');
  return parts.length === 1 ? parts : BETWEEN.map((between) => parts.join(between));
}

/** The rows by their ids, without those that several rows have. */
function indexById(targets: readonly Values[], idsOf: (values: Values) => readonly string[]): Map<string, Values> {
  const byId = new Map<string, Values | undefined>();
  for (const values of targets)
    for (const id of new Set(idsOf(values))) byId.set(id, byId.has(id) ? undefined : values);
  for (const [id, values] of byId) if (!values) byId.delete(id);
  return byId as Map<string, Values>;
}

const idOf = (beside: string, id: string) => JSON.stringify([beside, id]);

interface LinkOptions extends Omit<Pair, 'ids'> {
  readonly byId: ReadonlyMap<string, Values>;
  /** Another field of the key of the target, and the field of the key of the index rows that has its value. */
  readonly also: { readonly ofIndex: string; readonly ofTarget: string } | undefined;
  readonly from: string;
  readonly isKey: boolean;
}

function linkThrough(options: LinkOptions): Link | undefined {
  const { index, target, rows, targets, byId, also, from, isKey } = options;
  const readIds = ({ byName }: Values) => {
    const ids = toIds(byName.get(from) ?? '');
    return also ? ids.map((id) => idOf(byName.get(also.ofIndex) ?? '', id)) : ids;
  };
  // Most fields have no id: some rows say so.
  const step = Math.ceil(rows.length / SOME);
  if (!rows.some((row, at) => at % step === 0 && readIds(row).some((id) => byId.has(id)))) return undefined;
  const lists = rows.map(readIds);
  const ids = lists.flat();
  const hits = ids.filter((id) => byId.has(id)).length;
  if (hits < MIN_ROWS || hits < ids.length * LEAST_FOUND) return undefined;
  const isList = lists.some((list) => list.length > 1);
  const pairs = rows.flatMap((one, at) =>
    (lists[at] ?? []).flatMap((id) => (byId.has(id) ? [{ one, other: byId.get(id) as Values }] : [])),
  );
  const others = index.keyFields.filter((field) => field !== from && field !== also?.ofIndex);
  const explained = others.map((field) => ({ field, ...explain(pairs, field, target) }));
  const by = explained.flatMap(({ field, ...of }) =>
    of.by === undefined ? [] : [{ ofIndex: field, field: of.by, ...(of.change ? { change: of.change } : {}) }],
  );
  const own = index.fields.filter(
    ({ field }) => !index.keyFields.includes(field) && field !== from && explain(pairs, field, target).by === undefined,
  );
  const hasOwnKey = explained.some((one) => one.by === undefined);
  // The rows say something that is not in the target: they are of a kind of their own, which refers to it.
  if (others.length === 0 || (hasOwnKey && (own.length > 0 || isKey)) || own.length > 1) return undefined;
  const known = by.filter(({ field }) => !target.keyFields.includes(field));
  if (by.length > 0 && known.length === 0) return undefined;
  const linked = new Set(pairs.map(({ other }) => other));
  const isEqual = ({ one, other }: (typeof pairs)[number]) =>
    known.every(({ ofIndex, field, change }) => changed(other.byName.get(field), change) === one.byName.get(ofIndex));
  return {
    index,
    target,
    from,
    isList,
    compared: rows.length,
    by: known.map(({ field, change }) => ({ field, ...(change ? { change } : {}) })),
    within: also?.ofTarget,
    hasId: isKey || by.length > known.length,
    dangling: ids.length - hits,
    missing: targets.filter((each) => !linked.has(each) && known.every(({ field }) => each.byName.has(field))).length,
    stale: pairs.filter((pair) => !isEqual(pair)).length,
  };
}

/** The field of the target that has the value of a field of the index rows. */
function explain(
  pairs: readonly { readonly one: Values; readonly other: Values }[],
  field: string,
  target: ProposedKind,
) {
  const compared = pairs.filter(({ one }) => one.byName.has(field));
  const agrees = (name: string, change?: 'lower' | 'upper') =>
    compared.filter(({ one, other }) => changed(other.byName.get(name), change) === one.byName.get(field)).length;
  const names = target.fields.map((each) => each.field);
  for (const change of [undefined, 'lower', 'upper'] as const)
    for (const name of names)
      if (compared.length > 0 && agrees(name, change) >= compared.length * LEAST_EQUAL) return { by: name, change };
  return { by: undefined, change: undefined };
}

function changed(text: string | undefined, change: 'lower' | 'upper' | undefined): string | undefined {
  return change === 'lower' ? text?.toLowerCase() : change === 'upper' ? text?.toUpperCase() : text;
}

/** The ids in a text: a JSON array, texts with commas or semicolons between them, or one id. */
export function toIds(text: string): string[] {
  if (text.startsWith('['))
    try {
      const list: unknown = JSON.parse(text);
      if (Array.isArray(list)) return list.map(String);
    } catch {
      // A text that begins with a bracket.
    }
  return text
    .split(/[,;]/)
    .map((id) => id.trim())
    .filter((id) => id !== '');
}
