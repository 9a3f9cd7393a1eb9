import { hash, randomUUID } from 'node:crypto';
import { type InBlob, ReferenceBroken } from '../../define/codec/entity-codec.ts';
import { type BlobAddress, blobLength, dropBlob, readBlob, readBlobRange, writeBlob } from '../../storage/blobs.ts';
import type { Address } from '../../storage/rows.ts';
import { slotOf } from '../../storage/slots.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * Texts and files in blobs. Each blob has a unique name and is written once. The row that it belongs to is in its metadata, so
 * that a timer finds blobs that no row refers to.
 */

/** The container of texts and lists that are too large for a row. */
export const LARGE_CONTAINER = 'large';

/** A blob is missing: usually a writer replaced it after the row was read. Reading again then finds the new one. */
export class BlobGone extends ReferenceBroken {
  override readonly name = 'BlobGone';
}

/** Texts that this process has just written, so that they are returned without reading the blob. */
const justStored = new WeakMap<InBlob, string>();

/** Writes a text of the row at `address` to a new blob. */
export async function storeText(storage: Storage, address: Address, part: string, text: string): Promise<InBlob> {
  const name = createBlobName(address, part);
  const content = { type: 'text/plain; charset=utf-8', metadata: toReferrer(address) };
  await writeBlob(storage, { container: LARGE_CONTAINER, name }, Buffer.from(text), content);
  const reference = { blob: name, length: text.length, sha256: sha256(text) };
  justStored.set(reference, text);
  return reference;
}

/** Throws `BlobGone`. */
export async function loadText(storage: Storage, reference: InBlob): Promise<string> {
  const known = justStored.get(reference);
  if (known !== undefined) return known;
  return (await readBytes(storage, { container: LARGE_CONTAINER, name: reference.blob })).toString('utf8');
}

/** False if the blob of a text is lost; the text can be stored again. */
export async function hasText(storage: Storage, { blob }: InBlob): Promise<boolean> {
  return (await blobLength(storage, { container: LARGE_CONTAINER, name: blob })) !== undefined;
}

export interface ByteRange {
  readonly start: number;
  readonly count: number;
}

/** Reads a blob that a row refers to, or some bytes of it. Throws `BlobGone`. */
export async function readBytes(storage: Storage, address: BlobAddress, range?: ByteRange): Promise<Buffer> {
  const bytes = range ? (await readBlobRange(storage, address, range))?.bytes : await readBlob(storage, address);
  if (!bytes) throw new BlobGone(`A blob in "${address.container}" is missing.`);
  return bytes;
}

/** Returns the hash in base64url. */
export function sha256(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url');
}

/** Returns a new, unique blob name. The key is hashed, because a key may be longer than a blob name. */
export function createBlobName(address: Address, part: string): string {
  return `${blobPrefix(address, part)}${randomUUID()}`;
}

/** The beginning of the names of all blobs for this part of a row. The slot of the partition is first, so that names do not begin alike. */
export function blobPrefix(address: Address, part: string): string {
  return `${slotOf(address.partition)}/${formerBlobPrefix(address, part)}`;
}

/** The beginning of names of earlier releases, which rows still have. */
export function formerBlobPrefix({ table, partition, row }: Address, part: string): string {
  return `${table}/${sha256(JSON.stringify([partition, row])).slice(0, 22)}/${part}/`;
}

/** Returns metadata that names the row of a blob. The timer needs it to find blobs that no row refers to. */
export function toReferrer({ table, partition, row }: Address): Record<string, string> {
  return { table, partition: encodeURIComponent(partition), row: encodeURIComponent(row) };
}

/** Reads the metadata of `toReferrer`. Undefined if another program wrote the blob. */
export function parseReferrer({ table, partition, row }: Readonly<Record<string, string>>): Address | undefined {
  if (table === undefined || partition === undefined || row === undefined) return undefined;
  try {
    return { table, partition: decodeURIComponent(partition), row: decodeURIComponent(row) };
  } catch {
    // An invalid percent escape.
    return undefined;
  }
}

/** Deletes the blob of a text. If that fails, the timer deletes the orphan later. */
export async function dropText(storage: Storage, { blob }: InBlob): Promise<void> {
  await dropBlob(storage, { container: LARGE_CONTAINER, name: blob });
}
