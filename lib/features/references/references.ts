import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { busy, entityError, hasCode, RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import { storedNames, toSnapshot, toValues } from '../../define/codec/entity-codec.ts';
import { type Change, type Live, liveValues } from '../../define/declaration/change.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Entity, EntityChange, Feature, Reference } from '../../define/declaration/entity.ts';
import { expiryFields, hasExpired } from '../../define/declaration/expiry.ts';
import type { InterPartitionIndex } from '../../define/declaration/indexes.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { addressIfAny, indexKeyFields, isConfirmed, isCopy, isUnique } from '../../define/places/index-entries.ts';
import {
  isByKey,
  keyIn,
  lookupBy,
  otherKeyFields,
  referrersRange,
  referringFields,
} from '../../define/places/relation.ts';
import { isOptional } from '../../define/schema/field-schema.ts';
import { oracleErrors } from '../../define/validate/feature-errors.ts';
import { readJoinedRow } from '../../engine/read/entity-rows.ts';
import { requireBuilt } from '../../engine/read/unbuilt-indexes.ts';
import { atAction } from '../../engine/write/conflict.ts';
import { hideCost } from '../../storage/cost.ts';
import { type Address, type Row, readRange, readRow } from '../../storage/rows.ts';

/**
 * References: a field contains the key of another entity, which must exist when the field is written. A write that does not
 * change the field reads nothing.
 *
 * If both entities are always in one partition, the transaction of the referring entity also writes the other one, under its
 * ETag, so the check is exact. Otherwise the other entity is read before the transaction, by its key or through a unique
 * index. A delete of the other entity reads the entities that refer to it, and then commits under its own ETag.
 *
 * Both reads come before the commits, so a write and a delete in two partitions may miss each other. The consistency check
 * reports the result.
 */
export const references: Feature = {
  name: 'references',
  isUsed: (entity) => Object.keys(entity.references).length > 0 || entity.referencedBy.length > 0,
  validate: validationErrors,
  write: {
    *siblings(entity, change) {
      for (const reference of referencesOf(entity).filter(isBeside)) {
        const address = changedTarget(reference, change);
        if (address) yield address.row;
      }
    },
    plan(entity, changes, { siblings, actions, writeId, now, leavesReferences }) {
      if (leavesReferences) return;
      for (const reference of referencesOf(entity).filter(isBeside))
        for (const change of changes) {
          const address = changedTarget(reference, change);
          if (!address) continue;
          const found = siblings.get(address.row);
          if (!found || !canReferTo(reference, found, now)) throw danglingError(reference);
          // Another action on the row checks its ETag as well. A transaction must not name a row twice.
          if (actions.some(({ action }) => action.row === found.row)) continue;
          const { row, etag } = found;
          actions.push({
            action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag },
            part: { of: 'sibling' },
          });
        }
    },
    async checkRelated(engine, entity, changes, together) {
      const checking = { concurrency: READS_CONCURRENCY };
      await pMap(changes, (change) => checkReferrers(engine, entity, change, together), checking);
      const asked = referencesOf(entity).flatMap((reference) =>
        changes.flatMap((change) => {
          // The transaction of the change checks the others.
          const isRead = !isBeside(reference) || fieldsToSee(engine, reference) || change.arrival?.isCarried;
          const key = isRead ? changedKey(reference, change) : undefined;
          return key ? [{ reference, key, change }] : [];
        }),
      );
      const once = new Map(asked.map((each) => [JSON.stringify([each.reference.field, each.key]), each]));
      await pMap(
        once.values(),
        async ({ reference, key, change }) => {
          const check = async () => {
            if (!(await hasTarget(engine, reference, key, { together })))
              throw atAction(change, danglingError(reference));
          };
          // An entity that the caller cannot read is found by more reads than one that does not exist.
          return fieldsToSee(engine, reference) ? hideCost(check, (error) => hasCode(error, 'invalid-input')) : check();
        },
        checking,
      );
    },
  },
  check: {
    async entity(engine, entity, { address, snapshot }) {
      const found = await pMap(referencesOf(entity), async (reference) => {
        const key = keyIn(reference, snapshot.values);
        return key === undefined || (await hasTarget(engine, reference, key, { isCheck: true }))
          ? []
          : [reference.field];
      });
      return found.flat().map((of) => ({ kind: 'dangling', of, ...address }));
    },
  },
};

const READS_CONCURRENCY = 16;
/** One is enough. More are read only if an index is stale. */
const REFERRERS_PAGE = 10;

function* validationErrors(entity: Entity): Generator<string> {
  const ring = findRing(entity);
  if (ring)
    yield `the required references ${ring.join(' → ')} form a ring, of which no entity can be created first. Make one of the fields optional.`;
  for (const reference of referencesOf(entity)) {
    const { field, to, by, onDelete, unseen } = reference;
    const what = `the reference "${field}" to "${to.name}"`;
    if (onDelete !== 'refuse' && onDelete !== 'report')
      yield `${what} has the onDelete "${onDelete}". Use "refuse" or "report".`;
    for (const one of [entity, to])
      if (one.period || one.series || one.isWrittenByClients)
        yield `${what} cannot be kept, because "${one.name}" has ${one.period ? 'a period, whose tables are dropped as a whole' : one.series ? 'counts alone (defineSeries)' : 'rows that clients write straight to storage (access.own)'}. Remove the reference.`;
    if (entity.columns[field] === undefined) continue;
    if (entity.columns[field] !== to.columns[by])
      yield `${what} is stored as ${entity.columns[field]}, and "${by}" of "${to.name}" ${to.columns[by] ? `as ${to.columns[by]}` : 'is not declared'}. Use one type for both.`;
    if ([...entity.encrypted, ...entity.large, ...entity.keptFields].includes(field))
      yield `${what} is encrypted, large or set by a pattern. Use a field that a caller writes and storage can compare.`;
    if (!isByKey(reference) && !uniqueIndexOf(reference))
      yield `${what} leads to no single entity. Add a unique inter-partition index of "${by}" alone, without a condition, to "${to.name}", or its other key fields (${otherKeyFields(reference).join(', ')}) to this entity.`;
    if (!unseen)
      yield* oracleErrors(`${what} is checked at a write`, { writer: entity, seen: to, field: by, isUnique: true });
    if (onDelete !== 'refuse') continue;
    yield* oracleErrors(`${what} refuses deletes`, { writer: to, seen: entity, field, isUnique: false });
    if (to.childOf)
      yield `${what} cannot refuse deletes, because a delete of "${to.childOf.name}" deletes its children too. Use onDelete: 'report'.`;
    const fields = referringFields(reference);
    const lookup = lookupBy(entity, fields);
    if (lookup?.isLeftToQueue)
      yield `${what} refuses deletes and finds who refers to an entity by the index "${lookup.index}" alone, which may be behind. Set its settle to "inline", or use onDelete: 'report'.`;
    if (!lookup)
      yield `${what} refuses deletes and cannot find who refers to an entity by one query. Make ${fields.join(', ')} the first fields of its key, or of an index of copies without a condition whose other fields are required, or use onDelete: 'report'.`;
  }
}

/**
 * The names of entities from this one to itself, each of which exists only after the next: a reference that is always set, also one by
 * which fields are copied in the transaction of a write, or a parent.
 */
function findRing(entity: Entity): readonly string[] | undefined {
  const open = [[entity]];
  const seen = new Set<Entity>();
  for (let path = open.shift(); path; path = open.shift()) {
    const last = path.at(-1) ?? entity;
    const copied = Object.values(last.denormalized).filter(({ fanOut }) => !fanOut);
    const set = [
      ...referencesOf(last).map(({ field, to }) => ({ field, to })),
      ...copied.map(({ field, source }) => ({ field, to: source })),
    ].filter(({ field }) => Object.hasOwn(last.columns, field) && !isOptional(last.schema, field));
    // An entity may refer to itself.
    const others = set.map(({ to }) => to).filter((to) => to !== last);
    const needed = [...others, ...(last.childOf ? [last.childOf] : [])];
    if (needed.includes(entity)) return [...path, entity].map(({ name }) => name);
    open.push(...needed.filter((one) => !seen.has(one)).map((one) => [...path, one]));
    for (const one of needed) seen.add(one);
  }
  return undefined;
}

const referencesOf = (entity: Entity) => Object.values(entity.references);

function uniqueIndexOf({ to, by }: Reference): { name: string; index: InterPartitionIndex } | undefined {
  return Object.entries(to.indexes)
    .flatMap(([name, index]) => (isUnique(index) ? [{ name, index }] : []))
    .find(({ index }) => !index.when && isDeepStrictEqual(indexKeyFields(index), [by]));
}

/** True if both entities are in one partition, whatever their values. */
function isBeside(reference: Reference): boolean {
  const { from, to, field, by } = reference;
  const { table, partition } = from();
  const isOneTable = to.table === table && to.partition.template === partition.template;
  return isOneTable && isByKey(reference) && (field === by || !partition.fields.includes(by));
}

/** The key of the entity to which a change makes another one refer. */
function changedKey(reference: Reference, { before, after, arrival }: Change): Values | undefined {
  const key = keyIn(reference, after);
  if (after && key && isItself(reference, after, key)) return undefined;
  // An arriving entity refers to what it referred to before, unless the move changes the reference.
  const isKept = arrival && !referringFields(reference).some((field) => arrival.moves.includes(field));
  return isKept || isDeepStrictEqual(key, keyIn(reference, liveValues(before))) ? undefined : key;
}

/** True if an entity with these values refers to itself, and so to one that exists after the write. */
function isItself({ from, to }: Reference, values: Values, key: Values): boolean {
  return from() === to && isDeepStrictEqual(pick(values, Object.keys(key)), key);
}

function changedTarget(reference: Reference, change: Change): Address | undefined {
  const key = changedKey(reference, change);
  if (!key) return undefined;
  const address = addressIfAny(reference.to, key);
  if (address) return address;
  throw danglingError(reference);
}

function isTarget({ to }: Reference, found: Row | undefined): boolean {
  return found !== undefined && found.properties.EntityType === to.name && !isCopy(found);
}

/** True if the reference may name the row. Throws `busy` while its entity is being moved to this row: the move may still be undone. */
function canReferTo(reference: Reference, found: Row | undefined, now: number): boolean {
  const { to } = reference;
  if (!isTarget(reference, found)) return false;
  if (expiryFields(to).length > 0 && hasExpired(to, toValues(to, found?.properties ?? {}), now)) return false;
  if (found?.properties.MovingFrom || found?.properties.Leaving)
    throw busy(`The entity that "${reference.field}" refers to is being moved or deleted.`);
  return true;
}

/** The fields that decide whether the caller sees the other entity; undefined if the reference may be to any. */
function fieldsToSee({ guard }: Engine, { to, unseen }: Reference): readonly string[] | undefined {
  return unseen ? undefined : guard?.fieldsToRefer(to.name);
}

/**
 * True if the entity exists: one point read, and a second one while the row of a unique index is only claimed. With `isCheck`,
 * for the consistency check, the row of an index is never enough, and an entity that is being moved exists.
 */
async function hasTarget(
  engine: Engine,
  reference: Reference,
  key: Values,
  { isCheck = false, together = [] }: { readonly isCheck?: boolean; readonly together?: readonly EntityChange[] } = {},
): Promise<boolean> {
  const { storage, now } = engine;
  const { to, by } = reference;
  const fields = fieldsToSee(engine, reference);
  const changed = together.find(({ entity, after }) => entity === to && after && isOfKey(after, key));
  if (changed?.after) return !fields || engine.guard?.canRefer(to.name, changed.after) === true;
  const instant = expiryFields(to);
  // An upgrade needs the whole row.
  const isWhole = fields !== undefined || (instant.length > 0 && to.version > 1);
  const select = isWhole ? undefined : ['EntityType', 'SourceRow', 'MovingFrom', 'Leaving', by, ...instant];
  const isThere = isCheck ? isTarget : canReferTo;
  // To a caller who cannot read the entity, it does not exist, even while it is being moved.
  const exists = (found: Row | undefined) =>
    isTarget(reference, found) &&
    (!fields || engine.guard?.canRefer(to.name, toValues(to, found?.properties ?? {})) === true) &&
    isThere(reference, found, now());
  if (isByKey(reference)) {
    const address = addressIfAny(to, key);
    if (!address || isChanged(together, address)) return false;
    if (!to.formerKey) return exists(await readRow(storage, { ...address, select }));
    return exists(await readJoinedRow(engine, to, { ...address, select }, { fields: [...(fields ?? []), ...instant] }));
  }
  const through = uniqueIndexOf(reference);
  if (!through) return false;
  const { name, index } = through;
  const entry = await readRow(storage, {
    table: index.remote.table,
    partition: buildKey(index.remote.partition, key),
    row: buildKey(index.row, key),
  });
  if (!entry || !isCopy(entry)) {
    if (!isCheck) await requireBuilt(engine, to, name);
    return false;
  }
  const address = sourceAddress(to, entry);
  if (isChanged(together, address)) return false;
  if (isConfirmed(entry) && !isCheck && !fields && instant.length === 0) return true;
  // An upgrade needs the whole row.
  const needed = [by, ...(fields ?? []), ...instant];
  const projection = to.version > 1 ? undefined : [...storedNames(to, needed), 'MovingFrom', 'Leaving'];
  const found = await readJoinedRow(engine, to, { ...address, select: projection }, { fields: needed });
  return exists(found) && toValues(to, found?.properties ?? {})[by] === key[by];
}

/** True if the transaction changes the entity in this row. What is left of the entity is known from the change. */
function isChanged(together: readonly EntityChange[], { table, partition, row }: Address): boolean {
  return together.some(
    ({ address }) => address.row === row && address.partition === partition && address.table === table,
  );
}

function isOfKey(values: Values, key: Values): boolean {
  return isDeepStrictEqual(pick(values, Object.keys(key)), key);
}

function danglingError({ field, to, by }: Reference): RowkeyError {
  const accepted = `the ${by} of an existing entity of ${to.name}`;
  return new RowkeyError('invalid-input', `"${field}" refers to no entity of ${to.name}.`, { field, accepted });
}

/** Throws `referenced` if an entity refers to this one and the change would leave the reference dangling. */
async function checkReferrers(
  engine: Engine,
  entity: Entity,
  change: Change,
  together: readonly EntityChange[],
): Promise<void> {
  const { before, after, movedTo, isMove } = change;
  // The destination of a move that is undone: its references are still those to the source. What has left was checked before.
  if (before.state !== 'live' || before.system.MovingFrom || before.system.Left) return;
  for (const reference of entity.referencedBy) {
    const { by, field, from, onDelete } = reference;
    const isKept = isMove && !isByKey(reference) && !entity.movable.includes(by);
    if (onDelete !== 'refuse' || isKept || after?.[by] === before.values[by]) continue;
    // What refers to itself can be deleted. After a move, or with another "by", its reference would dangle.
    const byItself = isMove === true || (after !== undefined && after[field] === before.values[field]);
    if (!(await isReferredTo(engine, reference, before, { byItself, together }))) continue;
    const what = after ? `must keep its "${by}"` : `cannot be ${movedTo ? 'archived or moved' : 'deleted'}`;
    const why = `${from().name} refer to it in "${field}".`;
    throw atAction(change, entityError('referenced', entity, pick(before.values, entity.keyFields), `${what}: ${why}`));
  }
}

/** Finds one referring entity, which `byItself` may be the entity itself: one range query, and a point read of each entity that it finds through an index. */
async function isReferredTo(
  engine: Engine,
  reference: Reference,
  { values }: Live,
  { byItself, together }: { readonly byItself: boolean; readonly together: readonly EntityChange[] },
): Promise<boolean> {
  const { by, from, to } = reference;
  if (values[by] === undefined) return false;
  const key = isByKey(reference) ? pick(values, to.keyFields) : { [by]: values[by] };
  const isReferrer = (of: Values | undefined) =>
    of !== undefined && isDeepStrictEqual(keyIn(reference, of), key) && (byItself || !isItself(reference, of, key));
  if (together.some((change) => change.entity === from() && isReferrer(change.after))) return true;
  const range = referrersRange(reference, key);
  if (!range) return false;
  let after: string | undefined;
  for (;;) {
    const { rows, more } = await readRange(engine.storage, {
      ...range,
      type: from().name,
      after,
      limit: REFERRERS_PAGE,
    });
    for (const row of rows.filter((each) => isCopy(each) === (range.index !== undefined))) {
      if (isChanged(together, range.index === undefined ? row : sourceAddress(from(), row))) continue;
      const referring =
        range.index === undefined ? row : await readJoinedRow(engine, from(), sourceAddress(from(), row));
      const found = toSnapshot(from(), referring?.properties.EntityType === from().name ? referring : undefined);
      if (isReferrer(liveValues(found))) return true;
    }
    after = rows.at(-1)?.row;
    if (!more || after === undefined) break;
  }
  if (range.index !== undefined) await requireBuilt(engine, from(), range.index);
  return false;
}

/** The address of the entity of which a row is a copy. */
function sourceAddress({ table }: Entity, { properties }: Row): Address {
  const { SourcePartition, SourceRow } = properties;
  return { table, partition: String(SourcePartition), row: String(SourceRow) };
}
