import type { Transport } from './transport.ts';

/** Uploads to storage. */

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

export interface Upload {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: Blob;
  readonly onProgress?: ((sent: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Sends a file to a signed URL of storage, once: the URL creates one blob. Throws any error if storage does not have it. */
export async function uploadToStorage(transport: Transport, upload: Upload): Promise<void> {
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
