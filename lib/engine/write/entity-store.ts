import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { busy, type ErrorCode, RowkeyError } from '../../base/errors.ts';
import { backOff } from '../../base/time.ts';
import { omit, pick, type Stored, type Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { apartFields, groupsToRead, listedRows, withDefaultFields } from '../../define/codec/further-rows.ts';
import { decidedFields, keptFields, referenceFields } from '../../define/codec/kept-fields.ts';
import { validate, validateFields } from '../../define/codec/validation.ts';
import type { Change } from '../../define/declaration/change.ts';
import { type Conditions, checkConditions, singleEtag } from '../../define/declaration/conditions.ts';
import { type Entity, isOneRow, isWrittenByClients } from '../../define/declaration/entity.ts';
import { isReference } from '../../define/declaration/reference.ts';
import type { Live, Snapshot, Unread } from '../../define/declaration/snapshot.ts';
import { groupOfFurtherRow } from '../../define/keys/further-rows.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { Engine } from '../engine.ts';
import { type EntityRowOptions, readJoinedRow } from '../read/entity-rows.ts';
import { notFound, readJudged, readLive } from '../read/read-live.ts';
import { runExclusive } from '../run-exclusive.ts';
import { EntityChanged } from './conflict.ts';
import { commit } from './eventual-transaction.ts';
import { toStored } from './stored-values.ts';

/** Writes one entity: a request becomes a change of one partition, committed by an eventual transaction. */

/** The longest time to retry while other requests change the same entity. */
const PATIENCE_MS = 10_000;
const BACK_OFF_MS = 40;
const LONGEST_BACK_OFF_MS = 500;

const NOTHING: Stored = { etag: '', values: {} };

/** Errors of a create that an earlier attempt of the same request may have caused. */
const BY_ITSELF = new Set<string>(['duplicate-key', 'duplicate-value', 'busy']);

/**
 * Creates an entity. `incarnation` identifies the request: if an earlier attempt of the request created the entity, its
 * current state is returned. Throws `invalid-input`, `duplicate-key`, `duplicate-value`, `too-large`, `busy`.
 */
export async function createEntity(
  engine: Engine,
  entity: Entity,
  input: unknown,
  incarnation?: string,
): Promise<Stored> {
  const plain = validate(entity, input);
  checkWritable(entity, plain, engine.now());
  const after = await toStored(engine, entity, plain);
  const address = addressOf(entity, after);
  const isToRead = entity.patterns.some((pattern) => pattern.hasPlaceholder?.(entity));
  const found = toSnapshot(entity, isToRead ? await readJoinedRow(engine, entity, address) : undefined);
  // An insert conflicts with an entity; the conflict names its owner.
  const before: Snapshot = found.state === 'live' ? { state: 'absent' } : found;
  const change: Change = { address, before, after, incarnation };
  try {
    const [stored = NOTHING] = await commit(engine, entity, [change], { assumeNew: true });
    return stored;
  } catch (error) {
    if (incarnation === undefined || !(error instanceof RowkeyError) || !BY_ITSELF.has(error.code)) throw error;
    const earlier = await readLive(engine, entity, address);
    if (earlier?.system.Incarnation !== incarnation) throw error;
    return earlier;
  }
}

/** Replaces all fields of an entity. Throws as `changeEntity` does. */
export function replaceEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  input: unknown,
  conditions: Conditions = {},
): Promise<Stored> {
  return changeEntity(engine, entity, key, wholly(entity, conditions), (current) =>
    replaced(engine, entity, { key, input, current }),
  );
}

/** What a change of an entity starts from. */
interface Given {
  readonly key: Values;
  readonly input: unknown;
  readonly current: Values;
  /** The fields in further rows that were not read: see `unreadFields`. */
  readonly unread?: Values;
}

/** The values to store when `input` replaces the entity. */
export function replaced(engine: Engine, entity: Entity, { key, input, current }: Given): Promise<Values> {
  const given = withoutCopies(entity, withKey(entity, key, input), current);
  return toStored(engine, entity, { ...pick(current, keptFields(entity)), ...validate(entity, given) }, current);
}

/** An entity that a put has stored. */
export interface Put extends Stored {
  readonly isCreated: boolean;
}

/** Attempts of a put that other requests make create and replace in turn. */
const MAX_PUTS = 5;

/**
 * Replaces an entity, or creates it if it does not exist. An entity that is one row is stored without a read, and
 * `isCreated` is then false. With `If-None-Match: *` creates it without a read. Throws as `replaceEntity` and `createEntity`
 * do, but for `not-found`: `etag-mismatch` if the conditions do not hold.
 */
export async function putEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  input: unknown,
  conditions: Conditions = {},
): Promise<Put> {
  const unread = hasDerived(entity, input) ? undefined : unreadState(entity, key, conditions);
  if (unread) {
    const after = validate(entity, withKey(entity, key, input));
    checkKeyKept(entity, key, after);
    return { ...(await commitUnread(engine, entity, { before: unread, after })), isCreated: false };
  }
  const mustBeNew = conditions.ifNoneMatch?.trim() === '*';
  for (let attempt = 1; ; attempt += 1) {
    const replaced =
      !mustBeNew && (await unlessCode('not-found', replaceEntity(engine, entity, key, input, conditions)));
    if (replaced) return { ...replaced, isCreated: false };
    checkConditions({ ifMatch: conditions.ifMatch }, undefined);
    const given = withKey(entity, key, input);
    checkKeyKept(entity, key, validate(entity, given));
    try {
      return { ...(await createEntity(engine, entity, given)), isCreated: true };
    } catch (error) {
      // The entity has been created since, unless the row is of another kind.
      if (!hasCode(error, 'duplicate-key') && !(mustBeNew && hasCode(error, 'duplicate-value'))) throw error;
      const found = await readLive(engine, entity, addressOf(entity, key));
      if (found) checkConditions(conditions, found.etag);
      if (!found || attempt === MAX_PUTS) throw error;
    }
  }
}

/**
 * Changes some fields of an entity; null removes a field (RFC 7396). Throws as `changeEntity` does, and `invalid-input` for an
 * encrypted field, which can only be replaced with the whole entity.
 */
export function patchEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  patch: unknown,
  conditions: Conditions = {},
): Promise<Stored> {
  const options = { ...conditions, fields: Object.keys(Object(patch)), isWhole: true };
  return changeEntity(engine, entity, key, options, (current, isRefused, unread) => {
    if (isRefused) throw notFound(entity, key);
    return patched(engine, entity, { key, input: patch, current, unread });
  });
}

/** The values to store when `input` changes some fields of the entity. */
export function patched(engine: Engine, entity: Entity, { key, input, current, unread = {} }: Given): Promise<Values> {
  const copies = decidedFields(entity);
  const given = withoutCopies(entity, withKey(entity, key, input), current);
  refusePatch(entity, Object.keys(given));
  // References are kept unless their field is written.
  const references = referenceFields(entity).filter((field) => isReference(current[field]));
  const held = omit(pick(current, references), Object.keys(given));
  const merged = Object.entries({ ...omit(current, [...copies, ...references]), ...given });
  const left = merged.filter(([field, value]) => value !== null || copies.includes(field));
  const changed = validate(entity, Object.fromEntries(left), { ...held, ...unread });
  const known = omit(changed, Object.keys(unread));
  return toStored(engine, entity, { ...pick(current, keptFields(entity)), ...known }, current);
}

/** Changes the given fields of an entity. Returns only the new ETag, so that a merge without a read is possible. */
export async function mergeEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  patch: unknown,
  conditions: Conditions = {},
): Promise<Pick<Stored, 'etag'>> {
  const before = unreadState(entity, key, conditions);
  const after = before && mergeable(entity, key, patch);
  if (!after) return patchEntity(engine, entity, key, patch, conditions);
  return commitUnread(engine, entity, { before, after, isPartial: true });
}

/** Deletes an entity. Throws as `changeEntity` does. */
export async function deleteEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  conditions: Conditions = {},
): Promise<void> {
  const before = unreadState(entity, key, conditions);
  if (before) await commitUnread(engine, entity, { before, after: undefined });
  else await changeEntity(engine, entity, key, wholly(entity, conditions), async () => undefined);
}

/**
 * The state from which a write without a read is planned. Undefined if more than the row may follow from the write, or if
 * storage cannot check the conditions.
 */
export function unreadState(entity: Entity, key: Values, { ifMatch, ifNoneMatch }: Conditions): Unread | undefined {
  if (!isOneRow(entity) || ifNoneMatch !== undefined) return undefined;
  if (ifMatch === undefined) return { state: 'unread', etag: undefined, key };
  const etag = singleEtag(ifMatch);
  return etag === undefined ? undefined : { state: 'unread', etag, key };
}

/**
 * The fields of a patch that storage can merge into a row, validated. Undefined if the result depends on the stored fields: a
 * field is removed, a rule of the schema spans fields, a field is derived, the kind decides the fields, a row may be of an
 * earlier version, or clients may have written it.
 */
export function mergeable(entity: Entity, key: Values, patch: unknown): Values | undefined {
  const { schema, union, derived, version } = entity;
  const hasRules = (schema.def.checks ?? []).length > 0;
  if (hasRules || union || version > 1 || Object.keys(derived).length > 0 || isWrittenByClients(entity))
    return undefined;
  const given = omit(withKey(entity, key, patch), entity.keyFields);
  const values = Object.values(given);
  if (values.length === 0 || values.some((value) => value === null || value === undefined)) return undefined;
  return validateFields(entity, given);
}

async function commitUnread(
  engine: Engine,
  entity: Entity,
  change: { readonly before: Unread; readonly after: Values | undefined; readonly isPartial?: boolean },
): Promise<Stored> {
  checkWritable(entity, change.before.key, engine.now());
  const [stored = NOTHING] = await commit(engine, entity, [
    { ...change, address: addressOf(entity, change.before.key) },
  ]);
  return stored;
}

/** True if the body repeats a derived field, which must then equal the stored one. */
function hasDerived({ derived }: Entity, input: unknown): boolean {
  return typeof input === 'object' && input !== null && Object.keys(derived).some((field) => field in input);
}

/**
 * Reads an entity, calls `change`, and writes under the ETag that was read. Retries after concurrent changes while `conditions`
 * hold; changes of one process run one after the other. An unchanged entity is not written. For a row that judge-row.ts rejects,
 * `change` gets no values: such a row can be deleted or replaced as a whole. Throws `not-found`, `etag-mismatch`, `busy`, and the
 * errors of `change` and of the write.
 */
export async function changeEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  { isUpkeep, fields, isWhole, ...conditions }: Conditions & Pick<Change, 'isUpkeep'> & EntityRowOptions,
  change: (current: Values, isRefused: boolean, unread: Values) => Promise<Values | undefined>,
): Promise<Stored> {
  const address = addressOf(entity, key);
  const abandoned = new Set<string>();
  const until = engine.now() + PATIENCE_MS;
  const untilDone = async (): Promise<Stored> => {
    for (let attempt = 1; engine.now() < until; attempt += 1) {
      const judged = await readJudged(engine, entity, address, {
        fields: fields && withDefaultFields(entity, fields),
        isWhole,
      });
      if (!judged || judged.is === 'other') throw notFound(entity, key);
      if (!isUpkeep) checkWritable(entity, key, engine.now());
      const before = judged.snapshot;
      checkConditions(conditions, before.etag);
      if (before.system.MovingFrom) throw busy('The entity is being moved to this partition.');
      const after = await change(before.values, judged.is === 'invalid', unreadFields(entity, before));
      if (after) checkKeyKept(entity, key, after);
      if (isDeepStrictEqual(after, before.values)) return before;
      try {
        const [stored = NOTHING] = await commit(engine, entity, [{ address, before, after, isUpkeep }], { abandoned });
        return stored;
      } catch (error) {
        if (!(error instanceof EntityChanged)) throw error;
        await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
      }
    }
    throw busy('Other requests keep changing the same entity.');
  };
  return runExclusive(engine.storage, JSON.stringify(address), untilDone);
}

/** The fields in further rows that were not read, without their values. They are valid as they are stored. */
export function unreadFields(entity: Entity, { system, further }: Live): Values {
  const names = Object.keys(listedRows(system)).filter((name) => !further?.has(name));
  const groups = new Set(names.map(groupOfFurtherRow));
  const isUnread = (field: string) => groupsToRead(entity, [field]).some((group) => groups.has(group));
  const fields = apartFields(entity).filter(isUnread);
  return Object.fromEntries(fields.map((field) => [field, undefined]));
}

/** For a change of the whole entity: all its rows are read. */
function wholly({ columns }: Entity, conditions: Conditions): Conditions & EntityRowOptions {
  return { ...conditions, fields: Object.keys(columns) };
}

/** Throws if a pattern cannot store an entity with these values, or with this key, now. */
export function checkWritable(entity: Entity, values: Values, now: number): void {
  for (const pattern of entity.patterns) pattern.check?.(entity, values, now);
}

function refusePatch(entity: Entity, fields: readonly string[]): void {
  for (const pattern of entity.patterns) {
    const error = pattern.refusePatch?.(entity, fields);
    if (error) throw error;
  }
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

/** The value as it is stored, such as an instant with milliseconds. Undefined for an invalid value. */
function normalize(entity: Entity, field: string, value: unknown): unknown {
  const schema = entity.schema.shape[field] as z.ZodType | undefined;
  return schema?.safeParse(value).data;
}

/** A change must not change a derived field of the key. */
export function checkKeyKept(entity: Entity, key: Values, after: Values): void {
  const field = entity.keyFields.find((name) => after[name] !== key[name]);
  if (field === undefined) return;
  throw new RowkeyError(
    'invalid-input',
    `"${field}" is part of the key; the fields that it is derived from cannot be changed.`,
    { field },
  );
}

/** Fields that only the engine writes are accepted in a body if they are unchanged. */
function withoutCopies(entity: Entity, given: Values, current: Values): Values {
  return omit(
    given,
    decidedFields(entity).filter((field) => given[field] === current[field]),
  );
}

function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof RowkeyError && error.code === code;
}

async function unlessCode<Result>(code: ErrorCode, call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    if (hasCode(error, code)) return undefined;
    throw error;
  }
}
