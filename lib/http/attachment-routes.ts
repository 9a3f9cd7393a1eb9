import { z } from 'zod';
import { admitGrant } from '../access/grant-limits.ts';
import { canRead, hasWriteOnlyRoles, rolesToReadBy } from '../access/rule.ts';
import { validityAt } from '../access/validity.ts';
import type { Entity } from '../define/entity.ts';
import { addressOf } from '../define/index-entries.ts';
import { Attachment, type AttachmentDeclaration } from '../define/reference.ts';
import { parse } from '../define/validation.ts';
import { noteChange } from '../engine/note-change.ts';
import type { Stored } from '../engine/write/entity-store.ts';
import {
  type AttachmentKey,
  acceptFile,
  announceFile,
  describeAttachment,
  etagOf,
  putAttachment,
  readAttachment,
  removeAttachment,
} from '../patterns/attachment.ts';
import { blobUploadUrl, UPLOAD_PERMISSIONS } from '../storage/blob-sas.ts';
import { countGrant } from '../telemetry/metrics.ts';
import { conditionsOf, isNotModified } from './conditions.ts';
import { entityPath, keyOf } from './entity-routes.ts';
import { requireWriterOrOwner } from './own.ts';
import { parametersOf, type RequestContext, type Route, type RouteResult } from './route.ts';

const Upload = z.object({
  uploadId: z.string(),
  url: z.url().describe('To PUT the file to, with the headers given; it can be written once'),
  headers: z.record(z.string(), z.string()),
  expiresAt: z.iso.datetime(),
});

/** The routes of each file that an entity may have: a photo is put, read and deleted, or uploaded past the API. */
export function attachmentRoutes(entity: Entity): Route[] {
  return Object.entries(entity.attachments).flatMap(([field, declaration]) => [
    ...routesOf(entity, field, declaration),
    ...uploadRoutes(entity, field, declaration),
  ]);
}

function common(entity: Entity, field: string) {
  const { access, name } = entity;
  const path = `${name}/${parametersOf(entity.keyFields)}/${field}`;
  const writers = access.own ? [...new Set([...access.write, ...access.read])] : access.write;
  const of = (call: RequestContext): AttachmentKey => ({ entity, field, key: keyOf(entity, call) });
  const mine = async (call: RequestContext) => {
    const attachment = of(call);
    await requireWriterOrOwner(call, entity, attachment.key);
    return attachment;
  };
  const unread = hasWriteOnlyRoles(entity) ? { unread: 'Stored, for a role that may not read it' } : {};
  return { path, writers, of, mine, unread };
}

function routesOf(entity: Entity, field: string, { maxBytes, types }: AttachmentDeclaration): Route[] {
  const { path, writers, of, mine, unread } = common(entity, field);
  const name = functionName(entity, field);
  return [
    {
      name: `${name}-get`,
      method: 'GET',
      path,
      roles: rolesToReadBy(entity, [field]),
      summary: `The ${field} of one of ${entity.name}`,
      cacheable: true,
      success: { status: 200, description: 'The file', types, headers: ['ETag'] },
      handle: async (call) => {
        const { engine } = call.app;
        const found = await describeAttachment(engine, of(call));
        const headers = { etag: etagOf(found), 'content-type': found.type };
        if (isNotModified(call, headers.etag)) return { status: 304, headers };
        return { status: 200, headers, bytes: await readAttachment(engine, of(call), found) };
      },
    },
    {
      name: `${name}-put`,
      method: 'PUT',
      conditional: true,
      path,
      roles: writers,
      summary: `Put the ${field} of one of ${entity.name}, which is one's own or to be changed`,
      maxBodyBytes: maxBytes,
      requestTypes: types,
      success: {
        status: 200,
        description: 'What it is, told from its bytes',
        body: Attachment,
        headers: ['ETag'],
        ...unread,
      },
      handle: async (call) => {
        const attachment = await mine(call);
        return answer(
          call,
          attachment,
          await putAttachment(call.app.engine, attachment, await call.bytes(), conditionsOf(call)),
        );
      },
    },
    {
      name: `${name}-delete`,
      method: 'DELETE',
      conditional: true,
      path,
      roles: writers,
      summary: `Delete the ${field} of one of ${entity.name}`,
      success: { status: 204, description: 'Deleted' },
      handle: async (call) => {
        await removeAttachment(call.app.engine, await mine(call), conditionsOf(call));
        return { status: 204 };
      },
    },
  ];
}

/** Shared access signatures pattern, for a blob: two calls to the API, and the bytes go past it. */
function uploadRoutes(entity: Entity, field: string, { maxBytes, types }: AttachmentDeclaration): Route[] {
  const { path, writers, mine, unread } = common(entity, field);
  const File = z.strictObject({ type: z.enum(types), bytes: z.int32().min(1).max(maxBytes) });
  const name = `${functionName(entity, field)}-upload`;
  return [
    {
      name,
      method: 'POST',
      path: `${path}/uploads`,
      roles: writers,
      summary: `A signature to upload the ${field} straight to storage: for one blob, one type and one size`,
      requestBody: File,
      success: {
        status: 201,
        description: 'Where to put the file; then Location takes it in',
        body: Upload,
        headers: ['Location'],
      },
      handle: async (call) => {
        const { key } = await mine(call);
        const { engine } = call.app;
        const { uploadId, blob } = announceFile(entity, key, field, parse(File, await call.json()));
        const times = validityAt(await admitGrant(engine, call.caller.subject));
        const url = await blobUploadUrl(engine.storage, blob, times);
        const headers = { 'x-ms-blob-type': 'BlockBlob' };
        const location = `${entityPath(entity, key)}/${field}/uploads/${uploadId}`;
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
      summary: `Take in the ${field} that has been uploaded, once its bytes were looked at`,
      success: { status: 200, description: 'What it is', body: Attachment, headers: ['ETag'], ...unread },
      handle: async (call) => {
        const attachment = await mine(call);
        return answer(call, attachment, await acceptFile(call.app.engine, attachment, call.params.uploadId ?? ''));
      },
    },
  ];
}

/** The host tries routes in the order of their names: after those of indexes (-by-…), whatever the field is called. */
function functionName({ name }: Entity, field: string): string {
  return `${name}-file-${field}`;
}

function answer({ caller }: RequestContext, { entity, field }: AttachmentKey, { values }: Stored): RouteResult {
  const body = Attachment.parse(values[field]);
  const headers = { etag: etagOf(body) };
  return canRead(entity, caller) ? { status: 200, headers, body } : { status: 204, headers };
}
