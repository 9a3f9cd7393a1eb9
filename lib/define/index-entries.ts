import { RowkeyError } from '../errors.ts';
import type { Address, Row } from '../storage/rows.ts';
import { periodOf, tableOfPeriod } from './calendar.ts';
import { type Entity, pick, type Values } from './entity.ts';
import { fieldsToProperties } from './entity-codec.ts';
import type { Copies, Index, InterPartitionIndex } from './indexes.ts';
import { buildKey, type KeyTemplate } from './key-template.ts';

/** A place outside an entity's partition that has to agree with it: a copy of its own, a list, or a contested row. */
export interface IndexEntry {
  readonly index: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  /** Present for a list: what the list holds of this entity. */
  readonly member?: string | undefined;
}

/** The row of an entity. Throws `invalid-input` naming the field that a key cannot be made of. */
export function addressOf(entity: Entity, values: Values): Address {
  return {
    table: tableOf(entity, values),
    partition: buildKey(entity.partition, values),
    row: buildKey(entity.row, values),
  };
}

function tableOf({ name, table, period }: Entity, values: Values): string {
  if (!period) return table;
  const { field, per } = period;
  const ofEntity = periodOf(per, String(values[field]));
  if (ofEntity !== undefined) return tableOfPeriod(table, ofEntity);
  throw new RowkeyError('invalid-input', `No table of ${name} has a name for this "${field}".`, {
    field,
    accepted: 'an ISO instant in UTC from year 0000 to year 9999',
  });
}

/** The same, or undefined where a key cannot be made, as of what was put into a list by hand. */
export function addressIfAny(entity: Entity, values: Values): Address | undefined {
  try {
    return addressOf(entity, values);
  } catch (error) {
    if (error instanceof RowkeyError) return undefined;
    throw error;
  }
}

/** Whether the index takes an entity in: it has every field that the index's keys are made of, and the condition holds. */
export function isIndexed(index: Index, values: Values | undefined): values is Values {
  if (!values) return false;
  const isThere = (field: string) => values[field] !== undefined && values[field] !== null;
  return templatesOf(index).every(({ fields }) => fields.every(isThere)) && (index.when?.(values) ?? true);
}

function templatesOf(index: Index): KeyTemplate[] {
  const { remote, row } = index;
  return [...(remote ? [remote.partition] : []), row, ...(index.kind === 'index-entity' ? [index.holds] : [])];
}

/** Every place outside the partition that an entity in this state wants to be in. */
export function indexEntriesOf(entity: Entity, values: Values | undefined): IndexEntry[] {
  return Object.entries(entity.indexes).flatMap(([name, index]) =>
    eachElement(index, values).flatMap((one) => indexEntryOf(name, index, one) ?? []),
  );
}

/** The values once for each element of a list that the index's keys are made of, or as they are. */
function eachElement(index: Index, values: Values | undefined): (Values | undefined)[] {
  const field = templatesOf(index).flatMap(({ parts }) => parts.filter(({ each }) => each))[0]?.field;
  const list = field === undefined ? undefined : values?.[field];
  if (field === undefined || !Array.isArray(list)) return [values];
  return [...new Set(list)].map((element: unknown) => ({ ...values, [field]: element }));
}

function indexEntryOf(name: string, index: Index, values: Values | undefined): IndexEntry | undefined {
  if (!index.remote || !isIndexed(index, values)) return undefined;
  const { table, partition } = index.remote;
  const indexEntry = { index: name, table, partition: buildKey(partition, values), row: buildKey(index.row, values) };
  return index.kind === 'index-entity' ? { ...indexEntry, member: buildKey(index.holds, values) } : indexEntry;
}

/** The tables in which an entity's indexes are, besides its own. */
export function remoteTables({ indexes }: Entity): string[] {
  return Object.values(indexes).flatMap(({ remote }) => remote?.table ?? []);
}

export function isSameEntry(one: IndexEntry, other: IndexEntry): boolean {
  return (
    one.table === other.table &&
    one.partition === other.partition &&
    one.row === other.row &&
    one.member === other.member
  );
}

/** The places of both, each once. */
export function unionOfEntries(...lists: readonly (readonly IndexEntry[])[]): IndexEntry[] {
  const all = lists.flat();
  return all.filter((indexEntry, index) => all.findIndex((other) => isSameEntry(indexEntry, other)) === index);
}

/** Whether its rows are competed for, and claimed before an entity is written. */
export function isUnique(index: Index | undefined): index is InterPartitionIndex {
  return index?.kind === 'inter-partition' && index.unique;
}

/** What a copy holds: the fields that its index copies, always with those of the key, and where the entity is. */
export function copyProperties(entity: Entity, values: Values, copies: Copies<string>) {
  const kept =
    copies === 'everything' ? values : pick(values, [...entity.keyFields, ...(copies === 'keys' ? [] : copies)]);
  const { partition, row } = addressOf(entity, values);
  return {
    ...fieldsToProperties(entity, kept),
    EntityType: entity.name,
    EntityVersion: entity.version,
    SourcePartition: partition,
    SourceRow: row,
  };
}

/** Whether a row is what an index keeps of an entity: a copy in the partition is of the same type as its entity. */
export function isCopy({ properties }: Row): boolean {
  // A property that a projection names and a row lacks may come as null.
  return typeof properties.SourceRow === 'string';
}
