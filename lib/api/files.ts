import { z } from 'zod';
import { admitGrant, VALID_FOR_MS, validityAt } from '../access/grant.ts';
import { guardedEngine, hideAbsent, limitOf } from '../access/limit.ts';
import { readOwn } from '../access/own.ts';
import { canRead, checkMentions, requireRole } from '../access/rule.ts';
import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { isWithin } from '../define/codec/limit.ts';
import { parse } from '../define/codec/validation.ts';
import { Attachment, type AttachmentDeclaration } from '../define/declaration/attachment.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { addressOf } from '../define/places/index-entries.ts';
import { hasRowRules, rolesTo } from '../define/places/reach.ts';
import { rolesToReadBy, withoutSteward } from '../define/places/readers.ts';
import { notFound } from '../engine/read/entity-rows.ts';
import { readEntity } from '../engine/read/retrieve.ts';
import type { ByteRange } from '../engine/read/text-blobs.ts';
import {
  acceptFile,
  announceFile,
  describeAttachment,
  etagOf,
  fileHeaders,
  putAttachment,
  readAttachment,
  removeAttachment,
  requireAttachment,
} from '../features/large-entities/attachment.ts';
import { BLOCK_UPLOAD_PERMISSIONS, READ_PERMISSIONS, signBlobUrl, UPLOAD_PERMISSIONS } from '../storage/blobs.ts';
import { noteGrant } from './grants.ts';
import type { Operation, View } from './operation.ts';

interface FileInput {
  readonly key: Values;
}

interface ReadInput extends FileInput {
  /** The only ETag, without quotes, of which a file is wanted. */
  readonly version: string | undefined;
  /** True for a file that the caller has already, of which no bytes are read. */
  readonly isKnown: (etag: string) => boolean;
  /** True if no bytes are wanted, and the file alone is described. */
  readonly isHead?: boolean;
  /** The bytes that are wanted; undefined for all. Throws `range-not-satisfiable`. */
  readonly rangeOf?: (file: { readonly etag: string; readonly length: number }) => ByteRange | undefined;
}

interface ReadFile {
  readonly file: Attachment;
  readonly etag: string;
  /** Undefined for all bytes. */
  readonly range: ByteRange | undefined;
  /** True for a file that the caller has already. */
  readonly isKnown: boolean;
  readonly bytes: Uint8Array | undefined;
}

interface WriteInput extends FileInput {
  readonly bytes: () => Promise<Uint8Array>;
  readonly conditions: Conditions;
}

export interface StoredFile {
  readonly etag: string;
  /** Undefined for a caller who may write the file, and may not read it. */
  readonly file: Attachment | undefined;
}

/**
 * What callers do with a file of an entity: it is read and written through the app, or directly in storage with a signature. A file
 * that is declared public needs no token. The body of a request is read after the caller is admitted.
 */
export function fileOperations(entity: Entity, field: string, declaration: AttachmentDeclaration) {
  const { access } = entity;
  const isPublic = declaration.public;
  const readers = rolesToReadBy(entity, [field]);
  const name = `${entity.name}-file-${field}`;
  const describe = async (view: View, key: Values) => {
    const limit = await limitOf(view, entity, 'read');
    return hideAbsent(limit, () =>
      describeAttachment(view.engine, { entity, key, field }, (values) => {
        if (!isWithin(limit, values)) throw notFound(entity, key);
      }),
    );
  };
  const toStoredFile = ({ caller }: View, values: Values): StoredFile => {
    const file = Attachment.parse(values[field]);
    return { etag: etagOf(file), file: caller && !canRead(entity, caller) ? undefined : file };
  };
  const write = {
    kind: 'write',
    entity,
    roles: access.rules
      ? rolesTo(entity, 'update')
      : access.own
        ? [...new Set([...access.write, ...access.read])]
        : access.write,
    /** The caller needs a role that may write, or owns the entity and may read the file. */
    async admit(caller, { key }, view) {
      checkMentions(entity, caller, { [field]: true });
      // The rules decide instead.
      if (access.rules) return;
      if (access.write.some((role) => caller.roles.includes(role))) return;
      if (!access.own) requireRole(caller, access.write);
      const own = await readOwn(view.engine, caller, entity).catch((error: unknown) => {
        if (error instanceof RowkeyError && error.code === 'not-found') return undefined;
        throw error;
      });
      if (own && entity.keyFields.every((name) => own[name] === key[name])) return;
      throw new RowkeyError(
        'forbidden',
        `The caller neither owns this entity of ${entity.name} nor has a role that may write it.`,
      );
    },
  } satisfies Pick<Operation<FileInput, unknown>, 'kind' | 'entity' | 'roles' | 'admit'>;

  const read: Operation<ReadInput, ReadFile> = {
    name: `${name}-get`,
    summary: `Get the ${field} of an entity of ${entity.name}`,
    kind: 'read',
    entity,
    roles: isPublic ? undefined : readers,
    async run(view, { key, version, isKnown, isHead = false, rangeOf }) {
      const { engine } = view;
      const at = { entity, key, field };
      const file = await describe(view, key).catch((error: unknown) => {
        // Without a token, nobody learns which entities exist.
        throw isPublic && error instanceof RowkeyError && error.code === 'not-found' ? fileNotFound(field) : error;
      });
      const etag = etagOf(file);
      if (version !== undefined && `"${version}"` !== etag) throw fileNotFound(field);
      if (isKnown(etag)) return { file, etag, range: undefined, isKnown: true, bytes: undefined };
      const range = rangeOf?.({ etag, length: file.bytes });
      const bytes = await (isHead ? requireAttachment(engine, at, file) : readAttachment(engine, at, file, range));
      return { file, etag, range, isKnown: false, bytes: bytes ?? undefined };
    },
  };

  const put: Operation<WriteInput, StoredFile> = {
    ...write,
    name: `${name}-put`,
    summary: `Write the ${field} of an entity of ${entity.name}${access.own ? "; the caller's own needs no write role" : ''}`,
    output: () => Attachment,
    async run(view, { key, bytes, conditions }) {
      const engine = await guardedEngine(view, entity);
      const { values } = await putAttachment(engine, { entity, key, field }, await bytes(), conditions);
      return toStoredFile(view, values);
    },
  };

  const remove: Operation<FileInput & { readonly conditions: Conditions }, void> = {
    ...write,
    name: `${name}-delete`,
    summary: `Delete the ${field} of an entity of ${entity.name}`,
    async run(view, { key, conditions }) {
      const engine = await guardedEngine(view, entity);
      await removeAttachment(engine, { entity, key, field }, conditions);
    },
  };

  const granted = (key: Values) => ({ entity: entity.name, address: addressOf(entity, key), fields: [field] });

  /** Shared access signatures pattern, for a blob: the client reads the file directly from storage. */
  const grant: Operation<FileInput & { readonly subject: string }, z.input<typeof ReadGrant>> = {
    name: `${name}-grant`,
    summary: `Get a signature to read the ${field} of an entity of ${entity.name} directly from storage`,
    kind: 'write',
    entity,
    roles: withoutSteward(readers, access.steward),
    output: () => ReadGrant,
    isGrant: true,
    async run(view, { key, subject }) {
      const { engine } = view;
      // One after the other, the reads of a hidden entity cost what those of an absent one cost.
      const [startsAt, file] = hasRowRules(entity, 'read')
        ? [await admitGrant(engine, subject), await describe(view, key)]
        : await Promise.all([admitGrant(engine, subject), describe(view, key)]);
      const times = validityAt(startsAt);
      const blob = { container: declaration.container, name: file.blob };
      const url = await signBlobUrl(engine.storage, blob, {
        permissions: READ_PERMISSIONS,
        ...times,
        // The signature sets the headers, because a blob of an earlier release has none.
        headers: {
          ...fileHeaders(declaration, file.type),
          cacheControl: `private, max-age=${VALID_FOR_MS / 1_000}, immutable`,
        },
      });
      const expiresAt = times.expiresAt.toISOString();
      noteGrant(engine, { ...granted(key), permissions: READ_PERMISSIONS, until: expiresAt });
      return { url, type: file.type, bytes: file.bytes, etag: etagOf(file), expiresAt };
    },
  };

  /** Two requests to the API, while the bytes go directly to storage. */
  const File = z.strictObject({
    type: z.enum(declaration.types),
    bytes: z.int32().min(1).max(declaration.maxBytes),
    inBlocks: z.boolean().optional().describe('The file is sent in blocks (Put Block, Put Block List)'),
    uploadId: z.string().optional().describe('An upload in blocks, to continue it with another signature'),
  });
  const upload: Operation<
    FileInput & { readonly file: () => Promise<unknown>; readonly subject: string },
    z.input<typeof Upload>
  > = {
    ...write,
    name: `${name}-upload`,
    roles: withoutSteward(write.roles, access.steward),
    summary: `Get a signature to upload the ${field} directly to storage: for one blob, one media type and one size`,
    input: () => File,
    output: () => Upload,
    isGrant: true,
    async run(view, { key, file, subject }) {
      const { engine } = view;
      // The row is compared again when the file is accepted.
      const { guard } = await guardedEngine(view, entity);
      if (guard)
        await hideAbsent(guard, async () => {
          const { values } = await readEntity(engine, entity, key);
          guard.checkBefore(entity.name, key, 'update', values);
          guard.checkAfter(entity.name, values, values);
        });
      const announced = parse(File, await file());
      const { uploadId, blob } = announceFile(entity, key, field, announced);
      const permissions = announced.inBlocks ? BLOCK_UPLOAD_PERMISSIONS : UPLOAD_PERMISSIONS;
      const times = validityAt(await admitGrant(engine, subject));
      const url = await signBlobUrl(engine.storage, blob, { permissions, ...times });
      const expiresAt = times.expiresAt.toISOString();
      noteGrant(engine, { ...granted(key), permissions, until: expiresAt });
      const headers: Record<string, string> = announced.inBlocks ? {} : { 'x-ms-blob-type': 'BlockBlob' };
      return { uploadId, url, headers, expiresAt };
    },
  };

  const accept: Operation<FileInput & { readonly uploadId: string }, StoredFile> = {
    ...write,
    name: `${name}-upload-accept`,
    summary: `Accept an uploaded ${field} after checking its bytes`,
    output: () => Attachment,
    async run(view, { key, uploadId }) {
      const { values } = await acceptFile(await guardedEngine(view, entity), { entity, key, field }, uploadId);
      return toStoredFile(view, values);
    },
  };

  return { read, put, remove, grant, upload, accept };
}

const Upload = z
  .object({
    uploadId: z.string(),
    url: z.url().describe('The address to PUT the file to once, or each of its blocks, with these headers'),
    headers: z.record(z.string(), z.string()),
    expiresAt: z.iso.datetime(),
  })
  .meta({ title: 'file-upload' });

const ReadGrant = z
  .object({
    url: z.url().describe('The address to GET the file from, without a token'),
    type: z.string(),
    bytes: z.int(),
    etag: z.string().describe('As GET of the file returns it'),
    expiresAt: z.iso.datetime(),
  })
  .meta({ title: 'file-grant' });

function fileNotFound(field: string): RowkeyError {
  return new RowkeyError('not-found', `"${field}" not found.`, { field });
}
