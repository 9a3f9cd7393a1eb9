import type { Core } from './core.ts';
import type { RowkeyClientError } from './errors.ts';

/** Bytes of a file that go directly to storage: in one piece, or in blocks of which a few are sent concurrently. */

/** A signature to upload one file. */
export interface Granted {
  readonly uploadId: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Sending {
  readonly file: Blob;
  /** With the id of an upload, for another signature to continue it. */
  grant(uploadId?: string): Promise<Granted>;
  readonly onProgress?: ((sent: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the id of the upload; undefined if storage cannot be reached. */
export async function uploadOnce(core: Core, { grant, ...upload }: Sending): Promise<string | undefined> {
  const granted = await grant();
  try {
    await sendToStorage(core, { ...upload, ...granted });
    return granted.uploadId;
  } catch (error) {
    if (upload.signal?.aborted) throw error;
    return undefined;
  }
}

const CONCURRENCY = 4;
/** A block is sent again for about half a minute. */
const RETRIES = 6;
const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 10_000;

interface Unfinished {
  /** Where the file goes, and the size of its blocks. */
  readonly target: string;
  granted: Granted;
  /** The indexes of the blocks that storage has. */
  readonly stored: Set<number>;
}

/** Uploads that failed or were aborted. Sending the same file to the same place again sends only the blocks that are left. */
const unfinished = new WeakMap<Blob, Unfinished>();

/** Called when the upload of a file has been accepted. */
export function forgetUpload(file: Blob): void {
  unfinished.delete(file);
}

interface SendingBlocks extends Sending {
  readonly target: string;
  readonly blockBytes: number;
}

/**
 * Stages the blocks of a file, then commits their list. A failed block is sent again, with another signature if the first one has
 * expired. Returns the id of the upload; undefined if storage cannot be reached. Throws `RowkeyClientError` if storage has some blocks
 * and no others: the next call continues.
 */
export async function uploadInBlocks(core: Core, options: SendingBlocks): Promise<string | undefined> {
  const { file, target, blockBytes, grant, onProgress, signal } = options;
  const { pause, RowkeyClientError } = core.tools;
  const begun = unfinished.get(file);
  const upload = begun?.target === target ? begun : { target, granted: await grant(), stored: new Set<number>() };
  unfinished.set(file, upload);
  const blocks = Array.from({ length: Math.ceil(file.size / blockBytes) }, (_, index) => index);
  const blockOf = (index: number) => file.slice(index * blockBytes, Math.min(file.size, (index + 1) * blockBytes));
  const sent = blocks.map((index) => (upload.stored.has(index) ? blockOf(index).size : 0));
  const report = () =>
    onProgress?.(
      sent.reduce((sum, bytes) => sum + bytes, 0),
      file.size,
    );
  const renew = createRenewal(upload, grant);

  /** Sends one request, and again if that may help. */
  async function put(query: string, data: Blob, onSent?: (bytes: number) => void): Promise<void> {
    let isRenewed = false;
    for (let attempt = 1; ; attempt += 1) {
      signal?.throwIfAborted?.();
      const { granted } = upload;
      const { headers } = granted;
      try {
        const request = { url: `${granted.url}&${query}`, headers, file: data, onProgress: onSent, signal };
        return await sendToStorage(core, request);
      } catch (error) {
        if (signal?.aborted || !(error instanceof RowkeyClientError)) throw error;
        const isExpired: boolean = error.status === 403 && !isRenewed;
        // Until a block has arrived, storage may be out of reach.
        const retries = upload.stored.size > 0 ? RETRIES : 1;
        if (attempt > retries || !(isExpired || isPassing(error))) throw error;
        if (isExpired) await renew(granted);
        else await pause(Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt), signal);
        isRenewed ||= isExpired;
      }
    }
  }

  const left = blocks.filter((index) => !upload.stored.has(index));
  async function sendNext(): Promise<void> {
    for (let index = left.shift(); index !== undefined; index = left.shift()) {
      const block = index;
      const data = blockOf(block);
      await put(`comp=block&blockid=${toId(block)}`, data, (bytes) => {
        sent[block] = Math.min(bytes, data.size);
        report();
      }).catch((error: unknown) => {
        // The others end after the blocks that they are sending.
        left.length = 0;
        throw error;
      });
      upload.stored.add(block);
    }
  }

  try {
    const workers = await Promise.allSettled(Array.from({ length: CONCURRENCY }, sendNext));
    for (const worker of workers) if (worker.status === 'rejected') throw worker.reason;
    const list = blocks.map((index) => `<Latest>${toId(index)}</Latest>`).join('');
    await put('comp=blocklist', new Blob([`<?xml version="1.0" encoding="utf-8"?><BlockList>${list}</BlockList>`]));
    return upload.granted.uploadId;
  } catch (error) {
    // Storage does not have the blocks any more.
    const isLost = error instanceof RowkeyClientError && error.status === 400;
    if (isLost) unfinished.delete(file);
    if (isLost && begun === upload) return uploadInBlocks(core, options);
    if (upload.stored.size > 0 || signal?.aborted) throw error;
    return undefined;
  }
}

/** The ids of the blocks of a file have one length. Eight digits are also base64, as an id must be. */
function toId(index: number): string {
  return String(index).padStart(8, '0');
}

/** Blocks that are rejected with the same signature share its renewal. */
function createRenewal(upload: Unfinished, grant: Sending['grant']) {
  let renewal: Promise<void> | undefined;
  return async (rejected: Granted) => {
    if (upload.granted !== rejected) return;
    renewal ??= grant(upload.granted.uploadId)
      .then((granted) => {
        upload.granted = granted;
      })
      .finally(() => {
        renewal = undefined;
      });
    await renewal;
  };
}

function isPassing({ code, status }: RowkeyClientError): boolean {
  return code === 'network' || code === 'offline' || status === 408 || status === 429 || status >= 500;
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

interface Upload extends Pick<Granted, 'url' | 'headers'> {
  readonly file: Blob;
  readonly onProgress?: ((sent: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Sends a file, or one of its blocks, to a signed URL of storage. Throws any error if storage does not have it. */
async function sendToStorage(core: Core, upload: Upload): Promise<void> {
  const { url, headers, file, onProgress, signal } = upload;
  const { transport } = core;
  const { XMLHttpRequest } = globalThis as { readonly XMLHttpRequest?: new () => Xhr };
  if (XMLHttpRequest) return sendWithProgress(core, new XMLHttpRequest(), upload);
  await transport.sendToStorage(url, { headers, signal, data: file });
  onProgress?.(file.size, file.size);
}

function sendWithProgress(
  { transport, tools }: Core,
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
      const { status } = request;
      if (status < 400) resolve();
      else
        reject(
          new tools.RowkeyClientError('unexpected-response', `Storage returned the status ${status}.`, { status }),
        );
    });
    request.onerror = end(() => reject(new tools.RowkeyClientError('network', 'Storage sent no response.')));
    request.onabort = end(() => reject(signal?.reason ?? new Error('The call was aborted.')));
    request.open('PUT', url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    signal?.addEventListener('abort', abort, { once: true });
    request.send(file);
  });
}
