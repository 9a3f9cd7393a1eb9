import type { Values } from '../base/values.ts';
import type { Attachment } from '../define/declaration/reference.ts';
import type { CallOptions, UploadOptions, WriteOptions } from './client-types.ts';
import type { EntityCalls } from './entity-calls.ts';
import type { EntityDescription } from './model-description.ts';
import type { Reply } from './transport.ts';
import { uploadToStorage } from './upload.ts';

/** Files of entities. Loaded at first use. */

export async function getFile(
  { send }: EntityCalls,
  path: string,
  { signal }: CallOptions,
): Promise<{ readonly blob: Blob | undefined; readonly etag: string }> {
  const { blob, headers } = await send({ method: 'GET', path, signal });
  return { blob, etag: headers.get('etag') ?? '' };
}

export async function putFile(
  calls: EntityCalls,
  entity: EntityDescription,
  { key, field, file }: { readonly key: Values; readonly field: string; readonly file: Blob },
  options: UploadOptions,
): Promise<Attachment | undefined> {
  const { pathOf } = calls.core.tools;
  calls.core.forget(pathOf(entity, key));
  const { text } = await send(calls, pathOf(entity, key, field), file, options);
  return text === '' ? undefined : JSON.parse(text);
}

async function send({ core, send }: EntityCalls, path: string, file: Blob, options: UploadOptions): Promise<Reply> {
  const { ifMatch, ifNoneMatch, onProgress, signal, type = file.type } = options;
  if (ifMatch === undefined && ifNoneMatch === undefined) {
    const body = { type, bytes: file.size };
    const granted = await send({ method: 'POST', path: `${path}/uploads`, body, signal });
    const { uploadId, url, headers } = JSON.parse(granted.text);
    const isSent = await uploadToStorage(core.transport, { url, headers, file, onProgress, signal }).then(
      () => true,
      (error: unknown) => {
        if (signal?.aborted) throw error;
        return false;
      },
    );
    if (isSent) return send({ method: 'POST', path: `${path}/uploads/${uploadId}`, signal });
  }
  const headers = { 'content-type': type, 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
  const reply = await send({ method: 'PUT', path, data: file, headers, signal });
  onProgress?.(file.size, file.size);
  return reply;
}

export async function deleteFile(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  { key, field }: { readonly key: Values; readonly field: string },
  { ifMatch, ifNoneMatch, signal }: WriteOptions,
): Promise<void> {
  const { pathOf } = core.tools;
  core.forget(pathOf(entity, key));
  const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
  await send({ method: 'DELETE', path: pathOf(entity, key, field), headers, signal });
}
