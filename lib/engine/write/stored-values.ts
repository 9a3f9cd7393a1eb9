import pMap from 'p-map';
import { type Entity, pick, type Values } from '../../define/entity.ts';
import { fitsRow } from '../../define/entity-codec.ts';
import { addressOf } from '../../define/index-entries.ts';
import { isInBlob, isSealed } from '../../define/reference.ts';
import { open, SealBroken, seal } from '../../patterns/encrypted-properties.ts';
import { BlobGone, copyAttachments, hasText, loadText, sha256, storeText } from '../../patterns/large-entities.ts';
import type { Address } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';

/**
 * Between what callers write and read and what a row holds: a field that is encrypted is sealed, and a text that is too
 * large for the row is in a blob. In the engine such a value is a reference, which is passed on as it is.
 */

const FIELDS_CONCURRENCY = 8;

/** The values as a row holds them; what is as in `current`, as it was stored, stays the same. */
export async function toStored(engine: Engine, entity: Entity, values: Values, current: Values = {}): Promise<Values> {
  if (entity.encrypted.length === 0 && entity.large.length === 0) return values;
  const address = addressOf(entity, values);
  return {
    ...values,
    ...(await sealed(engine, entity, values, current)),
    ...(await texts(engine, entity, address, { values, current })),
  };
}

async function sealed(engine: Engine, entity: Entity, values: Values, current: Values): Promise<Values> {
  const plain: Record<string, string> = {};
  for (const field of entity.encrypted) {
    const value = values[field];
    if (typeof value === 'string') plain[field] = value;
  }
  const fields = Object.keys(plain);
  if (fields.length === 0) return {};
  // What does not open is not the same.
  const before = { ...pick(values, entity.keyFields), ...pick(current, fields) };
  const opened = await toPlain(engine, entity, before, () => undefined);
  const isSame = fields.every((field) => isSealed(current[field]) && opened[field] === plain[field]);
  return isSame ? pick(current, fields) : seal(engine, entity, values, plain);
}

async function texts(
  { storage }: Engine,
  entity: Entity,
  address: Address,
  { values, current }: { values: Values; current: Values },
): Promise<Values> {
  const stored: Record<string, unknown> = {};
  for (const field of entity.large) {
    const text = values[field];
    if (typeof text !== 'string' || fitsRow(entity, text)) continue;
    const before = current[field];
    const isSame = isInBlob(before) && before.length === text.length && before.sha256 === sha256(text);
    const isThere = isSame && (await hasText(storage, before));
    stored[field] = isThere ? before : await storeText(storage, address, field, text);
  }
  return stored;
}

/**
 * The values as callers read them. Of one that does not open, or whose blob is not there, `lost` says what is in its place
 * (undefined: the reference that it is); without it throws `BlobGone`, `SealBroken`.
 */
export async function toPlain(
  engine: Engine,
  entity: Entity,
  values: Values,
  lost: (field: string, error: Error) => null | undefined = rethrow,
): Promise<Values> {
  const plain = await pMap(
    [...entity.encrypted, ...entity.large],
    async (field) => {
      try {
        return [field, await plainOf(engine, entity, values, field)] as const;
      } catch (error) {
        if (error instanceof BlobGone || error instanceof SealBroken) return [field, lost(field, error)] as const;
        throw error;
      }
    },
    { concurrency: FIELDS_CONCURRENCY },
  );
  return { ...values, ...Object.fromEntries(plain.filter(([, text]) => text !== undefined)) };
}

function rethrow(_field: string, error: Error): never {
  throw error;
}

/** Undefined where the value is no reference. */
async function plainOf(engine: Engine, entity: Entity, values: Values, field: string): Promise<string | undefined> {
  const value = values[field];
  if (isSealed(value)) return open(engine, entity, values, { field, sealed: value });
  return isInBlob(value) ? loadText(engine.storage, value) : undefined;
}

/**
 * The same entity for another place: sealed for it, and with blobs of its own there. What does not open or is lost goes along
 * as it is, so that it is found there; where it was only replaced meanwhile, the entity is not as it was read, and comes again.
 */
export async function toPlaced(
  engine: Engine,
  entity: Entity,
  values: Values,
  there: { readonly entity: Entity; readonly to: Values },
): Promise<Values> {
  const placed = { ...(await toPlain(engine, entity, values, () => undefined)), ...there.to };
  const address = addressOf(there.entity, placed);
  const files = await copyAttachments(engine.storage, entity, values, address);
  return toStored(engine, there.entity, { ...placed, ...files });
}
