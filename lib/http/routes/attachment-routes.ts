import { z } from 'zod';
import { admitGrant } from '../../access/grant-limits.ts';
import { canRead, hasWriteOnlyRoles, rolesToReadBy } from '../../access/rule.ts';
import { validityAt } from '../../access/validity.ts';
import { Attachment, type AttachmentDeclaration } from '../../define/codec/reference.ts';
import type { Entity } from '../../define/entity.ts';
import { addressOf } from '../../define/keys/index-entries.ts';
import { parse } from '../../define/validate/validation.ts';
import type { Stored } from '../../define/values.ts';
import { noteChange } from '../../engine/note-change.ts';
import {
  type AttachmentKey,
  acceptFile,
  announceFile,
  describeAttachment,
  etagOf,
  putAttachment,
  readAttachment,
  removeAttachment,
} from '../../pattern-helpers/attachment.ts';
import { signBlobUrl, UPLOAD_PERMISSIONS } from '../../storage/blob-sas.ts';
import { countGrant } from '../../telemetry/metrics.ts';
import { readKey, toEntityPath } from '../entity-key.ts';
import { requireWriterOrOwner } from '../own.ts';
import { type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';
import { isNotModified, readConditions } from '../view-etag.ts';

const Upload = z.object({
  uploadId: z.string(),
  url: z.url().describe('The address to PUT the file to once, with these headers'),
  headers: z.record(z.string(), z.string()),
  expiresAt: z.iso.datetime(),
});

/** The routes of each attachment: a file is read, written and deleted through the API, or uploaded directly to storage. */
export function attachmentRoutes(entity: Entity): Route[] {
  return Object.entries(entity.attachments).flatMap(([field, declaration]) => [
    ...fileRoutes(entity, field, declaration),
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
    await requireWriterOrOwner(context, entity, attachment.key);
    return attachment;
  };
  const unread = hasWriteOnlyRoles(entity) ? { unread: 'Stored; the roles of the caller may not read it' } : {};
  return { path, writers, readAddress, readWritable, unread };
}

function fileRoutes(entity: Entity, field: string, { maxBytes, types }: AttachmentDeclaration): Route[] {
  const { path, writers, readAddress, readWritable, unread } = common(entity, field);
  const name = toFunctionName(entity, field);
  return [
    {
      name: `${name}-get`,
      method: 'GET',
      path,
      roles: rolesToReadBy(entity, [field]),
      summary: `Get the ${field} of an entity of ${entity.name}`,
      cacheable: true,
      success: { status: 200, description: 'The file', types, headers: ['ETag'] },
      handle: async (context) => {
        const { engine } = context.app;
        const found = await describeAttachment(engine, readAddress(context));
        const headers = { etag: etagOf(found), 'content-type': found.type };
        if (isNotModified(context, headers.etag)) return { status: 304, headers };
        return { status: 200, headers, bytes: await readAttachment(engine, readAddress(context), found) };
      },
    },
    {
      name: `${name}-put`,
      method: 'PUT',
      conditional: true,
      path,
      roles: writers,
      summary: `Write the ${field} of an entity of ${entity.name}; the caller's own needs no write role`,
      maxBodyBytes: maxBytes,
      requestTypes: types,
      success: {
        status: 200,
        description: 'The media type, detected from the bytes, with length and hash',
        body: Attachment,
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
  const name = `${toFunctionName(entity, field)}-upload`;
  return [
    {
      name,
      method: 'POST',
      path: `${path}/uploads`,
      roles: writers,
      summary: `Get a signature to upload the ${field} directly to storage: for one blob, one media type and one size`,
      requestBody: File,
      success: {
        status: 201,
        description: 'The address to PUT the file to; afterwards POST to the Location header',
        body: Upload,
        headers: ['Location'],
      },
      handle: async (context) => {
        const { key } = await readWritable(context);
        const { engine } = context.app;
        const { uploadId, blob } = announceFile(entity, key, field, parse(File, await context.json()));
        const times = validityAt(await admitGrant(engine, context.caller.subject));
        const url = await signBlobUrl(engine.storage, blob, { permissions: UPLOAD_PERMISSIONS, ...times });
        const headers = { 'x-ms-blob-type': 'BlockBlob' };
        const location = `${toEntityPath(context, entity, key)}/${field}/uploads/${uploadId}`;
        const until = times.expiresAt.toISOString();
        const granted = { entity: entity.name, address: addressOf(entity, key), fields: [field] };
        noteChange(engine, { operation: 'grant', ...granted, permissions: UPLOAD_PERMISSIONS, until });
        countGrant({ entity: entity.name });
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
        body: Attachment,
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

/** The host tries functions in the order of their names. "-file-" sorts after "-by-" for every name of a field. */
function toFunctionName({ name }: Entity, field: string): string {
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
