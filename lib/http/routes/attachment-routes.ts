import { hasWriteOnlyRoles } from '../../access/rule.ts';
import { fileOperations, type StoredFile } from '../../api/files.ts';
import type { AttachmentDeclaration } from '../../define/declaration/attachment.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { fileHeaders, IMMUTABLE } from '../../features/large-entities/attachment.ts';
import { bind, isNotModified, readConditions, readKey, toEntityPath, toEntityTemplate } from '../bind.ts';
import { formatRange, readByteRange } from '../byte-range.ts';
import { NO_STORE, type RequestContext, type Route, type RouteResult } from '../route.ts';

/** The routes of each attachment: a file is read, written and deleted through the API, or read and uploaded directly in storage. */
export function attachmentRoutes(entity: Entity): Route[] {
  return Object.entries(entity.attachments).flatMap(([field, declaration]) => fileRoutes(entity, field, declaration));
}

function fileRoutes(entity: Entity, field: string, declaration: AttachmentDeclaration): Route[] {
  const { maxBytes, types } = declaration;
  const file = fileOperations(entity, field, declaration);
  const path = `${toEntityTemplate(entity)}/${field}`;
  const keyOf = (context: RequestContext) => ({ key: readKey(entity, context) });
  const stored = {
    success: {
      status: 200,
      description: 'The media type, detected from the bytes, with length and hash',
      headers: ['ETag'],
      ...(hasWriteOnlyRoles(entity) ? { unread: 'Stored; the roles of the caller may not read it' } : {}),
    },
    present({ etag, file }: StoredFile): RouteResult {
      return file ? { status: 200, headers: { etag }, body: file } : { status: 204, headers: { etag } };
    },
  } as const;
  return [
    bind(file.read, {
      method: 'GET',
      path,
      query: {
        version: 'The ETag of the file, without quotes: any other file is not found, so the response may be kept',
      },
      cacheable: true,
      ranges: true,
      success: { status: 200, description: 'The file', types, headers: ['ETag'] },
      read: (context) => ({
        ...keyOf(context),
        version: context.query.get('version') ?? undefined,
        isKnown: (etag: string) => isNotModified(context, etag),
        isHead: context.isHead,
        rangeOf: (whole: { etag: string; length: number }) => readByteRange(context, whole),
      }),
      present({ file, etag, range, isKnown, bytes }, _, { version }) {
        const headers = { etag, ...readHeaders(declaration, file.type, version !== undefined) };
        if (isKnown) return { status: 304, headers };
        const body = bytes ? { bytes } : {};
        // Azure Front Door keeps no chunked response of more than 8 MB.
        const whole = { ...headers, 'content-length': String(range?.count ?? file.bytes) };
        if (!range) return { status: 200, headers: whole, ...body };
        return { status: 206, headers: { ...whole, 'content-range': formatRange(range, file.bytes) }, ...body };
      },
    }),
    bind(file.put, {
      ...stored,
      method: 'PUT',
      conditional: true,
      path,
      maxBodyBytes: maxBytes,
      requestTypes: types,
      read: (context) => ({ ...keyOf(context), bytes: context.bytes, conditions: readConditions(context) }),
    }),
    bind(file.remove, {
      method: 'DELETE',
      conditional: true,
      path,
      success: { status: 204, description: 'Deleted' },
      read: (context) => ({ ...keyOf(context), conditions: readConditions(context) }),
    }),
    bind(file.grant, {
      method: 'POST',
      path: `${path}/grants`,
      success: { status: 201, description: 'The address to GET the file from' },
      read: (context) => ({ ...keyOf(context), subject: context.caller.subject }),
      present: (body) => ({ status: 201, headers: NO_STORE, body }),
    }),
    bind(file.upload, {
      method: 'POST',
      path: `${path}/uploads`,
      success: {
        status: 201,
        description: 'The address to PUT the file to; afterwards POST to the Location header',
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
      method: 'POST',
      path: `${path}/uploads/{uploadId}`,
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
    'accept-ranges': 'bytes',
    // The host allows each origin by name.
    ...(isPublic ? { vary: 'Origin' } : {}),
  };
}
