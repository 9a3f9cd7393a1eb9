import { createHash, randomUUID } from 'node:crypto';
import { fileTypeFromBuffer } from 'file-type';
import { entityError, RowkeyError } from '../../base/errors.ts';
import { omit, type Stored, type Values } from '../../base/values.ts';
import { checkTogether } from '../../define/codec/validation.ts';
import { Attachment, type AttachmentDeclaration, readDescription } from '../../define/declaration/attachment.ts';
import { type Conditions, checkConditions } from '../../define/declaration/conditions.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { Engine } from '../../engine/engine.ts';
import { declarationOf } from '../../engine/read/entity-rows.ts';
import { readEntity } from '../../engine/read/retrieve.ts';
import {
  BlobGone,
  type ByteRange,
  blobName,
  createBlobName,
  readBytes,
  sha256,
  toReferrer,
} from '../../engine/read/text-blobs.ts';
import { changeEntity } from '../../engine/write/entity-store.ts';
import {
  type BlobAddress,
  type BlobHeaders,
  blobLength,
  copyBlob,
  deleteUpload,
  type Metadata,
  readBlobRange,
  setBlobHeaders,
  streamBlob,
  writeBlob,
} from '../../storage/blobs.ts';
import type { Address } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';

/**
 * Large entities pattern, for files: an employee's photo is a blob, and the entity has the name, the type and the size of the
 * blob. The type is detected from the bytes, never read from a header. A client may also upload a file directly to storage: it
 * gets a grant for one blob in a separate container. The API reads the beginning of the file, and storage copies it.
 */

/** The container of direct uploads. A file is emptied when it is accepted or rejected; a timer deletes empty and abandoned files. */
export const ARRIVALS_CONTAINER = 'uploads';

/** The Cache-Control of a URL or a blob that never has other bytes. */
export const IMMUTABLE = 'max-age=31536000, immutable';

/** A type is detected from the first bytes; the longest signatures are those of archives such as .docx. */
export const SAMPLE_BYTES = 65_536;

/** The errors after which an uploaded file can never be accepted. */
const REFUSALS = new Set<string>(['invalid-input', 'too-large', 'unsupported-media-type']);

/** Identifies an attachment of an entity. */
interface AttachmentKey {
  readonly entity: Entity;
  readonly key: Values;
  readonly field: string;
}

/** The ETag of a file. It depends only on the bytes, so other changes of the entity keep it. */
export function etagOf({ sha256, md5 }: Attachment): string {
  return `"${sha256 ?? md5}"`;
}

/**
 * Stores a file of an entity, and replaces the current one. The conditions apply to the file. Throws `too-large`,
 * `unsupported-media-type`, and as `changeEntity` does.
 */
export const putAttachment = inPattern(
  'large entities',
  async (
    engine: Engine,
    { entity, key, field }: AttachmentKey,
    bytes: Uint8Array,
    conditions: Conditions = {},
  ): Promise<Stored> => {
    const type = await checkFile(entity, field, bytes);
    const content = { type, bytes: bytes.byteLength, sha256: sha256(bytes) };
    return storeFile(engine, { entity, key, field }, content, {
      conditions,
      isSame: (there) => {
        const isEqual = there.md5 ? there.md5 === md5(bytes) : there.sha256 === content.sha256;
        return isEqual && there.type === type;
      },
      write(address, metadata) {
        const declaration = findDeclaration(entity, field);
        const content = { ...fileHeaders(declaration, type), metadata, tier: declaration.tier };
        return writeBlob(engine.storage, address, bytes, content);
      },
    });
  },
);

function md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('base64url');
}

interface FileSource {
  readonly conditions?: Conditions;
  /** True if the current file has the same bytes and type. */
  isSame(there: Attachment): boolean;
  write(to: BlobAddress, metadata: Metadata): Promise<void>;
}

/** Writes a file to a new blob, then refers to it from the entity. */
async function storeFile(
  engine: Engine,
  { entity, key, field }: AttachmentKey,
  content: Omit<Attachment, 'blob'>,
  { conditions = {}, isSame, write }: FileSource,
): Promise<Stored> {
  const { container } = findDeclaration(entity, field);
  const address = addressOf(await declarationOf(engine, entity), key);
  return changeEntity(engine, entity, key, {}, async (current) => {
    const there = parseAttachment(current, field);
    checkConditions(conditions, there && etagOf(there));
    const hasBlob = async (name: string) => (await blobLength(engine.storage, { container, name })) !== undefined;
    if (there && isSame(there) && (await hasBlob(there.blob))) return current;
    // A pair of before and after, or a newer check, may not let the row stay as it is. The file would be stored and left behind.
    engine.guard?.checkAfter(entity.name, current, current);
    checkTogether(entity, current);
    // Each attempt needs its own blob: an earlier one may have succeeded, and another writer may have deleted its blob since.
    const name = createBlobName(address, field);
    await write({ container, name }, toReferrer(address));
    return { ...current, [field]: { blob: name, ...content } };
  });
}

/**
 * The headers of a file's blob. A browser shows images, sounds and videos. It saves all other files, because a document could
 * contain scripts, which would run in the origin of storage. A blob never changes, so a public one may be kept.
 */
export function fileHeaders({ public: isPublic }: AttachmentDeclaration, type: string): Required<BlobHeaders> {
  const disposition = /^(image|audio|video)\//.test(type) ? 'inline' : 'attachment';
  return { type, disposition, cacheControl: isPublic ? `public, ${IMMUTABLE}` : 'private, no-cache' };
}

/** Returns the type, the size and the blob name of an attachment. Throws `not-found` if the entity has none. */
export async function describeAttachment(
  engine: Engine,
  { entity, key, field }: AttachmentKey,
  check?: (values: Values) => void,
): Promise<Attachment> {
  const { values } = await readEntity(engine, entity, key);
  check?.(values);
  if (values[field] === undefined) throw entityError('not-found', entity, key, `has no "${field}".`, { field });
  return readDescription(entity, field, values[field]);
}

/** Reads a file, or some of its bytes. Throws `BlobGone` if the file was replaced or deleted meanwhile. */
export const readAttachment = inPattern(
  'large entities',
  async (
    { storage }: Engine,
    { entity, field }: AttachmentKey,
    { blob }: Attachment,
    range?: ByteRange,
  ): Promise<Buffer> => {
    return readBytes(storage, { container: findDeclaration(entity, field).container, name: blob }, range);
  },
);

/** Throws as `readAttachment` does, without reading a byte: HEAD tells of a lost file what GET does. */
export const requireAttachment = inPattern(
  'large entities',
  async ({ storage }: Engine, { entity, field }: AttachmentKey, { blob }: Attachment): Promise<void> => {
    const { container } = findDeclaration(entity, field);
    if ((await blobLength(storage, { container, name: blob })) === undefined)
      throw new BlobGone(`A blob in "${container}" is missing.`);
  },
);

/** Removes a file; a missing file is no error. The conditions apply to the file. Throws as `changeEntity` does. */
export const removeAttachment = inPattern(
  'large entities',
  async (engine: Engine, { entity, key, field }: AttachmentKey, conditions: Conditions = {}): Promise<void> => {
    await changeEntity(engine, entity, key, {}, async (current) => {
      const there = parseAttachment(current, field);
      checkConditions(conditions, there && etagOf(there));
      return omit(current, [field]);
    });
  },
);

/** The type and size of a file that a client is going to upload. */
interface AnnouncedFile {
  readonly type: string;
  readonly bytes: number;
  readonly inBlocks?: boolean | undefined;
  /** An upload in blocks of the same file, which another signature continues. */
  readonly uploadId?: string | undefined;
}

/**
 * Returns the id of an upload, which contains the announced size and type, and the blob to upload. Throws `too-large`,
 * `unsupported-media-type`, `invalid-input`.
 */
export function announceFile(
  entity: Entity,
  key: Values,
  field: string,
  { type, bytes, inBlocks = false, uploadId: begun }: AnnouncedFile,
) {
  const { types, maxBytes } = findDeclaration(entity, field);
  if (!types.includes(type)) throw wrongType(field, types, type);
  if (bytes > maxBytes) throw tooManyBytes(field, maxBytes);
  const announced = begun === undefined ? undefined : parseUploadId(types, begun);
  if (begun !== undefined && !(inBlocks && announced?.inBlocks && announced.bytes === bytes && announced.type === type))
    throw new RowkeyError('invalid-input', 'The upload cannot be continued.', {
      field: 'uploadId',
      accepted: 'the id of an upload in blocks, with its type and its bytes',
    });
  const uploadId = begun ?? [randomUUID(), `${bytes}${inBlocks ? IN_BLOCKS : ''}`, type.replace('/', '-')].join('.');
  return { uploadId, blob: toArrivalAddress(addressOf(entity, key), field, uploadId) };
}

const IN_BLOCKS = '-blocks';

/** What was announced under an id. Undefined for a text that is no id, or has a type that is not declared. */
function parseUploadId(types: readonly string[], uploadId: string) {
  // The last part needs no pattern: it is compared with the declared types.
  const [, digits, blocks, dashed] = /^[0-9a-f-]{36}\.(\d{1,10})(-blocks)?\.(.+)$/.exec(uploadId) ?? [];
  const type = types.find((each) => each.replace('/', '-') === dashed);
  return type === undefined ? undefined : { type, bytes: Number(digits), inBlocks: blocks !== undefined };
}

/**
 * Accepts the file that was uploaded with an id. Works once for each id. Throws `not-found`, `too-large`,
 * `unsupported-media-type`, and as `changeEntity` does.
 */
export const acceptFile = inPattern(
  'large entities',
  async (engine: Engine, attachment: AttachmentKey, uploadId: string): Promise<Stored> => {
    const { entity, key, field } = attachment;
    const declaration = findDeclaration(entity, field);
    const announced = parseUploadId(declaration.types, uploadId);
    const blob = toArrivalAddress(addressOf(entity, key), field, uploadId);
    const start = announced && (await readBlobRange(engine.storage, blob, { count: SAMPLE_BYTES }));
    if (!start) throw uploadNotFound();
    const { inBlocks } = announced;
    try {
      if (start.length > announced.bytes) throw tooManyBytes(field, announced.bytes);
      const type = await detectType(entity, field, start.bytes);
      if (type !== announced.type) throw wrongType(field, [announced.type], type);
      const { length, etag } = start;
      const hashes = inBlocks ? await hashUpload(engine, blob, etag) : { md5: requireHash(field, start.md5) };
      const md5 = Buffer.from(hashes.md5).toString('base64url');
      const isSame = (there: Attachment) =>
        there.type === type && (there.md5 ? there.md5 === md5 : inBlocks && there.sha256 === hashes.sha256);
      const content = { type, bytes: length, ...(hashes.sha256 ? { sha256: hashes.sha256 } : { md5 }) };
      const stored = await storeFile(engine, attachment, content, {
        isSame,
        write: async (to, metadata) => {
          // Storage computes the hash again, because a client may have sent a wrong one; the app has computed that of blocks.
          const expected = inBlocks ? { etag } : { etag, md5: hashes.md5 };
          const options = { metadata, tier: declaration.tier, ...expected };
          if (!(await copyBlob(engine.storage, { from: blob, to }, options))) throw uploadNotFound();
          // The client chose the headers of its upload.
          await setBlobHeaders(engine.storage, to, { ...fileHeaders(declaration, type), md5: hashes.md5 });
        },
      });
      await spendUpload(engine, blob, inBlocks);
      return stored;
    } catch (error) {
      if (error instanceof RowkeyError && REFUSALS.has(error.code)) await spendUpload(engine, blob, inBlocks);
      throw error;
    }
  },
);

interface Hashes {
  readonly md5: Uint8Array;
  readonly sha256?: string;
}

function requireHash(field: string, md5: Uint8Array | undefined): Uint8Array {
  if (md5) return md5;
  throw new RowkeyError('invalid-input', `The upload of "${field}" has no MD5 hash.`, {
    field,
    accepted: 'a file that is uploaded with a single PUT, or announced with inBlocks',
  });
}

/** Reads a file that was uploaded in blocks, piece by piece: storage computes no hash of it, and the client could send a wrong one. */
async function hashUpload({ storage }: Engine, blob: BlobAddress, etag: string): Promise<Hashes> {
  const pieces = await streamBlob(storage, blob, etag);
  if (!pieces) throw uploadNotFound();
  const [md5, sha256] = [createHash('md5'), createHash('sha256')];
  for await (const piece of pieces) for (const each of [md5, sha256]) each.update(piece);
  return { md5: md5.digest(), sha256: sha256.digest('base64url') };
}

/**
 * Replaces an uploaded file with an empty blob, which is no upload. The signature can only create the blob, so it stays unusable until it
 * expires; the timer that deletes abandoned files deletes the empty blob. A signature for blocks could replace an empty blob as well, so
 * that file is deleted.
 */
function spendUpload({ storage }: Engine, blob: BlobAddress, inBlocks: boolean): Promise<void> {
  if (inBlocks) return deleteUpload(storage, blob);
  return writeBlob(storage, blob, new Uint8Array(), { type: 'application/octet-stream' });
}

function uploadNotFound(): RowkeyError {
  return new RowkeyError(
    'not-found',
    'Upload not found: no file was uploaded with this id, or it was already accepted.',
  );
}

function parseAttachment(values: Values, field: string): Attachment | undefined {
  return Attachment.safeParse(values[field]).data;
}

function toArrivalAddress(address: Address, field: string, uploadId: string): BlobAddress {
  return {
    container: ARRIVALS_CONTAINER,
    name: blobName(address, field, uploadId),
  };
}

/** Returns the type detected from the first bytes of a file of this length. Throws `too-large`, `unsupported-media-type`. */
export async function checkFile(
  entity: Entity,
  field: string,
  bytes: Uint8Array,
  length = bytes.byteLength,
): Promise<string> {
  const { maxBytes } = findDeclaration(entity, field);
  if (length > maxBytes) throw tooManyBytes(field, maxBytes);
  return detectType(entity, field, bytes);
}

/** Uses the first bytes only, so that all ways to send a file accept the same files. */
async function detectType(entity: Entity, field: string, bytes: Uint8Array): Promise<string> {
  const { types } = findDeclaration(entity, field);
  const found = await fileTypeFromBuffer(bytes.subarray(0, SAMPLE_BYTES));
  if (!found || !types.includes(found.mime)) throw wrongType(field, types, found?.mime ?? 'an unknown type');
  return found.mime;
}

function wrongType(field: string, types: readonly string[], found: string): RowkeyError {
  const accepted = types.join(', ');
  const message = `Unsupported media type for "${field}": ${found}.`;
  return new RowkeyError('unsupported-media-type', message, { field, accepted });
}

function tooManyBytes(field: string, maxBytes: number): RowkeyError {
  return new RowkeyError('too-large', `"${field}" is too large.`, {
    field,
    accepted: `at most ${maxBytes} bytes`,
  });
}

function findDeclaration(entity: Entity, field: string): AttachmentDeclaration {
  const declaration = entity.attachments[field];
  if (!declaration) throw new Error(`${entity.name} declares no attachment "${field}".`);
  return declaration;
}
