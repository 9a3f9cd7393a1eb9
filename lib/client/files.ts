import type { Values } from '../base/values.ts';
import type { Attachment } from '../define/declaration/attachment.ts';
import type { CallOptions, UploadOptions, WriteOptions } from './client-types.ts';
import type { EntityCalls } from './core.ts';
import type { EntityDescription } from './paths.ts';
import type { Reply } from './transport.ts';
import { forgetUpload, type Granted, uploadInBlocks, uploadOnce } from './upload.ts';

/** Files of entities. Loaded at first use. */

const BLOCK_BYTES = 4_194_304;

export function getFile(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  field: string,
  key: Values,
  { signal }: CallOptions = {},
): Promise<{ readonly blob: Blob | undefined; readonly etag: string } | undefined> {
  const { pathOf, undefinedIfNotFound } = core.tools;
  const reply = send({ method: 'GET', path: pathOf(entity, key, field), signal });
  return undefinedIfNotFound(reply.then(({ blob, headers }) => ({ blob, etag: headers.get('etag') ?? '' })));
}

export async function putFile(
  calls: EntityCalls,
  entity: EntityDescription,
  field: string,
  key: Values,
  file: Blob,
  options: UploadOptions = {},
): Promise<Attachment | undefined> {
  const { pathOf } = calls.core.tools;
  calls.core.forget(pathOf(entity, key));
  const { text } = await send(calls, pathOf(entity, key, field), file, options);
  return text === '' ? undefined : JSON.parse(text);
}

async function send({ core, send }: EntityCalls, path: string, file: Blob, options: UploadOptions): Promise<Reply> {
  const { ifMatch, ifNoneMatch, onProgress, signal, type = file.type, blockBytes = BLOCK_BYTES } = options;
  if (ifMatch === undefined && ifNoneMatch === undefined) {
    const inBlocks = file.size > blockBytes;
    const grant = async (uploadId?: string): Promise<Granted> => {
      const body = { type, bytes: file.size, ...(inBlocks ? { inBlocks, uploadId } : {}) };
      return JSON.parse((await send({ method: 'POST', path: `${path}/uploads`, body, signal })).text);
    };
    const target = JSON.stringify([core.transport.root, path, type, blockBytes]);
    const uploadId = inBlocks
      ? await uploadInBlocks(core, { target, file, blockBytes, grant, onProgress, signal })
      : await uploadOnce(core, { file, grant, onProgress, signal });
    if (uploadId !== undefined) {
      const accepted = await send({ method: 'POST', path: `${path}/uploads/${uploadId}`, signal });
      forgetUpload(file);
      return accepted;
    }
  }
  const headers = { 'content-type': type, 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
  const reply = await send({ method: 'PUT', path, data: file, headers, signal });
  onProgress?.(file.size, file.size);
  return reply;
}

export async function deleteFile(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  field: string,
  key: Values,
  { ifMatch, ifNoneMatch, signal }: WriteOptions = {},
): Promise<void> {
  const { pathOf } = core.tools;
  core.forget(pathOf(entity, key));
  const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
  await send({ method: 'DELETE', path: pathOf(entity, key, field), headers, signal });
}
