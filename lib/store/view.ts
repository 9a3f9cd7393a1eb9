import pMap from 'p-map';
import type { Entity } from '../define/entity.ts';
import { omit, type Values } from '../define/values.ts';
import type { Engine } from '../engine/engine.ts';
import { toPlain } from '../engine/write/stored-values.ts';
import { RowkeyError } from '../errors.ts';
import { BlobGone } from '../pattern-helpers/text-blobs.ts';

/** How entities are read from storage for one reader. */
export interface View {
  readonly engine: Engine;
  /** The fields of an entity that the reader may not see: they are left out before anything is opened. */
  readonly hiddenOf: (entity: Entity) => readonly string[];
  /** True on the last retry, when a missing blob means data loss and not a row that was replaced since it was read. */
  readonly isLastAttempt: boolean;
}

const OPEN_CONCURRENCY = 8;
const READ_ATTEMPTS = 4;

/** Decrypts the encrypted fields and loads the texts that are in blobs. Throws `needs-repair` naming the first field that fails. */
export function openValues(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, values, (field) => {
    throw new RowkeyError('needs-repair', `"${field}" of an entity of ${entity.name} cannot be read.`, {
      field,
    });
  });
}

/**
 * The same with null for a field that fails, so that it hides no other entity, nor that a write was done. A field without a
 * value is absent, and a write refuses null.
 */
export function openWithGaps(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, values, () => null);
}

/** The same for a list, in its order. */
export function openList(view: View, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => openWithGaps(view, entity, values), { concurrency: OPEN_CONCURRENCY });
}

/** Throws `BlobGone` if the blob may only have been replaced. */
function open(
  { engine, hiddenOf, isLastAttempt }: View,
  entity: Entity,
  values: Values,
  onFailure: (field: string) => null,
): Promise<Values> {
  return toPlain(engine, entity, omit(values, hiddenOf(entity)), (field, error) => {
    if (error instanceof BlobGone && !isLastAttempt) throw error;
    return onFailure(field);
  });
}

/**
 * Reads again from the row if a blob was replaced between the read of the row and the read of the blob. Throws `needs-repair`
 * if a blob is missing every time.
 */
export async function rereadIfBlobGone<Result>(
  subject: string,
  read: (isLastAttempt: boolean) => Promise<Result>,
  { attempts = READ_ATTEMPTS }: { readonly attempts?: number | undefined } = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    const isLastAttempt = attempt >= attempts;
    try {
      return await read(isLastAttempt);
    } catch (error) {
      if (!(error instanceof BlobGone)) throw error;
      if (isLastAttempt) throw new RowkeyError('needs-repair', `${subject}: a blob is lost.`, {}, error);
    }
  }
}
