import { busy, type ErrorCode, hasCode, RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import type { Values } from '../../base/values.ts';
import { groupOfFurtherRow, groupsToRead, listedRows } from '../../define/codec/further-rows.ts';
import { checkTogether } from '../../define/codec/validation.ts';
import { type Change, type Live, type Unread, whyClosed } from '../../define/declaration/change.ts';
import { type Conditions, checkConditions } from '../../define/declaration/conditions.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import { hasExpired } from '../../define/declaration/expiry.ts';
import type { Row } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { type EntityRowOptions, notFound, requireWritable } from '../read/entity-rows.ts';
import { toPlain } from './stored-values.ts';

/**
 * What a write must pass between the read of its entity and its plan. The order is that of `CHECKS`, for every write: of two checks that
 * refuse, the first one answers.
 */

/** The stored entity from which a write begins. */
export interface Current {
  readonly values: Values;
  /** True for a row that `judgeRow` rejects. It has no values, and can be deleted or replaced as a whole. */
  readonly isRefused: boolean;
  /** The fields in further rows that were not read: see `unreadFields`. */
  readonly unread: Values;
}

export interface EntityWrite
  extends Pick<EntityChange, 'entity' | 'address' | 'position' | 'incarnation' | 'isUpkeep' | 'refreshesCopies'> {
  /** The values of the key fields. */
  readonly key: Values;
  /** What the address must have: no entity, an entity, or either of them. */
  readonly expects: 'none' | 'one' | 'any';
  readonly conditions: Conditions;
  /** The change, if it follows without a read. */
  readonly unread?: (Pick<Change, 'after' | 'isPartial'> & { readonly before: Unread }) | undefined;
  /** The rows to read; undefined if the transaction itself finds out whether there is an entity. */
  readonly read: EntityRowOptions | undefined;
  /** The row of the entity, if it has been read already. Dropped when it is stale. */
  found?: Row | undefined;
  /** True if it needs a transaction of its own. */
  readonly isAlone?: boolean;
  readonly isDelete?: boolean;
  /** True for a write of the engine that finds an expired entity. For others it is absent. */
  readonly isOfExpired?: boolean;
  /** True for a move or an archive, which the queue executes: it waits for other operations, and a move changes the key. */
  readonly isTransfer?: boolean;
  /** The values after the write, or undefined to delete the entity. Without `current` there is no entity. */
  next(current: Current | undefined): Promise<Values | undefined>;
  /** The values as they are stored, in place of the values `current`; without it, as `next` returns them. */
  store?(values: Values, current: Values | undefined): Promise<Values>;
}

/** A write with what it has found. */
export interface CheckedWrite {
  readonly engine: Engine;
  readonly write: EntityWrite;
  /** The entity; undefined if there is none, and for one of which the write must not tell. */
  readonly current: Live | undefined;
  readonly isRefused: boolean;
  /** The values after the write, once they are known; undefined for a delete. */
  after: Values | undefined;
  /** True for a write that the rules let pass because it changes nothing. */
  isRepeat?: boolean;
}

interface Check {
  /** What must be true, for docs/internals/consistency.md. */
  readonly requires: string;
  readonly otherwise: ErrorCode;
  /** What a refused caller learns. */
  readonly tells: string;
  check(write: CheckedWrite): void | Promise<void>;
}

/** In this order. docs/internals/consistency.md lists them. */
export const CHECKS: readonly Check[] = [
  {
    requires: 'the entities are at the key of the declaration',
    otherwise: 'busy',
    tells: 'nothing of the row: all keys have this answer',
    // An entity that has left its former key was not deleted.
    check: ({ engine, write: { entity } }) => requireWritable(engine, entity),
  },
  {
    requires: 'there is an entity, unless the write may create it',
    otherwise: 'not-found',
    tells:
      'nothing: an expired entity, and one that the caller can neither read nor write, is absent here and below, also if a row of it is lost',
    check({ write: { entity, key, expects }, current }) {
      if (!current && expects === 'one') throw notFound(entity, key);
    },
  },
  {
    requires: 'the rules let the caller change the entity as it is, unless the write repeats a change',
    otherwise: 'forbidden',
    tells: 'that there is an entity, to a caller who can read it',
    async check(checked) {
      const { engine, write, current } = checked;
      const { entity, key, isDelete, isUpkeep } = write;
      if (!current || isUpkeep) return;
      try {
        engine.guard?.checkBefore(entity.name, key, isDelete ? 'delete' : 'update', current.values);
      } catch (error) {
        if (!(await isRepeat(checked))) throw error;
        Object.assign(checked, { isRepeat: true, after: current.values });
      }
    },
  },
  {
    requires: 'the conditions hold',
    otherwise: 'etag-mismatch',
    tells: 'the ETag',
    check: ({ write: { conditions }, current }) => checkConditions(conditions, current?.etag),
  },
  {
    requires: 'no operation is deleting, archiving or moving the entity',
    otherwise: 'busy',
    tells: 'the operation',
    check({ write: { isTransfer }, current }) {
      const closed = current && !isTransfer && whyClosed(current.system);
      if (closed) throw busy(closed);
    },
  },
  {
    requires: 'the body is valid, also together with the stored fields',
    otherwise: 'invalid-input',
    tells: 'that a field which only the engine sets has another value',
    async check(checked) {
      if (checked.isRepeat) return;
      const { write } = checked;
      const { entity, key } = write;
      checked.after = await nextValues(checked);
      if (checked.after && !write.isTransfer) checkKeyKept(entity, key, checked.after);
    },
  },
  {
    requires: 'the rules let the caller make the entity what it will be',
    otherwise: 'forbidden',
    tells: 'a rule',
    check({ engine, write: { entity, isUpkeep }, current, after, isRepeat }) {
      if (after && !isUpkeep && !isRepeat) engine.guard?.checkAfter(entity.name, after, current?.values);
    },
  },
  {
    requires: 'the fields pass the checks of the declaration',
    otherwise: 'invalid-input',
    tells: 'the messages of the checks that fail',
    check({ write: { entity, isUpkeep, isTransfer }, after }) {
      if (after && !isUpkeep && !isTransfer) checkTogether(entity, after);
    },
  },
  {
    requires: 'the period of the key is kept',
    otherwise: 'invalid-input',
    tells: 'the first and the last period',
    check({ engine, write: { entity, key, isUpkeep } }) {
      if (!isUpkeep) checkWritable(entity, key, engine.now());
    },
  },
];

/** False for an entity of which the write must not tell: an expired one, and one that the caller can neither write nor read. */
export function mayTellOf(
  { guard, now }: Engine,
  { entity, isDelete, isUpkeep, isOfExpired }: Pick<EntityWrite, 'entity' | 'isDelete' | 'isUpkeep' | 'isOfExpired'>,
  values: Values,
): boolean {
  if (isUpkeep) return true;
  if (!isOfExpired && hasExpired(entity, values, now())) return false;
  return !guard?.isHidden(entity.name, isDelete ? 'delete' : 'update', values);
}

function nextValues({ write, current, isRefused }: CheckedWrite): Promise<Values | undefined> {
  return write.next(current && { values: current.values, isRefused, unread: unreadFields(write.entity, current) });
}

/**
 * True for an update that leaves the row as it is, and as an update by the caller may have left it: after a change whose reply was lost, the row is no
 * longer as it must be before. The answer tells nothing, as the caller can read the row: of another one, the write knows nothing.
 */
async function isRepeat(checked: CheckedWrite): Promise<boolean> {
  const { engine, write, current } = checked;
  const { entity, store } = write;
  // The write of a file stores the file to find the values. A file is in no rule, so its repetition begins from the row as the first one does.
  if (!current || !store || !engine.guard?.canHaveLeft(entity.name, current.values)) return false;
  const toText = (values: Values) => toPlain(engine, entity, values, () => undefined);
  try {
    const after = await nextValues(checked);
    return after !== undefined && isSame(await toText(after), await toText(current.values));
  } catch (error) {
    if (error instanceof RowkeyError) return false;
    throw error;
  }
}

/** Throws if a pattern cannot store an entity with this key now. */
export function checkWritable(entity: Entity, key: Values, now: number): void {
  for (const { layout } of entity.features) layout?.periods?.check(entity, key, now);
}

/** True if the patterns can store an entity with this key now. */
export function isWritable(entity: Entity, key: Values, now: number): boolean {
  try {
    checkWritable(entity, key, now);
    return true;
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return false;
    throw error;
  }
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

/** The fields in further rows that were not read, without their values. They are valid as they are stored. */
function unreadFields(entity: Entity, { system, further }: Live): Values {
  const names = Object.keys(listedRows(system)).filter((name) => !further?.has(name));
  const groups = new Set(names.map(groupOfFurtherRow));
  const isUnread = (field: string) => groupsToRead(entity, [field]).some((group) => groups.has(group));
  const fields = entity.apartFields.filter(isUnread);
  return Object.fromEntries(fields.map((field) => [field, undefined]));
}
