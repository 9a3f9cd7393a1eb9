import { inspect } from 'node:util';
import { isRestError } from '@azure/core-rest-pipeline';
import { pick, type Values } from '../../lib/base/values.ts';
import { toSnapshot, toValues } from '../../lib/define/codec/entity-codec.ts';
import { groupsToRead, joinRows, parseFurtherRowKey, withoutApart } from '../../lib/define/codec/further-rows.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { Index } from '../../lib/define/declaration/indexes.ts';
import type { Total } from '../../lib/define/declaration/totals.ts';
import { buildKey } from '../../lib/define/keys/key-template.ts';
import {
  indexEntriesOf,
  isIndexed,
  isRowAt,
  projectionOf,
  remoteIndexesOf,
} from '../../lib/define/places/index-entries.ts';
import { POISON_TABLE } from '../../lib/engine/consume/poison.ts';
import { membersOf, readList } from '../../lib/engine/read/member-list.ts';
import type { Row } from '../../lib/storage/rows.ts';
import { ownerOf } from '../../lib/storage/slot-map.ts';
import { accountsOf, type Storage } from '../../lib/storage/storage.ts';

/** Returns all rows of a table as plain objects in key order. Each is in the account of its partition. */
export async function rowsOf(storage: Storage, table: string): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  for (const account of accountsOf(storage))
    for (const row of await rowsIn(account, table)) {
      const owner = await ownerOf(storage, String(row.partitionKey), table);
      if (owner.name !== account.name)
        throw new Error(`${account.name} has a row of ${owner.name}: ${JSON.stringify([table, row.partitionKey])}`);
      all.push(row);
    }
  const textOfKey = ({ partitionKey, rowKey }: Record<string, unknown>) => JSON.stringify([partitionKey, rowKey]);
  return storage.accounts ? all.sort((one, other) => (textOfKey(one) < textOfKey(other) ? -1 : 1)) : all;
}

/** One of several accounts may lack the table of a period. */
async function rowsIn(account: Storage, table: string): Promise<Record<string, unknown>[]> {
  try {
    return await Array.fromAsync(account.table(table).listEntities<Record<string, unknown>>());
  } catch (error) {
    if (!('name' in account) || !isRestError(error) || error.statusCode !== 404) throw error;
    return [];
  }
}

/**
 * Compares every index of an entity with its entities, as they are stored: no entry is missing, different or left over, and no claim,
 * tombstone or poison message exists. The expectation is computed from the declaration alone.
 */
export async function compareStored(
  storage: Storage,
  entity: Entity,
): Promise<{ readonly values: readonly Values[]; readonly differences: readonly string[] }> {
  const poison = await rowsOf(storage, POISON_TABLE);
  const rows = await rowsOf(storage, entity.table);
  const archived = entity.archive ? await rowsOf(storage, entity.archive.table) : [];
  const values: Values[] = [];
  const differences = [
    ...poison.map((row) => `poison message of ${row.Queue}: ${row.Reason}`),
    ...[...rows, ...archived].filter(({ EntityType }) => EntityType === 'tombstone').map(about('tombstone')),
    ...archived.filter(({ MovingFrom = '' }) => MovingFrom !== '').map(about('unfinished transfer')),
  ];
  for (const row of rows.filter(({ EntityType, SourceRow }) => EntityType === entity.name && SourceRow === undefined)) {
    const beside = rows.filter(({ partitionKey }) => partitionKey === row.partitionKey).map(toRow);
    const { row: joined } = joinRows(entity, toRow(row), furtherRowsOf(row, beside), groupsToRead(entity));
    const snapshot = toSnapshot(entity, joined);
    if (snapshot.state !== 'live') differences.push(about(`entity that is ${snapshot.state}`)(row));
    else if (snapshot.system.MovingFrom !== undefined) differences.push(about('unfinished transfer')(row));
    else values.push(snapshot.values);
  }
  const wanted = wantedEntries(entity, values);
  const found = new Map<string, Set<string>>();
  const tables = new Set([entity.table, ...remoteIndexesOf(entity).map(({ at }) => at.table)]);
  const lists = Object.values(entity.indexes).filter(({ kind }) => kind === 'index-entity');
  for (const table of tables)
    for (const row of await rowsOf(storage, table)) {
      const isList = row.EntityType === 'list';
      if (!isList && row.SourceRow === undefined) continue;
      if (row.Claim !== undefined) differences.push(about(`claim in ${table}`)(row));
      const address = { table, partition: String(row.partitionKey), row: String(row.rowKey) };
      // Another entity of the table may have indexes, too.
      if (isList && !lists.some((index) => isRowAt(projectionOf(entity, '', index).at, { ...toRow(row), table })))
        continue;
      const members = isList ? membersOf(await readList(storage, address)) : [];
      const copied = () => textOf(toValues(entity, row));
      const isTotal = Object.values(entity.totals).some((declared) => declared.table === table);
      if (!isList && !isTotal && ![entity.name, 'claim'].includes(String(row.EntityType))) continue;
      const contents = isTotal
        ? [contributionOf(row)]
        : isList
          ? members
          : [JSON.stringify([row.SourcePartition, row.SourceRow]) + copied()];
      if (contents.length > 0) found.set(JSON.stringify([table, row.partitionKey, row.rowKey]), new Set(contents));
    }
  differences.push(...entryDifferences(wanted, found));
  for (const declared of Object.values(entity.totals))
    differences.push(...totalDifferences(await rowsOf(storage, declared.table), values, declared));
  for (const { target, field } of entity.countedBy)
    differences.push(...countDifferences(rows, values, { target: target(), field }));
  return { values, differences: differences.map((difference) => `${entity.name}: ${difference}`) };
}

function toRow(properties: Record<string, unknown>): Row {
  return {
    table: '',
    partition: String(properties.partitionKey),
    row: String(properties.rowKey),
    etag: '',
    properties,
  };
}

function furtherRowsOf({ rowKey }: Record<string, unknown>, rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ row }) => parseFurtherRowKey(row)?.row === rowKey);
}

/** Returns the expected index entries: the content of each row by its address. */
function wantedEntries(entity: Entity, values: readonly Values[]): Map<string, Set<string>> {
  const wanted = new Map<string, Set<string>>();
  const want = (table: string, partition: unknown, row: unknown, content: string) => {
    const key = JSON.stringify([table, partition, row]);
    wanted.set(key, (wanted.get(key) ?? new Set()).add(content));
  };
  for (const one of values) {
    const source = JSON.stringify([buildKey(entity.partition, one), buildKey(entity.row, one)]);
    const contributionBy = (declared: Total | undefined) => {
      const [SourcePartition, SourceRow] = JSON.parse(source);
      const fields = [...new Set([declared?.sum ?? [], declared?.min ?? [], declared?.max ?? []].flat())];
      return declared && contributionOf({ SourcePartition, SourceRow, Values: JSON.stringify(pick(one, fields)) });
    };
    const copyBy = (index: Index | undefined) => {
      if (index && (index.kind === 'index-entity' || index.copies === 'everything'))
        return source + textOf(withoutApart(entity, one));
      // An index that a pattern adds, such as that of expiry, has the keys alone.
      const copies = index && 'copies' in index ? index.copies : 'keys';
      return source + textOf(pick(one, [...entity.keyFields, ...(copies === 'keys' ? [] : copies)]));
    };
    for (const { index, table, partition, row, member } of indexEntriesOf(entity, one))
      want(table, partition, row, member ?? contributionBy(entity.totals[index]) ?? copyBy(entity.indexes[index]));
    for (const index of Object.values(entity.indexes)) {
      const partition = buildKey(entity.partition, one);
      if (index.kind === 'intra-partition' && isIndexed(index, one))
        want(entity.table, partition, buildKey(index.row, one), copyBy(index));
      if (index.kind === 'index-entity' && !index.remote && isIndexed(index, one))
        want(entity.table, partition, buildKey(index.row, one), buildKey(index.holds, one));
    }
  }
  return wanted;
}

function contributionOf({ SourcePartition, SourceRow, Values }: Record<string, unknown>): string {
  return JSON.stringify([SourcePartition, SourceRow]) + textOf(JSON.parse(String(Values)));
}

/** Compares the total of each group with its entities. The tests use amounts of at most two decimals. */
function totalDifferences(
  rows: readonly Record<string, unknown>[],
  values: readonly Values[],
  { partition, row, sum, min, max, when = () => true }: Total,
): string[] {
  const isThere = (value: unknown) => value !== undefined && value !== null;
  const counted = values.filter((one) => [...partition.fields, ...row.fields].every((field) => isThere(one[field])));
  const groups = Map.groupBy(counted.filter(when), (one) => `${buildKey(partition, one)} ${buildKey(row, one)}`);
  const hundredths = (value: unknown) => Math.round(Number(value) * 100);
  const expected = new Map(
    [...groups].map(([key, all]) => {
      const inGroup = (field: string) => all.map((one) => one[field] as string | number).filter(isThere);
      const extremes = (fields: readonly string[], sign: number) =>
        fields.flatMap((field) => {
          const [first] = inGroup(field).sort((one, other) => (one < other ? -sign : sign));
          return first === undefined ? [] : [[field, first]];
        });
      const sums = sum.map((field) => [
        field,
        inGroup(field).reduce((total: number, one) => total + hundredths(one), 0),
      ]);
      return [key, textOf({ count: all.length, sum: sums, min: extremes(min, 1), max: extremes(max, -1) })];
    }),
  );
  const actual = new Map(
    rows
      .filter(({ EntityType }) => EntityType === 'total')
      .map(({ partitionKey, rowKey, Amounts }) => {
        const amounts = JSON.parse(String(Amounts));
        const sums = sum.map((field) => [field, hundredths(amounts.sum[field])]);
        const inOrder = (fields: readonly string[], of: Values) =>
          fields.flatMap((field) => (isThere(of[field]) ? [[field, of[field]]] : []));
        const total = {
          count: amounts.count,
          sum: sums,
          min: inOrder(min, amounts.min),
          max: inOrder(max, amounts.max),
        };
        return [`${partitionKey} ${String(rowKey).slice('t_'.length)}`, textOf(total)];
      }),
  );
  return [...new Set([...expected.keys(), ...actual.keys()])]
    .filter((key) => expected.get(key) !== actual.get(key))
    .map((key) => `the total of ${key} is ${actual.get(key)}, but should be ${expected.get(key)}`);
}

function about(what: string) {
  return (row: Record<string, unknown>) => `${what}: ${JSON.stringify([row.partitionKey, row.rowKey])}`;
}

type Entries = ReadonlyMap<string, ReadonlySet<string>>;

function entryDifferences(wanted: Entries, found: Entries): string[] {
  const none = new Set<string>();
  return [...new Set([...wanted.keys(), ...found.keys()])].flatMap((key) => {
    const [expected, actual] = [wanted.get(key) ?? none, found.get(key) ?? none];
    return [
      ...[...expected].filter((content) => !actual.has(content)).map((content) => `missing in ${key}: ${content}`),
      ...[...actual].filter((content) => !expected.has(content)).map((content) => `left over in ${key}: ${content}`),
    ];
  });
}

/** Serializes a copy, so that copies compare as text. */
function textOf(values: Values): string {
  const there = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return inspect(Object.fromEntries(there.sort(([one], [other]) => (one < other ? -1 : 1))), {
    depth: null,
    maxArrayLength: null,
    maxStringLength: null,
    breakLength: Number.POSITIVE_INFINITY,
  });
}

/** Compares the count of each partition with the number of its entities. */
function countDifferences(
  rows: readonly Record<string, unknown>[],
  values: readonly Values[],
  { target, field }: { target: Entity; field: string },
): string[] {
  const expected = new Map<unknown, number>();
  for (const one of values) {
    const partition = buildKey(target.partition, one);
    expected.set(partition, (expected.get(partition) ?? 0) + 1);
  }
  const counted = rows
    .filter((row) => Number(row[field] ?? 0) !== 0)
    .map((row) => [row.partitionKey, row[field]] as const);
  const actual = new Map(counted);
  return [...new Set([...expected.keys(), ...actual.keys()])]
    .filter((partition) => expected.get(partition) !== actual.get(partition))
    .map(
      (key) => `${field} of ${JSON.stringify(key)} is ${actual.get(key) ?? 0}, but there are ${expected.get(key) ?? 0}`,
    );
}
