import type { Values } from '../base/values.ts';
import type { Attachment } from '../define/declaration/attachment.ts';
import type { CallOptions, UploadOptions, WriteOptions } from './client-types.ts';
import type { EntityCalls } from './core.ts';
import type { EntityDescription } from './paths.ts';
import type { Reply, Transport } from './transport.ts';

/** Files of entities. Loaded at first use. */

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
  field: string,
  key: Values,
  { ifMatch, ifNoneMatch, signal }: WriteOptions = {},
): Promise<void> {
  const { pathOf } = core.tools;
  core.forget(pathOf(entity, key));
  const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
  await send({ method: 'DELETE', path: pathOf(entity, key, field), headers, signal });
}

/** The part of `XMLHttpRequest` that is used: only it reports the progress of an upload. Node does not have it. */
interface Xhr {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null };
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  readonly status: number;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  send(body: Blob): void;
  abort(): void;
}

interface Upload {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: Blob;
  readonly onProgress?: ((sent: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Sends a file to a signed URL of storage, once: the URL creates one blob. Throws any error if storage does not have it. */
async function uploadToStorage(transport: Transport, upload: Upload): Promise<void> {
  const { url, headers, file, onProgress, signal } = upload;
  const { XMLHttpRequest } = globalThis as { readonly XMLHttpRequest?: new () => Xhr };
  if (XMLHttpRequest) return sendWithProgress(transport, new XMLHttpRequest(), upload);
  await transport.sendToStorage(url, { headers, signal, data: file });
  onProgress?.(file.size, file.size);
}

function sendWithProgress(
  transport: Transport,
  request: Xhr,
  { url, headers, file, onProgress, signal }: Upload,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const path = url.replace(/\?.*/, '');
    const since = Date.now();
    const abort = () => request.abort();
    const end = (settle: () => void) => () => {
      signal?.removeEventListener('abort', abort);
      const milliseconds = Date.now() - since;
      transport.report({ method: 'PUT', path, status: request.status, transactions: 1, milliseconds, way: 'storage' });
      settle();
    };
    request.upload.onprogress = ({ loaded }) => onProgress?.(Math.min(loaded, file.size), file.size);
    request.onload = end(() => {
      if (request.status < 400) resolve();
      else reject(new Error(`Storage returned the status ${request.status}.`));
    });
    request.onerror = end(() => reject(new Error('Storage sent no response.')));
    request.onabort = end(() => reject(signal?.reason ?? new Error('The call was aborted.')));
    request.open('PUT', url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    signal?.addEventListener('abort', abort, { once: true });
    request.send(file);
  });
}
