import pMap from 'p-map';
import { limitOf, resolveRule } from '../access/limit.ts';
import { canRead, hiddenFields, isSteward } from '../access/rule.ts';
import { hasCode } from '../base/errors.ts';
import { omit, pick, type Stored, type Values } from '../base/values.ts';
import { isWithin } from '../define/codec/limit.ts';
import { withKeyOfReferences } from '../define/codec/query.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { addressOf } from '../define/places/index-entries.ts';
import { isNoted, noteChange } from '../engine/note-change.ts';
import { type Page, readEntity } from '../engine/read/retrieve.ts';
import { BlobGone } from '../engine/read/text-blobs.ts';
import { unreadableField } from '../engine/read/unreadable-field.ts';
import { toPlain } from '../engine/write/stored-values.ts';
import type { View } from './operation.ts';

/** What is read is opened for a caller, over HTTP or in process: decrypted, and without the fields that the caller may not see. */

/** Opens a page that was read from storage, with only the selected fields. */
export async function openPage(
  view: View,
  entity: Entity,
  { items, next }: Page,
  select?: readonly string[],
): Promise<Page> {
  if (!select) return { items: await openList(view, entity, items), next };
  const list = await openList(view, entity, items, withKeyOfReferences(entity, select));
  return { items: list.map((values) => pick(values, select)), next };
}

const OPEN_CONCURRENCY = 8;

/**
 * Decrypts fields and loads texts from blobs, only of the selected fields; of all without `select`. Throws `needs-repair`, which names
 * the first field that fails.
 */
export async function openValues(
  view: View,
  entity: Entity,
  values: Values,
  {
    select,
    hidden,
  }: {
    readonly select?: readonly string[] | undefined;
    /** The result of `hiddenIn`, if it is known. */
    readonly hidden?: readonly string[] | undefined;
  } = {},
): Promise<Values> {
  // The fields that decide what is hidden may not be selected.
  const shown = omit(values, hidden ?? (await hiddenIn(view, entity, values)));
  const read = select ? pick(shown, withKeyOfReferences(entity, select)) : shown;
  const opened = await open(view, entity, read, (field) => {
    throw unreadableField(entity, field, values);
  });
  return select ? pick(opened, select) : opened;
}

/**
 * Opens the values, with null for a field that fails, so that it hides neither other entities nor the success of a write. A field
 * without a value is absent, and writes reject null, so null is unambiguous.
 */
async function openWithGaps(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, omit(values, await hiddenIn(view, entity, values)), () => null);
}

/**
 * The values that the rules compare with the caller. For a row of the past, those of the present one: rules hold as of now, and a caller who does
 * not reach a row any more does not reach what it was. None for a row that is gone, which no rule on rows reaches.
 */
export async function ruledValues({ engine: { present } }: View, entity: Entity, values: Values): Promise<Values> {
  if (!present) return values;
  try {
    return (await readEntity(present, entity, pick(values, entity.keyFields))).values;
  } catch (error) {
    if (hasCode(error, 'not-found')) return {};
    throw error;
  }
}

/** The fields of this row that the caller may not read. */
export async function hiddenIn(view: View, entity: Entity, values: Values): Promise<readonly string[]> {
  const hidden = view.caller ? hiddenFields(entity, view.caller) : [];
  // Most callers may read every field, so no rule has to be resolved.
  return hidden.length === 0 ? hidden : (await resolveHidden(view, entity))(values);
}

/** Resolves the rules of restricted fields once for all rows of a list. */
async function resolveHidden(view: View, entity: Entity): Promise<(values: Values) => Promise<readonly string[]>> {
  if (!view.caller) return async () => [];
  const hidden = hiddenFields(entity, view.caller);
  const { unveiled = {} } = entity.access;
  const limits = new Map(
    await Promise.all(
      hidden.map(
        async (field) => [field, unveiled[field] ? await resolveRule(view, entity, unveiled[field]) : []] as const,
      ),
    ),
  );
  const hasRules = [...limits.values()].some((limit) => limit && limit.length > 0);
  return async (values) => {
    const ruled = hasRules ? await ruledValues(view, entity, values) : values;
    return hidden.filter((field) => !isWithin(limits.get(field), ruled));
  };
}

/** What a write returns: the entity, or only its key for a caller who may not read the entity. One that changed nothing is a read by a steward. */
export async function openForWriter<Of extends Stored>(view: View, entity: Entity, stored: Of): Promise<Of> {
  const { values } = stored;
  if (view.caller && isSteward(entity, view.caller)) {
    const address = addressOf(entity, values);
    if (!isNoted(address)) noteChange(view.engine, { operation: 'read', entity: entity.name, address });
  }
  const isReader =
    !view.caller || (canRead(entity, view.caller) && isWithin(await limitOf(view, entity, 'read'), values));
  return { ...stored, values: isReader ? await openWithGaps(view, entity, values) : pick(values, entity.keyFields) };
}

/** Opens the values of each entity of a list, or only these fields, with null for one that fails. Keeps the order. */
async function openList(
  view: View,
  entity: Entity,
  list: readonly Values[],
  fields?: readonly string[],
): Promise<Values[]> {
  if (list.length === 0) return [];
  const hiddenOf = await resolveHidden(view, entity);
  const toOpened = async (values: Values) => {
    const read = fields ? pick(values, fields) : values;
    // The present row is found by fields of the key, which may not be selected.
    const hidden = await hiddenOf(view.engine.present ? values : read);
    return open(view, entity, omit(read, hidden), () => null);
  };
  return pMap(list, toOpened, { concurrency: OPEN_CONCURRENCY });
}

/** The values have no field that the caller may not see. Throws `BlobGone` if the blob may only have been replaced. */
function open(view: View, entity: Entity, values: Values, onFailure: (field: string) => null): Promise<Values> {
  const { engine, isLastAttempt } = view;
  return toPlain(engine, entity, values, (field, error) => {
    if (error instanceof BlobGone && !isLastAttempt) throw error;
    return onFailure(field);
  });
}
