import { callApp } from '../../base/app-mistake.ts';
import { ROW_TYPES } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { onceFor } from '../../base/once.ts';
import { hasValue, pick, type Values } from '../../base/values.ts';
import type { Address, Row } from '../../storage/rows.ts';
import { fieldsToProperties } from '../codec/entity-codec.ts';
import { withoutApart } from '../codec/further-rows.ts';
import type { DeclaredEntity } from '../declaration/declaration.ts';
import type { Entity } from '../declaration/entity.ts';
import type { CopyIndex, Index, InterPartitionIndex } from '../declaration/indexes.ts';
import type { IndexEntry, IndexShape, Projection } from '../declaration/projection.ts';
import { periodOf, tableOfPeriod } from '../keys/calendar.ts';
import { buildKey, parseKey } from '../keys/key-template.ts';

/** The address of an entity. Throws `invalid-input`, which names the field that cannot be part of a key. */
export function addressOf(entity: Entity, values: Values): Address {
  return {
    table: entity.period ? tableOf(entity, values) : entity.table,
    partition: buildKey(entity.partition, values),
    row: buildKey(entity.row, values),
  };
}

/** The table of an entity: with `period`, that of its period. Throws `invalid-input`. */
export function tableOf({ name, table, period }: Entity, values: Values): string {
  if (!period) return table;
  const { field, per } = period;
  const ofEntity = periodOf(per, String(values[field]));
  if (ofEntity !== undefined) return tableOfPeriod(table, ofEntity);
  throw new RowkeyError('invalid-input', `No table of ${name} has a name for this "${field}".`, {
    field,
    accepted: 'an ISO instant in UTC from year 0000 to year 9999',
  });
}

/** The address of an entity, or undefined if a key cannot be built, for example from a list that was edited by hand. */
export function addressIfAny(entity: Entity, values: Values): Address | undefined {
  try {
    return addressOf(entity, values);
  } catch (error) {
    if (error instanceof RowkeyError) return undefined;
    throw error;
  }
}

/** True if the entity has all fields of the index's keys and the condition of the index holds. */
export function isIndexed(index: Index, values: Values | undefined): values is Values {
  if (!values) return false;
  for (const field of formOf(index).required) if (!hasValue(values[field])) return false;
  const { when } = index;
  if (!when) return true;
  const what = 'The condition "when" of an index or a total';
  const holds: unknown = callApp(what, () => when(values));
  // A promise would be true.
  if (typeof holds !== 'boolean') throw new RowkeyError('wrong-operation', `${what} returned neither true nor false.`);
  return holds;
}

/** The fields that an entity must have to be in an index, and the list field of its keys, if there is one. */
const formOf = onceFor((index: Index) => {
  const { remote, row } = index;
  const templates = [
    ...(remote ? [remote.partition] : []),
    row,
    ...(index.kind === 'index-entity' ? [index.holds] : []),
  ];
  const list = templates.flatMap(({ parts }) => parts.filter(({ each }) => each))[0]?.field;
  return { required: new Set(templates.flatMap(({ fields }) => fields)), list };
});

/** The values from which an index builds its keys: one for each element of a list field, otherwise one or none. */
export function selectIndexed(index: Index, values: Values): Values[] {
  const field = formOf(index).list;
  const list = field === undefined ? undefined : values[field];
  if (field === undefined || !Array.isArray(list)) return isIndexed(index, values) ? [values] : [];
  const all = [...new Set(list)].map((element: unknown) => ({ ...values, [field]: element }));
  return all.filter((one) => isIndexed(index, one));
}

const projectionsByFeature = onceFor(
  (entity: Entity) => new Map(entity.features.map((feature) => [feature, feature.projections?.of(entity) ?? []])),
);

/** The projections in the partition that each feature has. */
export const siblingsByFeature = onceFor((entity: Entity) =>
  [...projectionsByFeature(entity)].map(([feature, projections]) => [feature, projections.filter(isSibling)] as const),
);

/** All rows that follow from an entity, in its partition and elsewhere. */
export const projectionsOf = onceFor((entity: Entity): readonly Projection[] =>
  [...projectionsByFeature(entity).values()].flat(),
);

/** The projections in other partitions or tables. */
export const remoteIndexesOf = onceFor((entity: Entity): readonly Projection[] =>
  projectionsOf(entity).filter((projection) => !isSibling(projection)),
);

/** True if the rows are in the partition of the entity, and its transaction writes them. */
export function isSibling({ settle }: Projection): boolean {
  return settle === 'transaction';
}

const remoteIndexesByName = onceFor(
  (entity: Entity) => new Map(remoteIndexesOf(entity).map((remote) => [remote.name, remote])),
);

/** The projection that an entry outside the partition belongs to. */
export function remoteIndexOf(entity: Entity, { index }: Pick<IndexEntry, 'index'>): Projection | undefined {
  return remoteIndexesByName(entity).get(index);
}

/** True if several entities compete for the row of an entry. */
export function isContested(entity: Entity, indexEntry: IndexEntry): boolean {
  return remoteIndexOf(entity, indexEntry)?.settle === 'claim';
}

/** The rows of a projection with these keys, one for each of the values. */
export function rowsAt(index: string, at: Projection['at'], selections: readonly Values[]): IndexEntry[] {
  const { table, partition, row, member } = at;
  return selections.map((one) => {
    const indexEntry = { index, table, partition: buildKey(partition, one), row: buildKey(row, one) };
    return member ? { ...indexEntry, member: buildKey(member, one) } : indexEntry;
  });
}

/** The index entries outside the partition that an entity with these values has. */
export function indexEntriesOf(entity: Entity, values: Values | undefined): IndexEntry[] {
  return values ? remoteIndexesOf(entity).flatMap((remote) => [...remote.rows(values)]) : [];
}

/**
 * The projection of a declared index, without what its kind adds. An index without a table is in the partition of the entity.
 */
export function projectionOf(entity: Entity, name: string, index: Index): Projection {
  const { remote, row } = index;
  const { table, partition } = remote ?? entity;
  const member = index.kind === 'index-entity' ? { member: index.holds } : {};
  const at = { table, partition, row, ...member };
  const settle = index.kind === 'intra-partition' || !remote ? 'transaction' : isUnique(index) ? 'claim' : index.settle;
  return {
    name,
    at,
    settle,
    shape: shapeOf(index),
    rows: (values) => rowsAt(name, at, selectIndexed(index, values)),
    ...('copies' in index
      ? {
          properties: (values) => copyProperties(entity, values, index.copies),
          isPartial: arePartial(entity, index.copies),
        }
      : {}),
  };
}

/** All tables of an entity, the first part of a name if each period has a table. */
export function tablesOf(entity: Entity): string[] {
  const remote = remoteIndexesOf(entity).map(({ at }) => at.table);
  return [...new Set([entity.table, ...remote, ...(entity.archive ? [entity.archive.table] : [])])];
}

export function isSameEntry(one: IndexEntry, other: IndexEntry): boolean {
  return (
    one.table === other.table &&
    one.partition === other.partition &&
    one.row === other.row &&
    one.member === other.member
  );
}

const indexesByKind = onceFor(({ indexes }: Pick<DeclaredEntity, 'indexes'>) =>
  Map.groupBy(Object.entries(indexes), ([, { kind }]) => kind),
);

/** The indexes of a kind, by name. */
export function indexesOfKind<Kind extends Index['kind']>(entity: Pick<DeclaredEntity, 'indexes'>, kind: Kind) {
  return (indexesByKind(entity).get(kind) ?? []) as [string, Extract<Index, { readonly kind: Kind }>][];
}

/** What a deployment remembers of an index. */
function shapeOf(index: Index): IndexShape {
  const { kind, remote, row } = index;
  const keys = { kind, table: remote?.table, partition: remote?.partition.template, row: row.template };
  if (index.kind === 'index-entity') return { ...keys, holds: index.holds.template };
  return { ...keys, copies: index.copies, ...(index.kind === 'inter-partition' ? { unique: index.unique } : {}) };
}

/** The shapes of what is built from the stored entities, by name: indexes, totals, and copies of other entities' fields. */
export function shapesOf(entity: Entity, features = entity.features): Readonly<Record<string, IndexShape>> {
  const shapes = features.flatMap(({ projections, fanOut }) => [
    ...(projections?.of(entity) ?? []).flatMap(({ name, shape }) => (shape ? [[name, shape] as const] : [])),
    ...Object.entries(fanOut?.shapes(entity) ?? {}),
  ]);
  return Object.fromEntries(shapes);
}

export function indexKeyFields({ remote, row }: Index): string[] {
  return [...new Set([...(remote?.partition.fields ?? []), ...row.fields])];
}

/** True if entities compete for the rows of the index, which are claimed before an entity is written. */
export function isUnique(index: Index | undefined): index is InterPartitionIndex {
  return index?.kind === 'inter-partition' && index.unique;
}

/** The properties of a copy: the fields that the index copies, the key fields, and the address of the entity. */
export function copyProperties(entity: Entity, values: Values, copies: CopyIndex['copies']) {
  const kept =
    copies === 'everything'
      ? withoutApart(entity, values)
      : pick(values, [...entity.keyFields, ...(copies === 'keys' ? [] : copies)]);
  const { partition, row } = addressOf(entity, values);
  return {
    ...fieldsToProperties(entity, kept),
    EntityType: entity.name,
    EntityVersion: entity.version,
    SourcePartition: partition,
    SourceRow: row,
  };
}

/** True if the copies lack fields of the entity. */
export function arePartial(entity: Entity, copies: CopyIndex['copies']): boolean {
  return copies !== 'everything' || entity.apartFields.length > 0;
}

/** True if a row is a copy that an index keeps. A copy in the partition has the type of its entity. */
export function isCopy({ properties }: Pick<Row, 'properties'>): boolean {
  // A projection may return null for a property that the row lacks.
  return typeof properties.SourceRow === 'string';
}

export function isRowAt({ table, row: template }: Pick<Projection['at'], 'table' | 'row'>, row: Row): boolean {
  return table === row.table && parseKey(template, row.row) !== undefined;
}

/** The `EntityType` of a row that has a claim and no copy yet. */
export const CLAIM = ROW_TYPES.claim;

/** The property that tells the row of a committed entity from a claim. */
export const CONFIRMED = 'Confirmed';

/** True if the entity of a row of a unique index is committed. */
export function isConfirmed(row: Row): boolean {
  return row.properties[CONFIRMED] === true;
}
