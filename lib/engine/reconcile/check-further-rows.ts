import { toValues } from '../../define/codec/entity-codec.ts';
import {
  formatListedRows,
  furtherRowKey,
  furtherRowRange,
  furtherRowType,
  groupOfFurtherRow,
  listedRows,
  parseFurtherRowKey,
  typesToRead,
} from '../../define/codec/further-rows.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Entity, VerifySubject } from '../../define/declaration/entity.ts';
import type { Suspicion } from '../../define/declaration/finding.ts';
import { type Row, readRange, readRow, tryAction } from '../../storage/rows.ts';
import { announceOrphans } from '../read/text-blobs.ts';

/** The consistency check of further rows. */

/** The properties that tell which rows belong to one state of an entity. */
const STATE = ['EntityType', 'FurtherRows', 'WriteId'];

/**
 * Finds further rows that an entity lists and that are missing or belong to another state. The repair ends the listing of a missing
 * row, whose values are lost, and lists the other one as it is.
 */
async function checkFurtherRows(
  { storage }: Engine,
  entity: Entity,
  { address }: Pick<VerifySubject, 'address'>,
): Promise<Suspicion[]> {
  const { table, partition, row } = address;
  const own = await readRow(storage, { ...address, select: STATE });
  if (own?.properties.EntityType !== entity.name) return [];
  const listed = Object.entries(listedRows(own.properties));
  if (listed.length === 0) return [];
  const { first: from, before } = furtherRowRange(row);
  const { rows } = await readRange(storage, { table, partition, from, before, select: STATE });
  const found = new Map(rows.filter((each) => isFurtherRow(entity, each)).map((each) => [each.row, each.properties]));
  const next = listed.flatMap(([name]) => {
    const properties = found.get(furtherRowKey(row, name));
    return properties ? [[name, String(properties.WriteId)] as const] : [];
  });
  const FurtherRows = formatListedRows(Object.fromEntries(next));
  const repair = () => tryAction(storage, own, { kind: 'merge', row, properties: { FurtherRows }, etag: own.etag });
  return listed.flatMap(([of, id]) => {
    const key = furtherRowKey(row, of);
    const writeId = found.get(key)?.WriteId;
    const kind = writeId === undefined ? 'missing' : 'stale';
    return writeId === id
      ? []
      : [{ kind, of, table, partition, row: key, sum: address, repair, losesValues: true } as const];
  });
}

/** Checks a further row: its entity must list it. Undefined for any other row. */
async function checkFurtherRow(
  { storage }: Engine,
  entity: Entity,
  found: Row,
): Promise<readonly Suspicion[] | undefined> {
  const { table, partition, row, etag, properties } = found;
  if (!furtherTypes(entity).includes(String(properties.EntityType))) return undefined;
  const { row: ownRow, name } = parseFurtherRowKey(row) ?? {};
  // No entity lists a row under the key of another group, or under a key that no further row has.
  if (ownRow !== undefined && name !== undefined && isFurtherRow(entity, found)) {
    const own = await readRow(storage, { table, partition, row: ownRow, select: STATE });
    const isListed =
      own?.properties.EntityType === entity.name && listedRows(own.properties)[name] === properties.WriteId;
    if (isListed) return [];
  }
  const repair = async () => {
    const values = toValues(entity, properties);
    const blobs = entity.features.flatMap(({ stored }) => stored?.blobs?.of(entity, values) ?? []);
    // The row may be a copy of one of another entity, which still has its blobs.
    await announceOrphans(storage, undefined, blobs);
    return tryAction(storage, found, { kind: 'delete', row, etag });
  };
  const of = name ?? String(properties.EntityType);
  return [{ kind: 'orphaned', of, table, partition, row, repair, losesValues: true }];
}

/** The check of a feature that stores entities in further rows. */
export const furtherRowCheck = { entity: checkFurtherRows, row: checkFurtherRow };

export const furtherTypes = (entity: Entity): readonly string[] =>
  typesToRead(entity, Object.keys(entity.columns)).slice(1);

/** True if the key and the type of a row are those of a further row of the entity. */
function isFurtherRow({ name }: Entity, { row, properties }: Row): boolean {
  const further = parseFurtherRowKey(row);
  return further !== undefined && properties.EntityType === furtherRowType(name, groupOfFurtherRow(further.name));
}

/** Yields an error message for each reason why an entity cannot have further rows. */
export function* furtherRowErrors({ table, period }: Entity, model: readonly Entity[]): Generator<string> {
  if (period) yield 'it has a period, whose entities are one row each. Remove period, or split and wide.';
  for (const other of model.filter((each) => each.table === table)) {
    const inTable = Object.values(other.indexes).filter(({ remote }) => !remote || remote.table === table);
    for (const { template } of [other.row, ...inTable.map(({ row }) => row)])
      if (template.includes('!'))
        yield `the row key ${template} of "${other.name}" in its table has a "!", which begins the keys of further rows. Use another character.`;
  }
}
