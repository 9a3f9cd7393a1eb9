import { createHash, randomUUID } from 'node:crypto';
import { MAX_STRING_LENGTH, parseJson, tooLong } from '../define/codec/entity-codec.ts';
import { Attachment, BLOB_PREFIX, type InBlob, isInBlob, ReferenceBroken } from '../define/codec/reference.ts';
import { splitText } from '../define/codec/split-text.ts';
import type { Entity, Values } from '../define/entity.ts';
import { addressOf } from '../define/keys/index-entries.ts';
import type { Pattern } from '../define/pattern.ts';
import { dropBlob } from '../engine/write/blobs.ts';
import { type BlobAddress, blobLength, readBlob, writeBlob } from '../storage/blobs.ts';
import type { Address } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';

/**
 * Large entities pattern: a text that is too long for one property is split over several properties, and a longer one is
 * stored in a blob. A file is always a blob. The row has the name of the blob. Each blob has a unique name and is written once,
 * before the row that refers to it. It is deleted after the row stops referring to it. So a reader never sees a part of a
 * value. A timer deletes the blobs that a crash leaves behind.
 */
export const largeEntities: Pattern = {
  name: 'large entities',
  isUsed: ({ large, attachments }) => large.length > 0 || Object.keys(attachments).length > 0,
  keptFields: ({ attachments }) => Object.keys(attachments),
  references: ({ large }) => large,

  columns: {
    names: (entity, field) =>
      entity.large.includes(field) ? [...partNames(entity, field), blobProperty(field)] : undefined,
    encode(entity, field, value) {
      if (!entity.large.includes(field)) return undefined;
      if (isInBlob(value)) return [[blobProperty(field), JSON.stringify(value)]];
      const text = String(value);
      if (!fitsRow(entity, text)) throw tooLong(field, MAX_STRING_LENGTH * countParts(entity));
      const parts = splitText(text, MAX_STRING_LENGTH);
      return parts.length === 0 ? [[field, '']] : parts.map((part, index) => [partProperty(field, index), part]);
    },
    decode(entity, field, properties) {
      const inBlob = properties[blobProperty(field)];
      if (typeof inBlob === 'string') return parseJson(inBlob);
      if (properties[field] === undefined || properties[field] === null) return undefined;
      return partNames(entity, field)
        .map((name) => properties[name] ?? '')
        .join('');
    },
    longest: (entity) => MAX_STRING_LENGTH * countParts(entity),
  },

  async store({ storage }, entity, values, current) {
    const stored: Record<string, unknown> = {};
    for (const field of entity.large) {
      const text = values[field];
      if (typeof text !== 'string' || fitsRow(entity, text)) continue;
      const before = current[field];
      const isSame = isInBlob(before) && before.length === text.length && before.sha256 === sha256(text);
      const isThere = isSame && (await hasText(storage, before));
      stored[field] = isThere ? before : await storeText(storage, addressOf(entity, values), field, text);
    }
    return { ...values, ...stored };
  },

  async load({ storage }, _entity, values, field) {
    const value = values[field];
    return isInBlob(value) ? loadText(storage, value) : undefined;
  },

  blobs: blobsOf,
  copy: ({ storage }, entity, values, to) => copyAttachments(storage, entity, values, to),
};

/** The most properties for large texts: half of the size of an entity. All large fields share them. Longer texts go to a blob. */
const MAX_PARTS = 8;

/** True if the row holds the text, in one property or in several. */
function fitsRow(entity: Entity, text: string): boolean {
  // A part may be one code unit shorter, because a surrogate pair is never split.
  return text.length <= (MAX_STRING_LENGTH - 1) * countParts(entity);
}

function countParts({ large }: Entity): number {
  return Math.max(1, Math.floor(MAX_PARTS / Math.max(1, large.length)));
}

function partNames(entity: Entity, field: string): string[] {
  return Array.from({ length: countParts(entity) }, (_, index) => partProperty(field, index));
}

function partProperty(field: string, index: number): string {
  return index === 0 ? field : `Part${index + 1}_${field}`;
}

function blobProperty(field: string): string {
  return `${BLOB_PREFIX}${field}`;
}

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
async function hasText(storage: Storage, { blob }: InBlob): Promise<boolean> {
  return (await blobLength(storage, { container: LARGE_CONTAINER, name: blob })) !== undefined;
}

/** Copies the blobs of attachments for an entity that moves to `address`. Omits attachments whose blob is missing. */
async function copyAttachments(
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
    const name = createBlobName(address, field);
    await writeBlob(storage, { container, name }, bytes, { type: attachment.type, metadata: toReferrer(address) });
    copies[field] = { ...attachment, blob: name };
  }
  return copies;
}

/** Reads a blob that a row refers to. Throws `BlobGone`. */
export async function readBytes(storage: Storage, address: BlobAddress): Promise<Buffer> {
  const bytes = await readBlob(storage, address);
  if (!bytes) throw new BlobGone(`A blob in "${address.container}" is missing.`);
  return bytes;
}

/** As base64url. */
export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('base64url');
}

/** Returns a new, unique blob name. The key is hashed, because a key may be longer than a blob name. */
export function createBlobName({ table, partition, row }: Address, part: string): string {
  return `${table}/${sha256(JSON.stringify([partition, row])).slice(0, 22)}/${part}/${randomUUID()}`;
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

/** The blobs that an entity in this state refers to. */
function blobsOf(entity: Entity, values: Values): BlobAddress[] {
  const texts = entity.large.flatMap((field) => {
    const value = values[field];
    return isInBlob(value) ? [{ container: LARGE_CONTAINER, name: value.blob }] : [];
  });
  const files = Object.entries(entity.attachments).flatMap(([field, { container }]) => {
    const value = values[field];
    return hasBlob(value) ? [{ container, name: value.blob }] : [];
  });
  return [...texts, ...files];
}

function hasBlob(value: unknown): value is { readonly blob: string } {
  return typeof value === 'object' && value !== null && 'blob' in value && typeof value.blob === 'string';
}

/** Deletes the blob of a text. If that fails, the timer deletes the orphan later. */
export async function dropText(storage: Storage, { blob }: InBlob): Promise<void> {
  await dropBlob(storage, { container: LARGE_CONTAINER, name: blob });
}
