import type { z } from 'zod';
import { hasCode, RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { findNotJson } from '../../base/json-value.ts';
import { isObject, mergePatch } from '../../base/merge-patch.ts';
import { mapValues, omit, pick, type Values, WrongValue } from '../../base/values.ts';
import { isReference, toSnapshot } from '../../define/codec/entity-codec.ts';
import { withDefaultFields } from '../../define/codec/further-rows.ts';
import { checkFields, failedChecks, validate, validateFields } from '../../define/codec/validation.ts';
import type { Unread } from '../../define/declaration/change.ts';
import { type Conditions, singleEtag } from '../../define/declaration/conditions.ts';
import { type Entity, type EntityChange, hasRowsBeside, isOneRow } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { hideCost } from '../../storage/cost.ts';
import { ANY_ETAG, type Row } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { judgeRow, notFound, readRowToWrite } from '../read/entity-rows.ts';
import { unreadableField } from '../read/unreadable-field.ts';
import { isShared } from '../shared-tables.ts';
import {
  CHECKS,
  type CheckedWrite,
  type Current,
  checkKeyKept,
  type EntityWrite,
  isWritable,
  mayTellOf,
} from './checks.ts';
import { duplicateKey } from './conflict.ts';
import { findDerived, toStored } from './stored-values.ts';

/** What a request makes of one entity: what is read, what is checked, and the change that follows. entity-batch.ts commits it. */

/** A change that a write has planned, with its outcome if it is committed. */
export interface PlannedWrite extends EntityChange {
  readonly write: EntityWrite;
  /** `stored`: replaced or patched, or put without a read, which does not tell whether the entity existed. */
  readonly outcome: 'created' | 'stored' | 'unchanged' | 'deleted';
}

/**
 * Reads the entity if the change depends on it, and checks what is asked. Throws `not-found`, `etag-mismatch`, `busy`, and the errors of
 * the write's `next`.
 */
export async function planWrite(engine: Engine, write: EntityWrite): Promise<PlannedWrite> {
  const plan = () => planOpenly(engine, write);
  return engine.guard?.isLimited(write.entity.name) ? hideCost(plan, (error) => hasCode(error, 'not-found')) : plan();
}

async function planOpenly(engine: Engine, write: EntityWrite): Promise<PlannedWrite> {
  const { entity, address, position, key, expects, unread, isUpkeep = false, refreshesCopies = false } = write;
  const of = { write, entity, address, position };
  const isRekeyed = entity.formerKey && (await engine.rekey?.phaseOf(engine, entity.name));
  const hasPassed = !unread?.after || failedChecks(entity, unread.after).length === 0;
  if (unread && hasPassed && !isRekeyed && isWritable(entity, key, engine.now()))
    return { ...of, ...unread, outcome: unread.after ? 'stored' : 'deleted' };
  // The tombstone at the former key is deleted first: with it, a process that is late with its copy would restore the entity.
  if (isRekeyed === 'moving' && write.isDelete) await engine.rekey?.find(engine, entity.name, address);
  // A write without a read that would be refused reads the entity, to be refused in the order of the checks.
  const read = write.read ?? (isRekeyed && {});
  const isKnown = (values: Values) => mayTellOf(engine, write, values);
  const row = write.found ?? (read && (await readRowToWrite(engine, entity, address, { ...read, isKnown })));
  const judged = row && expects !== 'none' ? judgeRow(entity, row) : undefined;
  const found = judged && judged.is !== 'other' ? judged.snapshot : undefined;
  const current = found && isKnown(found.values) ? found : undefined;
  const checked: CheckedWrite = { engine, write, current, isRefused: judged?.is === 'invalid', after: undefined };
  for (const { check } of CHECKS) await check(checked);
  const after = checked.after && ((await write.store?.(checked.after, current?.values)) ?? checked.after);
  if (current) {
    const isUnchanged = !refreshesCopies && isSame(after, current.values);
    const outcome = isUnchanged ? 'unchanged' : after ? 'stored' : 'deleted';
    return { ...of, before: current, after, isUpkeep, refreshesCopies, outcome };
  }
  const there = found ?? toSnapshot(entity, row);
  const isTaken = there.state === 'live';
  // A copy, a list or an entity of another type has the same key.
  if (isTaken && !found && expects === 'any') throw duplicateKey(entity, key);
  return {
    ...of,
    // The insert finds out what has the key. An expired entity is then deleted: see expired.ts. A hidden one is a conflict, after all other
    // errors, as for a create under this key: that tells no more of the row than a caller who may create it learns anyway.
    before: isTaken ? { state: 'absent' } : there,
    after,
    mayExist: expects === 'any' && !found,
    incarnation: write.incarnation,
    outcome: 'created',
  };
}

/** The write of a new entity with these values, but for fields that features set. */
export interface NewEntityWrite extends EntityWrite {
  readonly values: Values;
}

/** The write of a new entity. `incarnation` identifies the request. With a key, that of the body must not differ. Throws `invalid-input`. */
export function prepareCreate(
  engine: Engine,
  entity: Entity,
  input: unknown,
  { key, conditions = {}, incarnation }: Partial<Pick<EntityWrite, 'key' | 'conditions' | 'incarnation'>> = {},
): NewEntityWrite {
  const plain = validate(entity, withSetFields(engine, entity, key ? withKey(entity, key, input) : input));
  if (key) checkKeyKept(entity, key, plain);
  return {
    entity,
    address: addressOf(entity, plain),
    key: key ?? pick(plain, entity.keyFields),
    expects: 'none',
    conditions,
    read: entity.features.some(({ write }) => write?.remains?.isLikely(entity)) ? {} : undefined,
    incarnation,
    values: plain,
    next: async () => plain,
    store: (values) => toStored(engine, entity, values),
  };
}

/** Returns the write of `input` to the entity with this key. Throws `invalid-input` if the write needs no read. */
type ToWrite<Input = unknown> = (
  engine: Engine,
  entity: Entity,
  key: Values,
  input: Input,
  conditions: Conditions,
) => EntityWrite;

/** Replaces the entity. */
export const prepareReplace: ToWrite = (engine, entity, key, input, conditions) =>
  prepareStore(engine, entity, key, (current) => wholeValues(engine, entity, { key, input, current }), conditions);

/** Replaces the entity, or creates it. */
export const preparePut: ToWrite = (engine, entity, key, input, conditions) => {
  // A derived field in the body must equal the stored one, which is then read.
  const hasDerived = Object.keys(entity.derived).some((field) => field in Object(input));
  const before = hasDerived ? undefined : unreadState(engine, entity, key, conditions);
  const after = before && unlessInvalid(() => wholeValues(engine, entity, { key, input }));
  const unread = before && after && { before, after };
  return { ...prepareReplace(engine, entity, key, input, conditions), expects: 'any', unread };
};

/** Replaces the entity with valid values, or creates it. */
export const prepareValidPut: ToWrite<Values> = (engine, entity, key, values, conditions) => {
  const before = unreadState(engine, entity, key, conditions);
  const unread = before && { before, after: values };
  return { ...prepareStore(engine, entity, key, () => values, conditions), expects: 'any', unread };
};

const prepareStore: ToWrite<(current?: Values) => Values> = (engine, entity, key, valid, conditions) => ({
  ...describeChange(entity, key, conditions),
  async next(current) {
    const kept = current ? pick(current.values, entity.keptFields) : {};
    return { ...kept, ...valid(current?.values) };
  },
  store: (values, current) => toStored(engine, entity, values, current),
});

/** The part of a write that all changes of a whole entity have. */
function describeChange(entity: Entity, key: Values, conditions: Conditions) {
  const read = { fields: Object.keys(entity.columns) };
  return { entity, address: addressOf(entity, key), key, expects: 'one', conditions, read } as const;
}

/** The values of a body that replaces the entity with this key. Throws `invalid-input`. */
function wholeValues(
  engine: Engine,
  entity: Entity,
  { key, input, current }: { readonly key: Values; readonly input: unknown; readonly current?: Values | undefined },
): Values {
  const given = withSetFields(engine, entity, withKey(entity, key, input), current);
  const values = validate(entity, withoutCopies(entity, given, current ?? {}));
  checkKeyKept(entity, key, values);
  return values;
}

/** Changes some fields by a merge patch (RFC 7396). */
export const preparePatch: ToWrite = (engine, entity, key, patch, conditions) => {
  checkFields(patch);
  return {
    ...describeChange(entity, key, conditions),
    read: { fields: withDefaultFields(entity, Object.keys(Object(patch))), isWhole: true },
    async next(current) {
      if (!current || current.isRefused) throw notFound(entity, key);
      return applyPatch(engine, entity, { key, patch, ...current });
    },
    store: (values, current) => toStored(engine, entity, values, current),
  };
};

/** Changes some fields, without a read if storage can merge them. The result has no other fields. */
export const prepareMerge: ToWrite = (engine, entity, key, patch, conditions) => {
  const before = unreadState(engine, entity, key, conditions);
  const after = before && unlessInvalid(() => mergeable(entity, key, patch));
  const unread = before && after && { before, after, isPartial: true };
  return { ...preparePatch(engine, entity, key, patch, conditions), unread };
};

/** Deletes the entity, whose row may have been read. */
export const prepareDelete: ToWrite<Row | undefined> = (engine, entity, key, found, conditions) => {
  const { ifMatch = ANY_ETAG } = conditions;
  const isAny = ifMatch.trim() === ANY_ETAG;
  // A backup orders a delete by the version that it deletes.
  const before = isAny && engine.storage.journal ? undefined : unreadState(engine, entity, key, conditions);
  return {
    ...describeChange(entity, key, conditions),
    isDelete: true,
    // A delete under an ETag is conditional as a single operation or by a tombstone, which an entity without further rows has not.
    isAlone: !isAny && !entity.features.some(hasRowsBeside),
    unread: before && { before, after: undefined },
    found,
    next: async () => undefined,
  };
};

/** Undefined for values that are not valid: the write reads the entity, and is refused in the order of the checks. */
export function unlessInvalid(compute: () => Values | undefined): Values | undefined {
  try {
    return compute();
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return undefined;
    throw error;
  }
}

/** The values when `patch` changes some fields of the entity. */
async function applyPatch(
  engine: Engine,
  entity: Entity,
  { key, patch, values: current, unread }: Current & { readonly key: Values; readonly patch: unknown },
): Promise<Values> {
  const copies = entity.decidedFields;
  const given = withoutCopies(entity, withValue(withKey(entity, key, patch)), current);
  for (const { stored } of entity.features) {
    const error = stored?.refusePatch?.(entity, Object.keys(given));
    if (error) throw error;
  }
  // Not the mistake of the caller, who has not sent the field.
  const wrong = Object.keys(current).find(
    (field) => current[field] instanceof WrongValue && !Object.hasOwn(given, field),
  );
  if (wrong !== undefined && !copies.includes(wrong)) throw unreadableField(entity, wrong, current);
  // References are kept unless their field is written.
  const references = entity.referenceFields.filter((field) => isReference(current[field]));
  const held = omit(pick(current, references), Object.keys(given));
  // A value that was stored by other means, or before there was a limit of its depth, stays as it is until it is replaced.
  const isKept = (field: string) => !(field in given) && current[field] !== undefined && findNotJson(current[field]);
  const kept = Object.keys(omit(current, [...copies, ...references])).filter(isKept);
  const patched = mapValues(given, (value, field) => {
    const target = current[field] instanceof WrongValue ? undefined : current[field];
    return isObject(value) ? mergePatch(target, value) : value;
  });
  const merged = Object.entries({ ...omit(current, [...copies, ...references, ...kept]), ...patched });
  const left = merged.filter(([field, value]) => value !== null || copies.includes(field));
  const changed = validate(entity, Object.fromEntries(left), { ...held, ...pick(current, kept), ...unread });
  const known = await withDerivedOfBlobs(engine, entity, omit(changed, Object.keys(unread)), current);
  return { ...pick(current, entity.keptFields), ...known };
}

/** The values with derived fields of the texts that are in blobs, to which the values of a patch refer. If a blob is lost, they are kept. */
async function withDerivedOfBlobs(engine: Engine, entity: Entity, values: Values, current: Values): Promise<Values> {
  const derived = Object.keys(entity.derived);
  if (derived.length === 0 || !entity.large.some((field) => isReference(values[field]))) return values;
  return { ...omit(values, derived), ...((await findDerived(engine, entity, values)) ?? pick(current, derived)) };
}

/**
 * The state from which a write without a read is planned. Undefined if more than the row may follow from the write, or if
 * storage cannot check the conditions.
 */
function unreadState(
  engine: Engine,
  entity: Entity,
  key: Values,
  { ifMatch, ifNoneMatch }: Conditions,
): Unread | undefined {
  if (engine.guard?.isLimited(entity.name) || !isOneRow(entity) || ifNoneMatch !== undefined) return undefined;
  if (isShared(engine, entity)) return undefined;
  if (ifMatch === undefined) return { state: 'unread', etag: undefined, key };
  const etag = singleEtag(ifMatch);
  return etag === undefined ? undefined : { state: 'unread', etag, key };
}

/**
 * The fields of a patch that storage can merge into a row, validated. Undefined if the result depends on the stored fields: a
 * field is removed or derived, checks compare fields, an object is merged, the kind decides the fields, a row may be of an earlier version, or clients may have written it.
 */
function mergeable(entity: Entity, key: Values, patch: unknown): Values | undefined {
  const { union, derived, checks, version, isWrittenByClients } = entity;
  const isOfAllFields = [derived, checks].some((functions) => Object.keys(functions).length > 0);
  if (union || version > 1 || isOfAllFields || isWrittenByClients) return undefined;
  const given = omit(withKey(entity, key, patch), entity.keyFields);
  const values = Object.values(given);
  if (values.length === 0 || values.some((value) => value === null || value === undefined || isObject(value)))
    return undefined;
  return validateFields(entity, given);
}

/** The body with the fields that it leaves out and that follow from the caller: as they are stored, or for a new entity as they will be. */
export function withSetFields<Given>(
  { guard }: Pick<Engine, 'guard'>,
  { name }: Entity,
  given: Given,
  current?: Values,
): Given {
  const set = guard?.setFields(name);
  if (!set || typeof given !== 'object' || given === null || Array.isArray(given)) return given;
  const fields = Object.keys(set).filter((field) => (given as Values)[field] === undefined);
  return { ...given, ...pick(current ?? set, fields) };
}

/** The body may repeat the key of the path; it must not change the key. */
function withKey(entity: Entity, key: Values, input: unknown): Values {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw new RowkeyError('invalid-input', 'The body must be a JSON object.');
  const given: Values = { ...input };
  for (const field of entity.keyFields) {
    const value = given[field];
    if (value === undefined || value === key[field] || normalize(entity, field, value) === key[field]) continue;
    const accepted = entity.movable.includes(field)
      ? 'the value in the path; POST to …/move changes it'
      : 'the value in the path';
    throw new RowkeyError('invalid-input', `"${field}" is part of the key and cannot be changed.`, {
      field,
      accepted,
    });
  }
  const own = entity.keyFields.filter((field) => !(field in entity.derived));
  return { ...given, ...pick(key, own) };
}

/** A member that is undefined is as absent: JSON has none. */
function withValue(patch: Values): Values {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
}

/** The value as it is stored, such as an instant with milliseconds. Undefined for an invalid value. */
function normalize(entity: Entity, field: string, value: unknown): unknown {
  const schema = entity.schema.shape[field] as z.ZodType | undefined;
  return schema?.safeParse(value).data;
}

/** Fields that only the engine writes are accepted in a body if they are unchanged. */
function withoutCopies(entity: Entity, given: Values, current: Values): Values {
  return omit(
    given,
    entity.decidedFields.filter((field) => given[field] === current[field]),
  );
}
