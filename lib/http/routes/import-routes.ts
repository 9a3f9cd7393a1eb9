import { AnyImport, archivedFileOperations, importRows } from '../../api/imports.ts';
import { checkActionCount } from '../../api/writes.ts';
import { parse } from '../../define/codec/validation.ts';
import { type Entity, nameOfKind } from '../../define/declaration/entity.ts';
import { etagOf } from '../../features/large-entities/attachment.ts';
import { bind, isNotModified, readKey } from '../bind.ts';
import { maxBodyBytesOf } from '../request-body.ts';
import { type Route, toPathTemplate } from '../route.ts';
import { BatchResult, presentOutcomes } from './entity-write-routes.ts';

/** The rows that a batch of the entity rejects: see `needsImport`. */
export function importRoute(entity: Entity, operatorRole: string): Route {
  return bind(importRows(entity, operatorRole), {
    method: 'POST',
    path: `operations/import/${nameOfKind(entity)}`,
    maxBodyBytes: maxBodyBytesOf(entity),
    success: { status: 200, description: 'A status for each action, in the same order', body: () => BatchResult },
    async read(context) {
      const body = await context.unchecked();
      checkActionCount(body);
      // The engine checks each row, so that an invalid one does not fail the others.
      return parse(AnyImport, body);
    },
    present: (outcomes, context) => presentOutcomes(entity, outcomes, context),
  });
}

/** The files of archived entities, which an export reads and an import writes. */
export function archivedFileRoutes(entity: Entity, operatorRole: string): Route[] {
  return Object.entries(entity.attachments).flatMap(([field, { maxBytes, types }]) => {
    const file = archivedFileOperations(entity, field, operatorRole);
    const path = `operations/files/${toPathTemplate([...nameOfKind(entity).split('/')], entity.keyFields)}/${field}`;
    return [
      bind(file.read, {
        method: 'GET',
        path,
        cacheable: true,
        success: { status: 200, description: 'The file', types, headers: ['ETag'] },
        read: (context) => ({ key: readKey(entity, context), isKnown: (etag: string) => isNotModified(context, etag) }),
        present({ file, bytes }) {
          const headers = { etag: etagOf(file) };
          if (!bytes) return { status: 304, headers };
          return { status: 200, headers: { ...headers, ...headersOf(file.type) }, bytes };
        },
      }),
      bind(file.put, {
        method: 'PUT',
        path,
        maxBodyBytes: maxBytes,
        requestTypes: types,
        success: { status: 200, description: 'The media type, detected from the bytes, with length and hash' },
        read: (context) => ({ key: readKey(entity, context), bytes: context.bytes }),
      }),
    ];
  });
}

/** A browser saves the file: a document could contain scripts. */
function headersOf(type: string): Record<string, string> {
  return { 'content-type': type, 'content-disposition': 'attachment' };
}
