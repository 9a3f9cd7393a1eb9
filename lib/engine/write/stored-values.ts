import pMap from 'p-map';
import { omit, type Values } from '../../base/values.ts';
import { isReference, ReferenceBroken } from '../../define/codec/entity-codec.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { type BlobAddress, dropBlob } from '../../storage/blobs.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';

/** Converts between the values of callers and those of rows. A pattern may store a reference instead of a value, such as one to a blob. */

const FIELDS_CONCURRENCY = 8;

/** The values to store. A value that equals the one in `current` keeps its stored form. */
export async function toStored(engine: Engine, entity: Entity, values: Values, current: Values = {}): Promise<Values> {
  let stored = values;
  for (const feature of entity.features)
    stored = (await feature.stored?.store(engine, entity, stored, current)) ?? stored;
  return stored;
}

/**
 * The values for callers. `lost` returns a substitute for a broken reference; if it returns undefined, the reference stays.
 * Without `lost`, throws `ReferenceBroken`.
 */
export async function toPlain(
  engine: Engine,
  entity: Entity,
  values: Values,
  lost: (field: string, error: Error) => null | undefined = rethrow,
): Promise<Values> {
  const plain: Record<string, unknown> = { ...values };
  const load = async (field: string) => {
    try {
      for (const { stored } of entity.features) {
        // Undefined if the value is not a reference of this feature.
        const text = await stored?.load(engine, entity, values, field);
        if (text === undefined) continue;
        plain[field] = text;
        return;
      }
    } catch (error) {
      if (!(error instanceof ReferenceBroken)) throw error;
      const substitute = lost(field, error);
      if (substitute !== undefined) plain[field] = substitute;
    }
  };
  const fields = entity.referenceFields.filter((field) => isReference(values[field]));
  if (fields.length > FIELDS_CONCURRENCY) await pMap(fields, load, { concurrency: FIELDS_CONCURRENCY });
  else await Promise.all(fields.map(load));
  return plain;
}

function rethrow(_field: string, error: Error): never {
  throw error;
}

/**
 * Returns the entity for another address, with new references. A broken reference is copied unchanged, so that the consistency
 * check finds it at the new address. If a reference is broken because the entity changed since it was read, the entity is
 * copied again.
 */
export async function toPlaced(
  engine: Engine,
  entity: Entity,
  values: Values,
  there: { readonly entity: Entity; readonly to: Values },
): Promise<Values> {
  const address = addressOf(there.entity, { ...values, ...there.to });
  let copies: Values = {};
  for (const { stored } of entity.features)
    copies = { ...copies, ...(await stored?.blobs?.copy(engine, entity, values, address)) };
  // A ciphertext is bound to the key under which it was stored.
  const others = await toPlain(engine, entity, omit(values, Object.keys(copies)), () => undefined);
  return toStored(engine, there.entity, { ...others, ...there.to, ...copies });
}

/** The blobs that these values refer to. */
export function blobsOf(entity: Entity, values: Values | undefined): BlobAddress[] {
  return values ? entity.features.flatMap(({ stored }) => stored?.blobs?.of(entity, values) ?? []) : [];
}

/** Deletes the blobs that `of` refers to and `but` does not. If the deletion fails, the blob is an orphan. */
export async function dropBlobs(
  storage: Storage,
  entity: Entity,
  { of, but }: { readonly of: Values | undefined; readonly but: Values | undefined },
): Promise<void> {
  const kept = new Set(blobsOf(entity, but).map(({ name }) => name));
  for (const blob of blobsOf(entity, of)) if (!kept.has(blob.name)) await dropBlob(storage, blob);
}
