import { createHash, randomUUID } from 'node:crypto';
import type { Entity, Values } from '../define/entity.ts';
import { Attachment, type InBlob, isInBlob } from '../define/reference.ts';
import { RowkeyError } from '../errors.ts';
import { type BlobAddress, blobLength, deleteBlob, readBlob, writeBlob } from '../storage/blobs.ts';
import type { Address } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';

/**
 * Large entities pattern: what is too large for a row is a blob, and the row says which one. A blob is written once, under
 * a name of its own, before the row that refers to it, and deleted after the row that no longer does; so a reference
 * never leads to half of something. What a crash leaves behind is referred to by nothing and collected by a timer.
 */

/** Where texts and lists go that are too large for a row. */
export const LARGE_CONTAINER = 'large';

/** A reader had the row before a writer replaced the blob: reading again finds the new one. */
export class BlobGone extends Error {
  override readonly name = 'BlobGone';
}

/** Who has just written a text is answered without reading it back. */
const justStored = new WeakMap<InBlob, string>();

/** Puts a text of the row at `address` in a blob of its own. */
export async function storeText(storage: Storage, address: Address, part: string, text: string): Promise<InBlob> {
  const name = freshName(address, part);
  const content = { type: 'text/plain; charset=utf-8', metadata: referrer(address) };
  await writeBlob(storage, { container: LARGE_CONTAINER, name }, Buffer.from(text), content);
  const reference = { blob: name, length: text.length, sha256: sha256(text) };
  justStored.set(reference, text);
  return reference;
}

/** Throws `BlobGone`. */
export async function loadText(storage: Storage, reference: InBlob): Promise<string> {
  const known = justStored.get(reference);
  if (known !== undefined) return known;
  return (await bytesOf(storage, { container: LARGE_CONTAINER, name: reference.blob })).toString('utf8');
}

/** Whether the blob of a text is there: one that is lost can be stored again. */
export async function hasText(storage: Storage, { blob }: InBlob): Promise<boolean> {
  return (await blobLength(storage, { container: LARGE_CONTAINER, name: blob })) !== undefined;
}

/** The attachments of an entity that goes to `address`, each with a blob of its own there; without one that is lost. */
export async function copyAttachments(
  storage: Storage,
  entity: Entity,
  values: Values,
  address: Address,
): Promise<Record<string, Attachment>> {
  const copies: Record<string, Attachment> = {};
  for (const [field, { container }] of Object.entries(entity.attachments)) {
    if (values[field] === undefined) continue;
    const attachment = Attachment.parse(values[field]);
    const bytes = await readBlob(storage, { container, name: attachment.blob });
    if (!bytes) continue;
    const name = freshName(address, field);
    await writeBlob(storage, { container, name }, bytes, { type: attachment.type, metadata: referrer(address) });
    copies[field] = { ...attachment, blob: name };
  }
  return copies;
}

/** The bytes of a blob that a row refers to. Throws `BlobGone`. */
export async function bytesOf(storage: Storage, address: BlobAddress): Promise<Buffer> {
  const bytes = await readBlob(storage, address);
  if (!bytes) throw new BlobGone(`A blob of ${address.container} is not there.`);
  return bytes;
}

/** As base64url. */
export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('base64url');
}

/** A name that nothing has had before, under one for the row: a key may be longer than a name can be. */
export function freshName({ table, partition, row }: Address, part: string): string {
  return `${table}/${sha256(JSON.stringify([partition, row])).slice(0, 22)}/${part}/${randomUUID()}`;
}

/** Which row refers to a blob, kept with the blob so that one that no row refers to can be told. */
export function referrer({ table, partition, row }: Address): Record<string, string> {
  return { table, partition: encodeURIComponent(partition), row: encodeURIComponent(row) };
}

/** The other way round, or undefined for a blob that is not of this making. */
export function referrerOf({ table, partition, row }: Readonly<Record<string, string>>): Address | undefined {
  if (table === undefined || partition === undefined || row === undefined) return undefined;
  try {
    return { table, partition: decodeURIComponent(partition), row: decodeURIComponent(row) };
  } catch {
    // A percent sign that begins no escape.
    return undefined;
  }
}

/** The blobs that an entity in this state refers to. */
export function blobsOf(entity: Entity, values: Values | undefined): BlobAddress[] {
  const texts = entity.large.flatMap((field) => {
    const value = values?.[field];
    return isInBlob(value) ? [{ container: LARGE_CONTAINER, name: value.blob }] : [];
  });
  const files = Object.entries(entity.attachments).flatMap(([field, { container }]) => {
    const value = values?.[field];
    return hasBlob(value) ? [{ container, name: value.blob }] : [];
  });
  return [...texts, ...files];
}

function hasBlob(value: unknown): value is { readonly blob: string } {
  return typeof value === 'object' && value !== null && 'blob' in value && typeof value.blob === 'string';
}

/** Deletes a text that nothing refers to any more; what cannot be deleted now is an orphan. */
export async function dropText(storage: Storage, { blob }: InBlob): Promise<void> {
  await dropOne(storage, { container: LARGE_CONTAINER, name: blob });
}

async function dropOne(storage: Storage, blob: BlobAddress): Promise<void> {
  try {
    await deleteBlob(storage, blob);
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
  }
}

/** Deletes the blobs of one state that another does not have; what cannot be deleted now is an orphan. */
export async function dropBlobs(
  storage: Storage,
  entity: Entity,
  { of, but }: { readonly of: Values | undefined; readonly but: Values | undefined },
): Promise<void> {
  const kept = new Set(blobsOf(entity, but).map(({ name }) => name));
  for (const blob of blobsOf(entity, of)) if (!kept.has(blob.name)) await dropOne(storage, blob);
}
