import { RowkeyError } from '../../errors.ts';
import type { Address, Row } from '../../storage/rows.ts';
import { fieldsToProperties } from '../codec/entity-codec.ts';
import type { DeclaredEntity, Entity } from '../entity.ts';
import type { Copies, Index, InterPartitionIndex } from '../indexes.ts';
import type { IndexEntry, RemoteIndex } from '../remote-index.ts';
import { pick, type Values } from '../values.ts';
import { periodOf, tableOfPeriod } from './calendar.ts';
import { buildKey, type KeyTemplate, parseKey } from './key-template.ts';

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

/** The values from which an index builds its keys: once for each element of a list, or once, or not at all. */
export function selectIndexed(index: Index, values: Values): Values[] {
  const field = templatesOf(index).flatMap(({ parts }) => parts.filter(({ each }) => each))[0]?.field;
  const list = field === undefined ? undefined : values[field];
  const all =
    field === undefined || !Array.isArray(list)
      ? [values]
      : [...new Set(list)].map((element: unknown) => ({ ...values, [field]: element }));
  return all.filter((one) => isIndexed(index, one));
}

/** All rows in other partitions or tables that the engine keeps for an entity. */
export function remoteIndexesOf(entity: Entity): RemoteIndex[] {
  return entity.patterns.flatMap((pattern) => pattern.remoteIndexes?.(entity) ?? []);
}

/** The remote index that an entry belongs to. */
export function remoteIndexOf(entity: Entity, { index }: Pick<IndexEntry, 'index'>): RemoteIndex | undefined {
  return remoteIndexesOf(entity).find(({ name }) => name === index);
}

/** True if several entities compete for the row of an entry. */
export function isContested(entity: Entity, indexEntry: IndexEntry): boolean {
  return remoteIndexOf(entity, indexEntry)?.isContested ?? false;
}

/** The entries outside the partition that an entity in this state has. */
export function indexEntriesOf(entity: Entity, values: Values | undefined): IndexEntry[] {
  if (!values) return [];
  return remoteIndexesOf(entity).flatMap((remote) =>
    remote.selections(values).map((one) => {
      const { name: index, table, partition, row, list } = remote;
      const indexEntry = { index, table, partition: buildKey(partition, one), row: buildKey(row, one) };
      return list ? { ...indexEntry, member: buildKey(list.member, one) } : indexEntry;
    }),
  );
}

/** The tables in which an entity's indexes are, besides its own. */
export function remoteTables(entity: Entity): string[] {
  return remoteIndexesOf(entity).map(({ table }) => table);
}

/** The same as far as a declaration says. */
export function indexTables({ indexes }: Pick<DeclaredEntity, 'indexes'>): string[] {
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

/** True if the table of an index has a row, and the row's key is of the index's template. */
export function isRowOf(entity: Entity, index: Pick<Index, 'remote' | 'row'>, { table, row }: Row): boolean {
  return table === (index.remote ?? entity).table && parseKey(index.row, row) !== undefined;
}
