import { z } from 'zod';
import { admitGrant } from '../../access/grant-limits.ts';
import { canRead, hasWriteOnlyRoles } from '../../access/rule.ts';
import { VALID_FOR_MS, validityAt } from '../../access/validity.ts';
import { RowkeyError } from '../../base/errors.ts';
import type { Stored } from '../../base/values.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { Attachment, type AttachmentDeclaration } from '../../define/declaration/reference.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { rolesToReadBy } from '../../define/places/readers.ts';
import { noteChange } from '../../engine/note-change.ts';
import {
  type AttachmentKey,
  acceptFile,
  announceFile,
  describeAttachment,
  etagOf,
  fileHeaders,
  IMMUTABLE,
  putAttachment,
  readAttachment,
  removeAttachment,
} from '../../pattern-helpers/attachment.ts';
import { READ_PERMISSIONS, signBlobUrl, UPLOAD_PERMISSIONS } from '../../storage/blob-sas.ts';
import { countGrant } from '../../telemetry/metrics.ts';
import { readKey, toEntityPath } from '../entity-key.ts';
import { requireFileWriter } from '../own.ts';
import { type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';
import { isNotModified, readConditions } from '../view-etag.ts';

const Upload = z.object({
  uploadId: z.string(),
  url: z.url().describe('The address to PUT the file to once, with these headers'),
  headers: z.record(z.string(), z.string()),
  expiresAt: z.iso.datetime(),
});

const ReadGrant = z.object({
  url: z.url().describe('The address to GET the file from, without a token'),
  type: z.string(),
  bytes: z.int(),
  etag: z.string().describe('As GET of the file returns it'),
  expiresAt: z.iso.datetime(),
});

/** The routes of each attachment: a file is read, written and deleted through the API, or read and uploaded directly in storage. */
export function attachmentRoutes(entity: Entity): Route[] {
  return Object.entries(entity.attachments).flatMap(([field, declaration]) => [
    readRoute(entity, field, declaration),
    ...fileRoutes(entity, field, declaration),
    grantRoute(entity, field, declaration),
    ...uploadRoutes(entity, field, declaration),
  ]);
}

function common(entity: Entity, field: string) {
  const { access, name } = entity;
  const path = `${name}/${toPathTemplate(entity.keyFields)}/${field}`;
  const writers = access.own ? [...new Set([...access.write, ...access.read])] : access.write;
  const readAddress = (context: RequestContext): AttachmentKey => ({ entity, field, key: readKey(entity, context) });
  const readWritable = async (context: RequestContext) => {
    const attachment = readAddress(context);
    await requireFileWriter(context, attachment);
    return attachment;
  };
  const unread = hasWriteOnlyRoles(entity) ? { unread: 'Stored; the roles of the caller may not read it' } : {};
  return { path, writers, readAddress, readWritable, unread };
}

/** A file that is declared public needs no token. */
function readRoute(entity: Entity, field: string, declaration: AttachmentDeclaration): Route {
  const { path, readAddress } = common(entity, field);
  const { types, public: isPublic } = declaration;
  return {
    name: `${toOperationId(entity, field)}-get`,
    method: 'GET',
    path,
    roles: isPublic ? undefined : rolesToReadBy(entity, [field]),
    summary: `Get the ${field} of an entity of ${entity.name}`,
    query: {
      version: 'The ETag of the file, without quotes: any other file is not found, so the response may be kept',
    },
    cacheable: true,
    success: { status: 200, description: 'The file', types, headers: ['ETag'] },
    handle: async (context) => {
      const { app, query, log } = context;
      // A route that needs a token has waited for it already.
      if (isPublic) await app.ready(log);
      const attachment = readAddress(context);
      const found = await describeAttachment(app.engine, attachment).catch((error: unknown) => {
        // Without a token, nobody learns which entities exist.
        throw isPublic && error instanceof RowkeyError && error.code === 'not-found' ? fileNotFound(field) : error;
      });
      const etag = etagOf(found);
      const version = query.get('version');
      if (version !== null && `"${version}"` !== etag) throw fileNotFound(field);
      const headers = { etag, ...readHeaders(declaration, found, version !== null) };
      if (isNotModified(context, etag)) return { status: 304, headers };
      return { status: 200, headers, bytes: await readAttachment(app.engine, attachment, found) };
    },
  };
}

function readHeaders(
  declaration: AttachmentDeclaration,
  { type }: Attachment,
  isVersioned: boolean,
): Record<string, string> {
  const { public: isPublic, maxAge } = declaration;
  const reuse = isVersioned ? IMMUTABLE : maxAge ? `max-age=${maxAge}` : 'no-cache';
  return {
    'content-type': type,
    'content-disposition': fileHeaders(declaration, type).disposition,
    'cache-control': `${isPublic ? 'public' : 'private'}, ${reuse}`,
    // The host allows each origin by name.
    ...(isPublic ? { vary: 'Origin' } : {}),
  };
}

function fileNotFound(field: string): RowkeyError {
  return new RowkeyError('not-found', `"${field}" not found.`, { field });
}

/** Shared access signatures pattern, for a blob: the client reads the file directly from storage. */
function grantRoute(entity: Entity, field: string, declaration: AttachmentDeclaration): Route {
  const { path, readAddress } = common(entity, field);
  return {
    name: `${toOperationId(entity, field)}-grant`,
    method: 'POST',
    path: `${path}/grants`,
    roles: rolesToReadBy(entity, [field]),
    summary: `Get a signature to read the ${field} of an entity of ${entity.name} directly from storage`,
    success: { status: 201, description: 'The address to GET the file from', body: () => ReadGrant },
    handle: async (context) => {
      const { engine } = context.app;
      const attachment = readAddress(context);
      const [startsAt, found] = await Promise.all([
        admitGrant(engine, context.caller.subject),
        describeAttachment(engine, attachment),
      ]);
      const times = validityAt(startsAt);
      const url = await signBlobUrl(
        engine.storage,
        { container: declaration.container, name: found.blob },
        {
          permissions: READ_PERMISSIONS,
          ...times,
          // The signature sets the headers, because a blob of an earlier release has none.
          headers: {
            ...fileHeaders(declaration, found.type),
            cacheControl: `private, max-age=${VALID_FOR_MS / 1_000}, immutable`,
          },
        },
      );
      noteGrant(context, attachment, { permissions: READ_PERMISSIONS, expiresAt: times.expiresAt });
      const { type, bytes } = found;
      const body = { url, type, bytes, etag: etagOf(found), expiresAt: times.expiresAt };
      return { status: 201, headers: { 'cache-control': 'no-store' }, body };
    },
  };
}

function noteGrant(
  { app: { engine } }: RequestContext,
  { entity, key, field }: AttachmentKey,
  { permissions, expiresAt }: { readonly permissions: string; readonly expiresAt: Date },
): void {
  const granted = { entity: entity.name, address: addressOf(entity, key), fields: [field] };
  noteChange(engine, { operation: 'grant', ...granted, permissions, until: expiresAt.toISOString() });
  countGrant({ entity: entity.name });
}

function fileRoutes(entity: Entity, field: string, { maxBytes, types }: AttachmentDeclaration): Route[] {
  const { path, writers, readWritable, unread } = common(entity, field);
  const name = toOperationId(entity, field);
  return [
    {
      name: `${name}-put`,
      method: 'PUT',
      conditional: true,
      path,
      roles: writers,
      summary: `Write the ${field} of an entity of ${entity.name}${entity.access.own ? "; the caller's own needs no write role" : ''}`,
      maxBodyBytes: maxBytes,
      requestTypes: types,
      success: {
        status: 200,
        description: 'The media type, detected from the bytes, with length and hash',
        body: () => Attachment,
        headers: ['ETag'],
        ...unread,
      },
      handle: async (context) => {
        const attachment = await readWritable(context);
        return presentAttachment(
          context,
          attachment,
          await putAttachment(context.app.engine, attachment, await context.bytes(), readConditions(context)),
        );
      },
    },
    {
      name: `${name}-delete`,
      method: 'DELETE',
      conditional: true,
      path,
      roles: writers,
      summary: `Delete the ${field} of an entity of ${entity.name}`,
      success: { status: 204, description: 'Deleted' },
      handle: async (context) => {
        await removeAttachment(context.app.engine, await readWritable(context), readConditions(context));
        return { status: 204 };
      },
    },
  ];
}

/** Shared access signatures pattern, for a blob: two requests to the API, while the bytes go directly to storage. */
function uploadRoutes(entity: Entity, field: string, { maxBytes, types }: AttachmentDeclaration): Route[] {
  const { path, writers, readWritable, unread } = common(entity, field);
  const File = z.strictObject({ type: z.enum(types), bytes: z.int32().min(1).max(maxBytes) });
  const name = `${toOperationId(entity, field)}-upload`;
  return [
    {
      name,
      method: 'POST',
      path: `${path}/uploads`,
      roles: writers,
      summary: `Get a signature to upload the ${field} directly to storage: for one blob, one media type and one size`,
      requestBody: () => File,
      success: {
        status: 201,
        description: 'The address to PUT the file to; afterwards POST to the Location header',
        body: () => Upload,
        headers: ['Location'],
      },
      handle: async (context) => {
        const attachment = await readWritable(context);
        const { key } = attachment;
        const { engine } = context.app;
        const { uploadId, blob } = announceFile(entity, key, field, parse(File, await context.json()));
        const times = validityAt(await admitGrant(engine, context.caller.subject));
        const url = await signBlobUrl(engine.storage, blob, { permissions: UPLOAD_PERMISSIONS, ...times });
        const headers = { 'x-ms-blob-type': 'BlockBlob' };
        const location = `${toEntityPath(context, entity, key)}/${field}/uploads/${uploadId}`;
        noteGrant(context, attachment, { permissions: UPLOAD_PERMISSIONS, expiresAt: times.expiresAt });
        const body = { uploadId, url, headers, expiresAt: times.expiresAt };
        return { status: 201, headers: { location, 'cache-control': 'no-store' }, body };
      },
    },
    {
      name: `${name}-accept`,
      method: 'POST',
      path: `${path}/uploads/{uploadId}`,
      roles: writers,
      summary: `Accept an uploaded ${field} after checking its bytes`,
      success: {
        status: 200,
        description: 'The media type, detected from the bytes, with length and hash',
        body: () => Attachment,
        headers: ['ETag'],
        ...unread,
      },
      handle: async (context) => {
        const attachment = await readWritable(context);
        return presentAttachment(
          context,
          attachment,
          await acceptFile(context.app.engine, attachment, context.params.uploadId ?? ''),
        );
      },
    },
  ];
}

function toOperationId({ name }: Entity, field: string): string {
  return `${name}-file-${field}`;
}

function presentAttachment(
  { caller }: RequestContext,
  { entity, field }: AttachmentKey,
  { values }: Stored,
): RouteResult {
  const body = Attachment.parse(values[field]);
  const headers = { etag: etagOf(body) };
  return canRead(entity, caller) ? { status: 200, headers, body } : { status: 204, headers };
}
