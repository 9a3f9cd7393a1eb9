import { canRead, hasWriteOnlyRoles } from '../../access/rule.ts';
import { fileOperations, ReadGrant, Upload } from '../../api/files.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { Attachment, type AttachmentDeclaration } from '../../define/declaration/reference.ts';
import { etagOf, fileHeaders, IMMUTABLE } from '../../features/large-entities/attachment.ts';
import { bind, readKey, toEntityPath, toEntityTemplate } from '../bind.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';
import { isNotModified, readConditions } from '../view-etag.ts';

const NO_STORE = { 'cache-control': 'no-store' };

/** The routes of each attachment: a file is read, written and deleted through the API, or read and uploaded directly in storage. */
export function attachmentRoutes(entity: Entity): Route[] {
  return Object.entries(entity.attachments).flatMap(([field, declaration]) => fileRoutes(entity, field, declaration));
}

function fileRoutes(entity: Entity, field: string, declaration: AttachmentDeclaration): Route[] {
  const { maxBytes, types, public: isPublic } = declaration;
  const file = fileOperations(entity, field, declaration);
  const name = `${entity.name}-file-${field}`;
  const path = `${toEntityTemplate(entity)}/${field}`;
  const keyOf = (context: RequestContext) => ({ key: readKey(entity, context) });
  const stored = {
    success: {
      status: 200,
      description: 'The media type, detected from the bytes, with length and hash',
      body: () => Attachment,
      headers: ['ETag'],
      ...(hasWriteOnlyRoles(entity) ? { unread: 'Stored; the roles of the caller may not read it' } : {}),
    },
    present(body: Attachment, { caller }: RequestContext): RouteResult {
      const headers = { etag: etagOf(body) };
      return canRead(entity, caller) ? { status: 200, headers, body } : { status: 204, headers };
    },
  } as const;
  return [
    bind(file.read, {
      name: `${name}-get`,
      method: 'GET',
      path,
      summary: `Get the ${field} of an entity of ${entity.name}`,
      query: {
        version: 'The ETag of the file, without quotes: any other file is not found, so the response may be kept',
      },
      cacheable: true,
      success: { status: 200, description: 'The file', types, headers: ['ETag'] },
      async read(context) {
        // A route that needs a token has waited for it already.
        if (isPublic) await context.app.ready(context.log);
        const version = context.query.get('version') ?? undefined;
        return { ...keyOf(context), version, isKnown: (etag) => isNotModified(context, etag) };
      },
      present({ file: { type }, etag, bytes }, _, { version }) {
        const headers = { etag, ...readHeaders(declaration, type, version !== undefined) };
        return bytes ? { status: 200, headers, bytes } : { status: 304, headers };
      },
    }),
    bind(file.put, {
      ...stored,
      name: `${name}-put`,
      method: 'PUT',
      conditional: true,
      path,
      summary: `Write the ${field} of an entity of ${entity.name}${entity.access.own ? "; the caller's own needs no write role" : ''}`,
      maxBodyBytes: maxBytes,
      requestTypes: types,
      read: (context) => ({ ...keyOf(context), bytes: context.bytes, conditions: readConditions(context) }),
    }),
    bind(file.remove, {
      name: `${name}-delete`,
      method: 'DELETE',
      conditional: true,
      path,
      summary: `Delete the ${field} of an entity of ${entity.name}`,
      success: { status: 204, description: 'Deleted' },
      read: (context) => ({ ...keyOf(context), conditions: readConditions(context) }),
    }),
    bind(file.grant, {
      name: `${name}-grant`,
      method: 'POST',
      path: `${path}/grants`,
      summary: `Get a signature to read the ${field} of an entity of ${entity.name} directly from storage`,
      success: { status: 201, description: 'The address to GET the file from', body: () => ReadGrant },
      read: (context) => ({ ...keyOf(context), subject: context.caller.subject }),
      present: (body) => ({ status: 201, headers: NO_STORE, body }),
    }),
    bind(file.upload, {
      name: `${name}-upload`,
      method: 'POST',
      path: `${path}/uploads`,
      summary: `Get a signature to upload the ${field} directly to storage: for one blob, one media type and one size`,
      requestBody: () => file.File,
      success: {
        status: 201,
        description: 'The address to PUT the file to; afterwards POST to the Location header',
        body: () => Upload,
        headers: ['Location'],
      },
      read: (context) => ({ ...keyOf(context), file: context.json, subject: context.caller.subject }),
      present(body, context, { key }) {
        const location = `${toEntityPath(context, entity, key)}/${field}/uploads/${body.uploadId}`;
        return { status: 201, headers: { location, ...NO_STORE }, body };
      },
    }),
    bind(file.accept, {
      ...stored,
      name: `${name}-upload-accept`,
      method: 'POST',
      path: `${path}/uploads/{uploadId}`,
      summary: `Accept an uploaded ${field} after checking its bytes`,
      read: (context) => ({ ...keyOf(context), uploadId: context.params.uploadId ?? '' }),
    }),
  ];
}

function readHeaders(declaration: AttachmentDeclaration, type: string, isVersioned: boolean): Record<string, string> {
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
