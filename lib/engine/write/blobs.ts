import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { type BlobAddress, deleteBlob } from '../../storage/blobs.ts';
import type { Storage } from '../../storage/storage.ts';

/** The blobs that these values refer to. */
export function blobsOf(entity: Entity, values: Values | undefined): BlobAddress[] {
  return values ? entity.patterns.flatMap((pattern) => pattern.blobs?.(entity, values) ?? []) : [];
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

/** Deletes a blob without references. */
export async function dropBlob(storage: Storage, blob: BlobAddress): Promise<void> {
  try {
    await deleteBlob(storage, blob);
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
  }
}
