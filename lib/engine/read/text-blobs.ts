import { hash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
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
export async function storeText(
  storage: Storage,
  address: Address,
  part: string,
  text: string,
  { isCompressed = false } = {},
): Promise<InBlob> {
  const name = createBlobName(address, part);
  const plain = Buffer.from(text);
  const bytes = isCompressed ? await deflate(plain) : plain;
  // Of a text that cannot be compressed, the result is longer.
  const encoding = bytes.byteLength < plain.byteLength ? ({ encoding: 'br' } as const) : {};
  const content = { type: 'text/plain; charset=utf-8', metadata: toReferrer(address), ...encoding };
  await writeBlob(storage, { container: LARGE_CONTAINER, name }, 'encoding' in encoding ? bytes : plain, content);
  const reference = { blob: name, length: text.length, sha256: sha256(text), ...encoding };
  justStored.set(reference, text);
  return reference;
}

/** A higher quality takes ten times as long, for a tenth fewer bytes. */
const QUALITY = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

function deflate(bytes: Uint8Array): Promise<Buffer> {
  return promisify(brotliCompress)(bytes, QUALITY);
}

/** Throws `BlobGone`, and `ReferenceBroken` for a compressed text that is not what the row says. */
export async function loadText(storage: Storage, reference: InBlob): Promise<string> {
  const known = justStored.get(reference);
  if (known !== undefined) return known;
  const bytes = await readBytes(storage, { container: LARGE_CONTAINER, name: reference.blob });
  return reference.encoding === undefined ? bytes.toString('utf8') : inflate(bytes, reference);
}

/** A code unit of UTF-16 takes at most three bytes in UTF-8. */
const BYTES_PER_UNIT = 3;
/** More than a request can send. */
const MAX_TEXT_BYTES = 100_663_296;

/** A few bytes could become gigabytes: no more than the length in the row is inflated. */
async function inflate(bytes: Uint8Array, { length }: InBlob): Promise<string> {
  const maxOutputLength = Math.min(MAX_TEXT_BYTES, Math.max(1, BYTES_PER_UNIT * length));
  const text = await promisify(brotliDecompress)(bytes, { maxOutputLength }).then(
    (plain) => plain.toString('utf8'),
    () => undefined,
  );
  if (text?.length !== length) throw new ReferenceBroken('A compressed text in a blob is not as long as its row says.');
  return text;
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
