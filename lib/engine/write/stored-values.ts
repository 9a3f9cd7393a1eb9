import pMap from 'p-map';
import { omit, pick, type Values, WrongValue } from '../../base/values.ts';
import { isReference, ReferenceBroken, toSnapshot } from '../../define/codec/entity-codec.ts';
import { withDerived } from '../../define/codec/validation.ts';
import { liveValues, type Siblings } from '../../define/declaration/change.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { type BlobAddress, dropBlob } from '../../storage/blobs.ts';
import type { Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';
import { announceOrphans } from '../read/text-blobs.ts';
import type { Plan } from './plan.ts';

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
  for (const field in plain)
    if (plain[field] instanceof WrongValue) {
      const substitute = lost(field, new ReferenceBroken(`The stored value of "${field}" has another type.`));
      if (substitute !== undefined) plain[field] = substitute;
    }
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
  there: { readonly entity: Entity; readonly to: Values | undefined },
): Promise<Values> {
  const moved = await toMoved(engine, entity, values, there.to);
  const changed = Object.keys({ ...there.to, ...(there.to ? entity.derived : {}) });
  const address = addressOf(there.entity, moved);
  let copies: Values = {};
  for (const { stored } of entity.features)
    copies = { ...copies, ...(await stored?.blobs?.copy(engine, entity, values, address)) };
  // A ciphertext is bound to the key under which it was stored.
  const others = await toPlain(engine, entity, omit(values, Object.keys(copies)), () => undefined);
  return toStored(engine, there.entity, { ...omit(others, changed), ...pick(moved, changed), ...copies });
}

/**
 * The values after a move, which changes the fields `to` and computes the derived fields again; the same values without `to`. A text in a blob is
 * read for the functions of derived fields. If the blob is lost, they stay as they are.
 */
export async function toMoved(engine: Engine, entity: Entity, values: Values, to: Values | undefined): Promise<Values> {
  const moved = { ...values, ...to };
  if (!to || Object.keys(entity.derived).length === 0) return moved;
  const derived = await findDerived(engine, entity, moved);
  return derived ? { ...omit(moved, Object.keys(entity.derived)), ...derived } : moved;
}

/** The derived fields that these values have; undefined if a text that they may be computed from is lost. */
export async function findDerived(engine: Engine, entity: Entity, values: Values): Promise<Values | undefined> {
  let isLost = false;
  // No function sees an encrypted field.
  const plain = await toPlain(engine, entity, omit(values, entity.encrypted), () => {
    isLost = true;
    return undefined;
  });
  return isLost ? undefined : pick(withDerived(entity, plain), Object.keys(entity.derived));
}

/** The blobs that these values refer to. */
export function blobsOf(entity: Entity, values: Values | undefined): BlobAddress[] {
  return values ? entity.features.flatMap(({ stored }) => stored?.blobs?.of(entity, values) ?? []) : [];
}

/**
 * Announces the blobs to which no row refers after these changes: those of the entities, and those of rows that go with them, such as
 * children. The lists among the rows are announced when they are converted: see `ListForm`.
 */
export async function announceLeft(
  { storage }: Engine,
  changes: readonly EntityChange[],
  { plan: { actions }, siblings }: { readonly plan: Plan; readonly siblings: Siblings },
): Promise<void> {
  for (const { entity, address, before, after } of changes)
    if (before.state === 'live')
      await announceOrphans(storage, address, blobsBut(entity, { of: before.values, but: after }));
  const kinds = [...new Set(changes.flatMap(({ entity }) => entity.children))];
  if (!kinds.some(hasBlobs)) return;
  const replaced = new Set(actions.flatMap(({ action }) => (action.kind === 'merge' ? [] : [action.row])));
  const left = [...siblings.values()].filter(({ row }) => replaced.has(row));
  if (left.length > 0) await announceBlobsOf(storage, kinds, left);
}

/** Announces the blobs of rows of these kinds. */
export async function announceBlobsOf(storage: Storage, kinds: readonly Entity[], rows: readonly Row[]): Promise<void> {
  for (const row of rows) {
    const kind = kinds.find(({ name }) => name === row.properties.EntityType);
    if (kind && hasBlobs(kind)) await announceOrphans(storage, row, blobsOf(kind, liveValues(toSnapshot(kind, row))));
  }
}

function hasBlobs({ features }: Entity): boolean {
  return features.some(({ stored }) => stored?.blobs);
}

/** Deletes the blobs that `of` refers to and `but` does not. If the deletion fails, the blob is an orphan, and was announced. */
export async function dropBlobs(storage: Storage, entity: Entity, values: ValuesLeft): Promise<void> {
  for (const blob of blobsBut(entity, values)) await dropBlob(storage, blob);
}

interface ValuesLeft {
  readonly of: Values | undefined;
  readonly but: Values | undefined;
}

function blobsBut(entity: Entity, { of, but }: ValuesLeft): BlobAddress[] {
  const left = blobsOf(entity, of);
  if (left.length === 0) return left;
  const kept = new Set(blobsOf(entity, but).map(({ name }) => name));
  return left.filter(({ name }) => !kept.has(name));
}
