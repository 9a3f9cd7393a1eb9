import { hash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import pMap from 'p-map';
import { DAY_MS } from '../../base/time.ts';
import { type InBlob, ReferenceBroken } from '../../define/codec/entity-codec.ts';
import {
  type BlobAddress,
  blobLength,
  dropBlob,
  readBlob,
  readBlobRange,
  touchBlob,
  writeBlob,
} from '../../storage/blobs.ts';
import type { Address } from '../../storage/rows.ts';
import { hashKey, slotOf } from '../../storage/slots.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * Texts and files in blobs. Each blob has a unique name and is written once. The row that it belongs to is in its metadata, so
 * that a timer finds blobs that no row refers to. It asks for the row of a blob once, when the blob is a day old. So a write announces
 * each older blob before its row stops referring to it: see `announceOrphans`.
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

/**
 * Returns a new, unique blob name. The key is hashed, because a key may be longer than a blob name. The last part is a UUID of version 7,
 * which has the time: https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-7
 */
export function createBlobName(address: Address, part: string): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return blobName(address, part, `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`);
}

/** The name of a blob with a unique id. From it follows in which account the blob is: see `placeOfBlob`. */
export function blobName(address: Address, part: string, id: string): string {
  return `${blobPrefix(address, part)}${hashKey(address.partition).join('')}/${id}`;
}

/** A blob without a row is deleted at this age: the write that uploaded or announced it has ended long before. */
export const ORPHAN_AFTER_MS = DAY_MS;
/** A younger blob needs no announcement: the timer asks for its row after the write. Half of the day is left for clocks that differ. */
const YOUNG_MS = ORPHAN_AFTER_MS / 2;
const TIME_IN_NAME = /([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/;
const ANNOUNCE_CONCURRENCY = 16;

/**
 * Announces that a row is about to lose its references to these blobs, before it does: the timer then asks for the row a day later, and
 * deletes the blobs even if the process that should do so dies. One transaction for each blob that is older than half a day. Without a row, the
 * timer asks for the row that the blob already names: one more transaction.
 */
export async function announceOrphans(
  storage: Storage,
  row: Address | undefined,
  blobs: readonly BlobAddress[],
): Promise<void> {
  const old = blobs.filter(({ name }) => !isYoung(name));
  await pMap(old, (blob) => touchBlob(storage, blob, row && toReferrer(row)), { concurrency: ANNOUNCE_CONCURRENCY });
}

/** False for names of earlier releases, which have no time. */
function isYoung(name: string): boolean {
  const [, high, low] = TIME_IN_NAME.exec(name) ?? [];
  return high !== undefined && Math.abs(Date.now() - Number.parseInt(`${high}${low}`, 16)) < YOUNG_MS;
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

/** Announces that a row is about to lose its reference to a text. */
export async function announceText(storage: Storage, row: Address, { blob }: InBlob): Promise<void> {
  await announceOrphans(storage, row, [{ container: LARGE_CONTAINER, name: blob }]);
}

/** Deletes the blob of a text. If that fails, the timer deletes the orphan later. */
export async function dropText(storage: Storage, { blob }: InBlob): Promise<void> {
  await dropBlob(storage, { container: LARGE_CONTAINER, name: blob });
}
