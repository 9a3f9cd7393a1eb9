import pMap from 'p-map';
import type { Values } from '../base/values.ts';
import { toSnapshot } from '../define/codec/entity-codec.ts';
import { liveValues } from '../define/declaration/change.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import type { IndexEntry, ListForm, Projection } from '../define/declaration/projection.ts';
import { parseKey } from '../define/keys/key-template.ts';
import { addressIfAny, CLAIM, isRowAt, isSameEntry, isSibling, projectionsOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { readJoinedRow } from '../engine/read/entity-rows.ts';
import { repairEntries, repairIntent } from '../engine/reconcile/reconcile.ts';
import { hasLiveClaim } from '../engine/reconcile/unique-claim.ts';
import { listFormOf } from '../engine/write/siblings.ts';
import { type Address, type Row, readRow, tryAction } from '../storage/rows.ts';
import { surviveRow } from './survive-row.ts';
import { whyInvalid } from './why-invalid.ts';

/** Finds copies, list members and claims that belong to no entity. */

const MEMBERS_CONCURRENCY = 16;

/**
 * Checks an index row; `members` limits the check to these members of a list. The row is read before the entity and changed
 * under its ETag, so an entity that takes the row meanwhile keeps it.
 */
export async function checkLeftOver(
  engine: Engine,
  entity: Entity,
  scanned: Row,
  members?: readonly string[],
): Promise<readonly Suspicion[]> {
  const list = listFormOf(entity);
  const row = await (list ? list.readAny(engine.storage, scanned) : readRow(engine.storage, scanned));
  if (!row) return [];
  const candidates = projectionsOf(entity).filter((projection) => isRowAt(projection.at, row));
  const verdict = list?.has(row)
    ? await checkList(engine, entity, row, {
        form: list,
        lists: candidates.filter(({ merge }) => merge?.list),
        members: members ?? list.members(row),
      })
    : await checkCopy(
        engine,
        entity,
        row,
        candidates.filter(({ merge }) => !merge?.list),
      );
  const verdicts = [verdict];
  for (const { check } of entity.features) verdicts.push(await check?.row?.(engine, entity, row));
  const found = verdicts.filter((each) => each !== undefined);
  // Two features of a table may have keys of the same form. The row is left over only if no entity needs it for either one.
  return found.find((suspicions) => suspicions.length === 0) ?? found[0] ?? [];
}

/** Checks a copy, a contribution or a claim, which names its entity. Returns undefined for any other row. */
async function checkCopy(
  engine: Engine,
  entity: Entity,
  found: Row,
  candidates: readonly Projection[],
): Promise<readonly Suspicion[] | undefined> {
  const { SourceRow, EntityType } = found.properties;
  const possible = candidates.filter((one) => EntityType === entity.name || (EntityType === CLAIM && !isSibling(one)));
  const first = possible.find((one) => !isSibling(one)) ?? possible[0];
  if (!first || SourceRow === undefined) return undefined;
  const { table, partition, row, etag } = found;
  const source = ownerIn(entity, found);
  if (hasLiveClaim(found, { intent: repairIntent(source) }, engine)) return [];
  const values = await readOwner(engine, entity, source);
  // What follows from an entity that cannot be read may be the last copy of its values.
  if (values === 'unreadable') return [];
  const entryOf = ({ name: index }: Projection) => ({ index, table, partition, row });
  if (possible.some((one) => values && hasEntry(one, one.rows(values), entryOf(one)))) return [];
  const repair = isSibling(first)
    ? () => tryAction(engine.storage, found, { kind: 'delete', row, etag })
    : () => repairEntries(engine, entity, source, entryOf(first));
  const sum = first.merge?.sumOf?.(entryOf(first));
  return [{ kind: 'orphaned', of: first.name, table, partition, row, sum, repair }];
}

/** Checks the members of a list, from whose texts the keys of their entities are built. */
async function checkList(
  engine: Engine,
  entity: Entity,
  found: Row,
  {
    form,
    lists,
    members,
  }: { readonly form: ListForm; readonly lists: readonly Projection[]; readonly members: readonly string[] },
): Promise<readonly Suspicion[]> {
  const { table, partition, row } = found;
  const [first] = lists;
  if (first && form.isLost(found)) {
    const repair = () => form.restore(engine.storage, found);
    return [{ kind: 'lost-list', of: first.name, table, partition, row, repair, losesValues: true }];
  }
  const still = new Set(form.members(found));
  const entries = lists.flatMap((projection) =>
    members
      .filter((member) => still.has(member))
      .map((member) => ({ projection, entry: { index: projection.name, table, partition, row, member } })),
  );
  const checked = await pMap(entries, (each) => checkMember(engine, entity, { form, ...each }), {
    concurrency: MEMBERS_CONCURRENCY,
  });
  return checked.flat();
}

interface Member {
  readonly form: ListForm;
  readonly projection: Projection;
  readonly entry: IndexEntry & { readonly member: string };
}

async function checkMember(engine: Engine, entity: Entity, one: Member): Promise<readonly Suspicion[]> {
  const { projection, entry } = one;
  const { index: of, table, partition, row } = entry;
  const source = ownerOf(entity, projection, entry);
  const isWanted = async () => {
    const values = source && (await readOwner(engine, entity, source));
    return values === 'unreadable' || (values !== undefined && hasEntry(projection, projection.rows(values), entry));
  };
  if (await isWanted()) return [];
  const repair = () =>
    source && !isSibling(projection) ? repairEntries(engine, entity, source, entry) : dropMember(engine, one, isWanted);
  return [{ kind: 'orphaned', of, table, partition, row, member: entry.member, repair }];
}

/** The address of the entity to which a member of a list belongs; undefined if no entity can have written it. */
function ownerOf(entity: Entity, { at }: Projection, { partition, row, member }: Member['entry']): Address | undefined {
  const inMember = at.member && parseKey(at.member, member);
  return addressIfAny(entity, { ...parseKey(at.partition, partition), ...parseKey(at.row, row), ...inMember });
}

/**
 * What a row of an index has of these entities, as keys of rows: the row itself, or some members of the list that it is. Undefined for a row that has nothing
 * of them.
 */
export function partOf(
  entity: Entity,
  row: Row,
  isOf: (owner: Pick<Address, 'partition' | 'row'>) => boolean,
): { readonly row: Row; readonly members?: readonly string[] } | undefined {
  const list = listFormOf(entity);
  if (!list?.has(row)) return isOf(ownerIn(entity, row)) ? { row } : undefined;
  const lists = projectionsOf(entity).filter(({ at, merge }) => merge?.list && isRowAt(at, row));
  const { table, partition, row: key } = row;
  const members = list.members(row).filter((member) =>
    lists.some((projection) => {
      const entry = { index: projection.name, table, partition, row: key, member };
      const owner = ownerOf(entity, projection, entry);
      return owner && isOf(owner);
    }),
  );
  return members.length > 0 ? { row, members } : undefined;
}

/** True if an entity with these rows has the entry. A row of a partition belongs to an entity of this partition, whatever its values are. */
export function hasEntry(projection: Projection, rows: readonly IndexEntry[], entry: IndexEntry): boolean {
  return rows.some((one) => isSameEntry(one, isSibling(projection) ? { ...entry, partition: one.partition } : entry));
}

/**
 * Removes a member from its list. The list is read before the entity is read again. An entity that joins the list writes it,
 * so the ETag of the list keeps the removal from dropping an entity that has joined meanwhile.
 */
async function dropMember(
  { storage }: Engine,
  { form, entry }: Member,
  isWanted: () => Promise<boolean>,
): Promise<boolean> {
  const list = await form.read(storage, entry);
  if (await isWanted()) return true;
  const action = form.change(list, entry.row, { add: [], remove: [entry.member] });
  if (!action) return true;
  const isDone = await tryAction(storage, entry, await form.write(storage, entry, { action, former: list }));
  if (isDone && list) await form.drop(storage, list);
  return isDone;
}

/** The address of the entity that a copy, a contribution or a claim names. */
export function ownerIn({ table }: Entity, { properties: { SourcePartition, SourceRow } }: Row): Address {
  return { table, partition: String(SourcePartition), row: String(SourceRow) };
}

/** The current values of the entity to which a row of an index belongs; undefined if it does not exist. */
export async function readOwner(
  engine: Engine,
  entity: Entity,
  address: Address,
): Promise<Values | 'unreadable' | undefined> {
  const row = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) });
  if (row?.properties.EntityType !== entity.name) return undefined;
  return surviveRow<Values | 'unreadable' | undefined>(
    async () => {
      const values = liveValues(toSnapshot(entity, row));
      return values && whyInvalid(entity, row, values) !== undefined ? 'unreadable' : values;
    },
    () => 'unreadable',
  );
}
