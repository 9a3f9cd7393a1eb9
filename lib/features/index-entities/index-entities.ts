import { RowkeyError } from '../../base/errors.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { indexEntity } from '../../define/declaration/indexes.ts';
import type { IndexEntry, Projection } from '../../define/declaration/projection.ts';
import { indexesOfKind, projectionOf } from '../../define/places/index-entries.ts';
import { eachErrors, settleErrors } from '../../define/validate/feature-errors.ts';
import { LIST_FORM, membersOf, readList } from '../../engine/read/member-list.ts';
import { createSharedWrites, type SharedWriter } from '../../engine/write/shared-writes.ts';
import { type Action, readRow, tryAction } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * Index entities pattern: one row lists the entities that share a value. A list in the entities' own partition changes in
 * their entity group transaction, under its ETag; a list in another partition is kept by the eventual transaction.
 */
export const indexEntities: Feature = {
  name: 'index entities',
  isUsed: (entity) => indexesOf(entity).length > 0,
  *validate(entity) {
    for (const [name, index] of indexesOf(entity)) {
      yield* eachErrors(name, index);
      yield* settleErrors(name, index);
      // A list in the entities' partition is found by the partition key and the value that its members share.
      const known = index.remote ? [] : [...entity.partition.fields, ...index.row.readable];
      const missing = entity.keyFields.filter((field) => ![...index.holds.readable, ...known].includes(field));
      if (missing.length > 0)
        yield `the index "${name}" holds too little to find an entity. Add ${missing.join(', ')} to "holds".`;
      if (index.holds.readable.length === 0)
        yield `the index "${name}" holds no field. Add a field of the row key to "holds".`;
    }
  },
  projections: {
    of: (entity) => indexesOf(entity).map(([name, index]) => ({ ...projectionOf(entity, name, index), merge: LISTS })),
    former({ kind, table, partition = '', row, holds = '' }, name) {
      if (kind !== 'index-entity') return undefined;
      const when = () => false;
      const index =
        table === undefined ? indexEntity({ row, holds, when }) : indexEntity({ table, partition, row, holds, when });
      return { indexes: { [name]: index } };
    },
  },
};

const LISTS = {
  settle: settleMember,
  holds: (found, { member }) => member !== undefined && membersOf(found).includes(member),
  list: LIST_FORM,
} satisfies Projection['merge'];

const indexesOf = (entity: Entity) => indexesOfKind(entity, 'index-entity');

interface Request {
  readonly indexEntry: IndexEntry;
  readonly isWanted: boolean;
  readonly hold: Hold;
}

const submitRequest = createSharedWrites<Request>({ write });

/** Adds a member to a list or removes it. False if the list changed concurrently. */
export function settleMember(
  storage: Storage,
  indexEntry: IndexEntry,
  { isWanted, hold }: { readonly isWanted: boolean; readonly hold: Hold },
): Promise<boolean> {
  const { table, partition, row } = indexEntry;
  return submitRequest(storage, JSON.stringify([table, partition, row]), { indexEntry, isWanted, hold });
}

async function write(
  storage: Storage,
  [first]: readonly Request[],
  keepHolds: Parameters<SharedWriter<Request>['write']>[2],
): Promise<boolean> {
  if (!first) return true;
  const { indexEntry } = first;
  const row = await readList(storage, indexEntry);
  const { requests, signal } = await keepHolds();
  const members = (isWanted: boolean) =>
    requests.filter((one) => one.isWanted === isWanted).map((one) => one.indexEntry.member ?? '');
  const [add, remove] = [members(true), members(false)];
  const isOther = row && row.properties.EntityType !== 'list';
  if ((!row || isOther) && add.length === 0) return true;
  if (isOther)
    throw new RowkeyError(
      'needs-repair',
      `A row of the table ${indexEntry.table} is in the place of a list of the index ${indexEntry.index}.`,
    );
  // A list without members is deleted.
  const isEmptied = add.length === 0 && membersOf(row).every((member) => remove.includes(member));
  const changed =
    isEmptied && row
      ? ({ kind: 'delete', row: indexEntry.row, etag: row.etag } as const)
      : LIST_FORM.change(row, indexEntry.row, { add, remove });
  if (!changed) return true;
  const action = await LIST_FORM.write(storage, indexEntry, { action: changed, former: row });
  const isWritten = await tryAction(storage, { ...indexEntry, signal }, action);
  // Deletes the blob of the list that was replaced or not written.
  if (isWritten || (await isOurs(storage, indexEntry, action))) {
    if (row) await LIST_FORM.drop(storage, row);
    return true;
  }
  if ('properties' in action) await LIST_FORM.drop(storage, action);
  return false;
}

/** True if the row refers to this write's blob: the conflict came from the SDK's retry of a successful write. */
async function isOurs(storage: Storage, indexEntry: IndexEntry, action: Action): Promise<boolean> {
  const blob = 'properties' in action ? action.properties.MembersBlob : undefined;
  return blob !== undefined && (await readRow(storage, indexEntry))?.properties.MembersBlob === blob;
}
