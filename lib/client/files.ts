import type { Values } from '../base/values.ts';
import type { Attachment } from '../define/declaration/attachment.ts';
import type { DownloadOptions, UploadOptions, WriteOptions } from './client-types.ts';
import type { EntityCalls } from './core.ts';
import type { EntityDescription } from './paths.ts';
import type { Reply, Request } from './transport.ts';
import { forgetUpload, type Granted, uploadInBlocks, uploadOnce } from './upload.ts';

/** Files of entities. Loaded at first use. */

/**
 * Storage is faster with blocks of more than 4 MiB, and a block is what a failure repeats:
 * https://learn.microsoft.com/azure/storage/blobs/storage-performance-checklist-developers
 */
const BLOCK_BYTES = 8_388_608;

export function getFile(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  field: string,
  key: Values,
  { signal, rangeBytes, onProgress }: DownloadOptions = {},
): Promise<{ readonly blob: Blob | undefined; readonly etag: string } | undefined> {
  const { pathOf, undefinedIfNotFound } = core.tools;
  const path = pathOf(entity, key, field);
  const read = (headers: Request['headers']) => send({ method: 'GET', path, headers, signal });
  const toFile = ({ blob, headers }: Reply) => {
    if (blob) onProgress?.(blob.size, blob.size);
    return { blob, etag: headers.get('etag') ?? '' };
  };

  async function readRanges(bytes: number) {
    const parts: Blob[] = [];
    let etag: string | undefined;
    for (let received = 0; ; ) {
      const range = { range: `bytes=${received}-${received + bytes - 1}`, 'if-range': etag };
      const reply = await read(range);
      // Not a part: the file was replaced meanwhile, and this is the new one.
      if (reply.status !== 206 || !reply.blob) return toFile(reply);
      const [total] = /\d+$/.exec(reply.headers.get('content-range') ?? '') ?? [];
      // Another server hides the length of the file from pages of another origin.
      if (total === undefined) return toFile(await read({}));
      etag = reply.headers.get('etag') ?? '';
      parts.push(reply.blob);
      received += reply.blob.size;
      onProgress?.(received, Number(total));
      if (received >= Number(total)) return { blob: new Blob(parts, { type: reply.blob.type }), etag };
    }
  }

  return undefinedIfNotFound(rangeBytes === undefined ? read({}).then(toFile) : readRanges(rangeBytes));
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
  forgetEtag(calls, pathOf(entity, key));
  return text === '' ? undefined : JSON.parse(text);
}

async function send({ core, send }: EntityCalls, path: string, file: Blob, options: UploadOptions): Promise<Reply> {
  const { ifMatch, ifNoneMatch, onProgress, signal, type = file.type, blockBytes = BLOCK_BYTES } = options;
  // A signature names the type. The API detects it.
  if (type !== '' && ifMatch === undefined && ifNoneMatch === undefined) {
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
  const headers = {
    'content-type': type || 'application/octet-stream',
    'if-match': ifMatch,
    'if-none-match': ifNoneMatch,
  };
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
  forgetEtag({ core }, pathOf(entity, key));
}

/** The file is part of the entity, whose ETag has changed by this client itself: its next change is no conflict. */
function forgetEtag({ core }: Pick<EntityCalls, 'core'>, path: string): void {
  core.noteEtag(path, null);
}
