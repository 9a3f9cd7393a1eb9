import { randomUUID } from 'node:crypto';
import { fileTypeFromBuffer } from 'file-type';
import { Attachment, type AttachmentDeclaration } from '../define/codec/reference.ts';
import { type Conditions, checkConditions } from '../define/conditions.ts';
import { type Entity, omit, type Values } from '../define/entity.ts';
import { addressOf } from '../define/keys/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { readEntity } from '../engine/read/retrieve.ts';
import { changeEntity, type Stored } from '../engine/write/entity-store.ts';
import { entityError, RowkeyError } from '../errors.ts';
import { type BlobAddress, blobLength, deleteBlob, readBlob, writeBlob } from '../storage/blobs.ts';
import type { Address } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { bytesOf, freshName, referrer, sha256 } from './large-entities.ts';

/**
 * Large entities pattern, for files: an employee's photo is a blob, and the entity says which one, of what type and how
 * large. What it is, is told from its bytes and never from what a header says. A client may bring it past the API: it is
 * granted one blob in a container of arrivals, from where it is taken in once its bytes were looked at.
 */

/** Where what clients upload by themselves arrives; nothing stays. */
export const ARRIVALS_CONTAINER = 'uploads';

/** With these an uploaded file can never be accepted. */
const REFUSALS = new Set<string>(['invalid-input', 'too-large', 'unsupported-media-type']);

/** Names one of an entity's attachments. */
export interface AttachmentKey {
  readonly entity: Entity;
  readonly key: Values;
  readonly field: string;
}

/** The ETag of a file: other bytes have another one, whatever else changes of the entity. */
export function etagOf({ sha256 }: Attachment): string {
  return `"${sha256}"`;
}

/**
 * Puts a file with an entity, in place of one that is there. The conditions are about the file. Throws `too-large`,
 * `unsupported-media-type`, and what `changeEntity` throws.
 */
export const putAttachment = inPattern(
  'large entities',
  async (
    engine: Engine,
    { entity, key, field }: AttachmentKey,
    bytes: Uint8Array,
    conditions: Conditions = {},
  ): Promise<Stored> => {
    const { container } = declarationOf(entity, field);
    const type = await checkFile(entity, field, bytes);
    const address = addressOf(entity, key);
    const content = { type, bytes: bytes.byteLength, sha256: sha256(bytes) };
    return changeEntity(engine, entity, key, {}, async (current) => {
      const there = fileIn(current, field);
      checkConditions(conditions, there && etagOf(there));
      const isSame = there?.sha256 === content.sha256 && there.type === type;
      if (isSame && (await blobLength(engine.storage, { container, name: there.blob })) !== undefined) return current;
      // Each time anew: an attempt that was done, its reply lost, may have been replaced meanwhile, and its blob deleted.
      const name = freshName(address, field);
      await writeBlob(engine.storage, { container, name }, bytes, { type, metadata: referrer(address) });
      return { ...current, [field]: { blob: name, ...content } };
    });
  },
);

/** What an entity says of its attachment. Throws `not-found` where it has none. */
export async function describeAttachment(engine: Engine, { entity, key, field }: AttachmentKey): Promise<Attachment> {
  const { values } = await readEntity(engine, entity, key);
  if (values[field] === undefined) throw entityError('not-found', entity, key, `has no "${field}".`, { field });
  return Attachment.parse(values[field]);
}

/** Throws `BlobGone` where it was replaced meanwhile. */
export const readAttachment = inPattern(
  'large entities',
  async ({ storage }: Engine, { entity, field }: AttachmentKey, { blob }: Attachment): Promise<Buffer> => {
    return bytesOf(storage, { container: declarationOf(entity, field).container, name: blob });
  },
);

/** Takes a file away; one that is not there is as good. The conditions are about the file. Throws as `changeEntity` does. */
export const removeAttachment = inPattern(
  'large entities',
  async (engine: Engine, { entity, key, field }: AttachmentKey, conditions: Conditions = {}): Promise<void> => {
    await changeEntity(engine, entity, key, {}, async (current) => {
      const there = fileIn(current, field);
      checkConditions(conditions, there && etagOf(there));
      return omit(current, [field]);
    });
  },
);

/** What a client says of a file that it is going to upload. */
export interface AnnouncedFile {
  readonly type: string;
  readonly bytes: number;
}

/** The id of an upload, which says what may come, and where. Throws `too-large`, `unsupported-media-type`. */
export function announceFile(entity: Entity, key: Values, field: string, { type, bytes }: AnnouncedFile) {
  const { types, maxBytes } = declarationOf(entity, field);
  if (!types.includes(type)) throw wrongType(field, types, type);
  if (bytes > maxBytes) throw tooManyBytes(field, maxBytes);
  const uploadId = [randomUUID(), bytes, type.replace('/', '-')].join('.');
  return { uploadId, blob: arrival(addressOf(entity, key), field, uploadId) };
}

/**
 * Takes in what has been uploaded under an id, once. Throws `not-found`, `too-large`, `unsupported-media-type`, and as
 * `changeEntity` does.
 */
export const acceptFile = inPattern(
  'large entities',
  async (engine: Engine, attachment: AttachmentKey, uploadId: string): Promise<Stored> => {
    const { entity, key, field } = attachment;
    const { types } = declarationOf(entity, field);
    // The last part is compared with the declared types, so it needs no pattern of its own.
    const [, digits, dashed] = /^[0-9a-f-]{36}\.(\d{1,10})\.(.+)$/.exec(uploadId) ?? [];
    const type = types.find((each) => each.replace('/', '-') === dashed);
    const blob = arrival(addressOf(entity, key), field, uploadId);
    const length = type === undefined ? undefined : await blobLength(engine.storage, blob);
    if (length === undefined)
      throw new RowkeyError(
        'not-found',
        'Upload not found: no file was uploaded with this id, or it was already accepted.',
      );
    try {
      if (length > Number(digits)) throw tooManyBytes(field, Number(digits));
      const bytes = await readBlob(engine.storage, blob);
      if (!bytes)
        throw new RowkeyError(
          'not-found',
          'Upload not found: no file was uploaded with this id, or it was already accepted.',
        );
      const found = await checkFile(entity, field, bytes);
      if (found !== type) throw wrongType(field, [type ?? ''], found);
      const stored = await putAttachment(engine, attachment, bytes);
      await deleteBlob(engine.storage, blob);
      return stored;
    } catch (error) {
      if (error instanceof RowkeyError && REFUSALS.has(error.code)) await deleteBlob(engine.storage, blob);
      throw error;
    }
  },
);

function fileIn(values: Values, field: string): Attachment | undefined {
  return Attachment.safeParse(values[field]).data;
}

function arrival(address: Address, field: string, uploadId: string): BlobAddress {
  return {
    container: ARRIVALS_CONTAINER,
    name: [...freshName(address, field).split('/').slice(0, -1), uploadId].join('/'),
  };
}

/** The type that the bytes have. Throws `too-large`, `unsupported-media-type`. */
export async function checkFile(entity: Entity, field: string, bytes: Uint8Array): Promise<string> {
  const { types, maxBytes } = declarationOf(entity, field);
  if (bytes.byteLength > maxBytes) throw tooManyBytes(field, maxBytes);
  const found = await fileTypeFromBuffer(bytes);
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

function declarationOf(entity: Entity, field: string): AttachmentDeclaration {
  const declaration = entity.attachments[field];
  if (!declaration) throw new Error(`${field} is no attachment of ${entity.name}.`);
  return declaration;
}
