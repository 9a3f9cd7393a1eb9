import { z } from 'zod';
import { limitOf } from '../access/limit.ts';
import { nameAllReaders, nameAllWriters, requireFields, requireRole } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import type { Values } from '../base/values.ts';
import { sentSchema } from '../define/codec/validation.ts';
import { Attachment } from '../define/declaration/attachment.ts';
import { type Entity, nameOfKind, withFeatures } from '../define/declaration/entity.ts';
import type { BatchOutcome } from '../engine/write/entity-batch.ts';
import { batchOnce } from '../engine/write/entity-store.ts';
import { describeAttachment, etagOf, putAttachment, readAttachment } from '../features/large-entities/attachment.ts';
import type { Operation, View } from './operation.ts';
import { batchSchema } from './writes.ts';

/**
 * What an operator imports and no other caller may write: the rows and files of archives, and fields that the API sets from the caller. The
 * writes are those of the engine, so indexes, claims and blobs follow as always. The operator needs the roles that write every row.
 */

export const AnyImport = batchSchema(z.strictObject({ put: z.unknown() })).omit({ atomic: true });

/** True if rows of the entity are imported by an operation of their own, because its batch rejects them. */
export function needsImport({ isArchive, childOf, access }: Entity): boolean {
  return isArchive || childOf?.isArchive === true || access.set !== undefined;
}

/** Stores rows as they were exported, and returns the outcome of each. */
export function importRows(
  entity: Entity,
  operatorRole: string,
): Operation<z.infer<typeof AnyImport>, readonly BatchOutcome[]> {
  const name = nameOfKind(entity);
  return {
    name: `operations-import-${name.replace('/', '-')}`,
    summary: `Store exported rows of ${name}; requires a role that may write every row too`,
    kind: 'write',
    entity,
    roles: [operatorRole],
    input: () => batchSchema(z.strictObject({ put: sentSchema(asImported(entity)) })).omit({ atomic: true }),
    admit: (caller, _, view) => requireWholeWriter(view, entity, caller),
    run: ({ engine }, { actions }) => batchOnce(engine, asImported(entity), actions, undefined),
  };
}

/** An archived entity has the values that it had when it was archived, also those that were computed. */
export const asImported = onceFor((entity: Entity): Entity => {
  const isArchived = entity.isArchive || entity.childOf?.isArchive;
  return isArchived ? Object.freeze(withFeatures({ ...entity, counts: {}, derived: {} }, entity.features)) : entity;
});

interface FileInput {
  readonly key: Values;
}

interface ReadInput extends FileInput {
  /** True for a file that the caller has already, of which no bytes are read. */
  readonly isKnown: (etag: string) => boolean;
}

/** The file of an archived entity, which has no routes of its own. */
export function archivedFileOperations(entity: Entity, field: string, operatorRole: string) {
  const name = `operations-file-${nameOfKind(entity).replace('/', '-')}-${field}`;
  const common = { entity, roles: [operatorRole] } as const;
  const read: Operation<ReadInput, { readonly file: Attachment; readonly bytes: Uint8Array | undefined }> = {
    ...common,
    name: `${name}-get`,
    summary: `Get the ${field} of an archived entity`,
    kind: 'read',
    async admit(caller, _, view) {
      requireRole(caller, entity.access.read);
      if (await limitOf(view, entity, 'read')) throw needsEveryRow(entity, 'read', nameAllReaders(entity));
      requireFields(entity, caller, [field]);
    },
    async run({ engine }, { key, isKnown }) {
      const at = { entity, key, field };
      const file = await describeAttachment(engine, at);
      return { file, bytes: isKnown(etagOf(file)) ? undefined : await readAttachment(engine, at, file) };
    },
  };
  const put: Operation<FileInput & { readonly bytes: () => Promise<Uint8Array> }, Attachment> = {
    ...common,
    name: `${name}-put`,
    summary: `Write the ${field} of an archived entity`,
    kind: 'write',
    output: () => Attachment,
    admit: (caller, _, view) => requireWholeWriter(view, entity, caller),
    async run({ engine }, { key, bytes }) {
      const { values } = await putAttachment(engine, { entity, key, field }, await bytes());
      return Attachment.parse(values[field]);
    },
  };
  return { read, put };
}

/** Throws `forbidden` unless the roles of the caller may do this to every row. A role that writes may read all fields. */
export async function requireWholeWriter(
  view: View,
  entity: Entity,
  caller: Caller,
  actions: readonly ('create' | 'update' | 'delete')[] = ['create', 'update'],
): Promise<void> {
  requireRole(caller, entity.access.write);
  for (const action of actions)
    if (await limitOf(view, entity, action)) throw needsEveryRow(entity, 'write', nameAllWriters(entity, actions));
}

function needsEveryRow({ name }: Entity, verb: 'read' | 'write', accepted: string): RowkeyError {
  return new RowkeyError('forbidden', `The rules of ${name} let the caller ${verb} some rows only.`, { accepted });
}
