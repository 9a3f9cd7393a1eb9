import { type ClientErrorCode, invalidInput, load, type Problem, RowkeyClientError } from './errors.ts';

/** One request to the API or to storage, with its attempts. */

/** Returns a token, or undefined for a visitor. `forceRefresh` is true after a 401: a cached token is not valid any more. */
export type TokenSource = (options: {
  readonly forceRefresh: boolean;
}) => string | undefined | Promise<string | undefined>;

/** What one exchange cost. A call may take several: its attempts, and a grant before a read of storage. */
export interface Call {
  readonly method: string;
  /** Below the API root, with the query; of storage, the URL without the signature. */
  readonly path: string;
  /** 0 without a response. */
  readonly status: number;
  /** Storage transactions of the app, from `Server-Timing`; 1 of the storage account for a direct read or upload. */
  readonly transactions: number;
  /** From the request to the whole response. */
  readonly milliseconds: number;
  readonly way: 'api' | 'storage' | 'cache';
}

export interface TransportOptions {
  /** The root of the API, such as `https://example.azurewebsites.net/api`, or `…/api/shop` for an instance with a path. */
  readonly url: string;
  /** The token of the user, or a function that returns it. Without one, the user is a visitor. */
  readonly token?: string | TokenSource | undefined;
  /** Called after every exchange. */
  readonly onCall?: ((call: Call) => void) | undefined;
  /** How often a failed request is repeated. Default: 3. */
  readonly retries?: number | undefined;
  /** Default: `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export interface Request {
  readonly method: string;
  /** Below the API root, encoded, with the query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged, in place of `body`. */
  readonly data?: Blob | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** When to repeat it after a failure: by default whenever it helps; `limited`: only after a 429, which did nothing. */
  readonly repeat?: 'limited' | 'never';
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** JSON. Empty if the response has none. */
  readonly text: string;
  readonly blob: Blob | undefined;
  /** False if another user has signed in since the request was sent. */
  readonly isCurrent?: () => boolean;
}

export interface Transport {
  readonly root: string;
  /** Throws `RowkeyClientError` for a status from 400, after the retries. */
  send(request: Request): Promise<Reply>;
  /** Sends a request to a signed URL of storage, once and without a token. Throws as `send` does. */
  sendToStorage(url: string, request: StorageRequest): Promise<Reply>;
  report(call: Call): void;
  /** Calls `onNewToken` if the token is not that of the last request. */
  checkToken(): Promise<void>;
}

interface StorageRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** A PUT of these bytes; otherwise a GET. */
  readonly data?: Blob;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 8_000;
/** A user waits no longer for a call. A limit of requests per hour or day may ask for more. */
const LONGEST_RETRY_AFTER = 60;

/** The Functions host returns an empty 414 for a longer request line. */
const MAX_URL_LENGTH = 8_150;

/** The JSON of requests, which most pages need later. */
export const loadJson = () => load(import('./json-body.ts'));

export function createTransport(options: TransportOptions, onNewToken: () => void): Transport {
  const { token, onCall, retries = 3 } = options;
  const root = options.url.replace(/\/+$/, '');
  let lastToken: string | undefined;

  async function getToken(forceRefresh: boolean): Promise<string | undefined> {
    const current = typeof token === 'function' ? await token({ forceRefresh }) : token;
    if (current !== lastToken) onNewToken();
    lastToken = current;
    return current;
  }

  function report(call: Call): void {
    onCall?.(call);
  }

  async function exchange(url: string, init: RequestInit, way: 'api' | 'storage'): Promise<Reply> {
    const { method = 'GET' } = init;
    const path = way === 'api' ? url.slice(root.length) : url.replace(/\?.*/, '');
    const since = Date.now();
    let status = 0;
    let transactions = 0;
    try {
      const response = await (options.fetch ?? globalThis.fetch)(url, init);
      const { headers } = response;
      const isFile = response.ok && !/json/.test(headers.get('content-type') ?? 'json');
      const blob = isFile ? await response.blob() : undefined;
      const text = isFile ? '' : await response.text();
      status = response.status;
      const counted = /desc="(\d+) transaction/.exec(headers.get('server-timing') ?? '');
      transactions = way === 'storage' ? 1 : Number(counted?.[1] ?? 0);
      return { status, headers, text, blob };
    } catch (cause) {
      if (init.signal?.aborted) throw init.signal.reason ?? cause;
      throw isOffline() ? offlineError(cause) : networkError(method, path, cause);
    } finally {
      report({ method, path, status, transactions, milliseconds: Date.now() - since, way });
    }
  }

  /** Runs an attempt until it returns a reply below 400, fails for good, or too often. */
  async function repeat(
    attempt: () => Promise<Reply>,
    { method, signal, repeat: when }: Pick<Request, 'method' | 'signal' | 'repeat'>,
  ): Promise<Reply> {
    let isRepeated = false;
    for (let attempts = 1; ; attempts += 1) {
      signal?.throwIfAborted?.();
      if (isOffline()) throw offlineError();
      try {
        const reply = await attempt();
        if (reply.status < 400) return reply;
        throw toError(reply);
      } catch (error) {
        if (!(error instanceof RowkeyClientError)) throw error;
        error.isRepeated = isRepeated;
        // Others may be sent again: a POST has an idempotency key, and a write under an ETag changes nothing twice.
        const isAllowed = when === undefined || (when === 'limited' && error.status === 429);
        if (attempts > retries || !isAllowed || !isWorthRepeating(error)) throw error;
        isRepeated ||= method !== 'GET' && error.code !== 'busy' && error.code !== 'too-many-requests';
        const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempts);
        const jitter = Math.random() * longest;
        await pause(error.retryAfter === undefined ? jitter : error.retryAfter * 1_000 + jitter / 10, signal);
      }
    }
  }

  return {
    root,
    report,
    checkToken: async () => void (await getToken(false)),
    async send({ method, path, body, data, headers: given = {}, signal, ...rest }) {
      const url = root + path;
      if (url.length > MAX_URL_LENGTH)
        throw invalidInput(`${url.length} characters are too long for a URL. A query has its values in the body.`);
      const headers: Record<string, string> = {};
      // The server cannot tell a slash and the text %2F apart in the path that it receives.
      if (/%(25)*2f/i.test(path)) headers['x-waws-unencoded-url'] = url;
      for (const [name, value] of Object.entries(given)) if (value !== undefined) headers[name] = value;
      if (body !== undefined) headers['content-type'] = 'application/json';
      if (method === 'POST') headers['idempotency-key'] ??= randomId();
      let isRefreshed = false;
      const init: RequestInit = { method, headers, ...(data ? { body: data } : {}), ...(signal ? { signal } : {}) };
      const attempt = async (forceRefresh = false): Promise<Reply> => {
        const current = await getToken(forceRefresh);
        if (current === undefined) delete headers.authorization;
        else headers.authorization = `Bearer ${current}`;
        const reply = { ...(await exchange(url, init, 'api')), isCurrent: () => current === lastToken };
        if (reply.status !== 401 || isRefreshed || typeof token !== 'function') return reply;
        isRefreshed = true;
        return attempt(true);
      };
      const first = async () => {
        if (body !== undefined) init.body ??= (await loadJson()).toText(body, invalidInput);
        return attempt();
      };
      return repeat(first, { method, signal, ...rest });
    },
    async sendToStorage(url, { headers, signal, data }) {
      const init = { headers, ...(data ? { method: 'PUT', body: data } : {}), ...(signal ? { signal } : {}) };
      const reply = await exchange(url, init, 'storage');
      if (reply.status >= 400) throw toError(reply);
      return reply;
    },
  };
}

function isWorthRepeating({ code, status, problem, retryAfter }: RowkeyClientError): boolean {
  if (retryAfter !== undefined && retryAfter > LONGEST_RETRY_AFTER) return false;
  if (code === 'network' || status === 502 || status === 504) return true;
  // Without Retry-After, the API waits for an operator; a gateway before it sends no problem.
  return status === 429 || status === 503 ? retryAfter !== undefined || problem === undefined : false;
}

/** The problem of a response, or an error for one that is not from the API. */
function toError({ status, headers, text }: Reply): RowkeyClientError {
  const after = headers.get('retry-after');
  const seconds = Number(after ?? Number.NaN);
  const retryAfter =
    after === null ? undefined : Number.isNaN(seconds) ? (Date.parse(after) - Date.now()) / 1_000 : seconds;
  const problem = parseProblem(text);
  const code = (problem?.code ?? 'unexpected-response') as ClientErrorCode;
  const message = problem?.detail ?? `The server returned the status ${status} without a problem.`;
  const wait = retryAfter === undefined || Number.isNaN(retryAfter) ? undefined : Math.max(0, retryAfter);
  return new RowkeyClientError(code, message, { status, problem, retryAfter: wait });
}

/** The position after a page, from its Link header; undefined after the last page. */
export function nextOf(headers: Headers): string | undefined {
  const [, next] = /[?&]continuation=([^&>]*)/.exec(headers.get('link') ?? '') ?? [];
  return next && decodeURIComponent(next);
}

function parseProblem(text: string): Problem | undefined {
  try {
    const parsed = JSON.parse(text);
    return typeof parsed?.code === 'string' && typeof parsed.title === 'string' ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Node and React Native do not say. */
function isOffline(): boolean {
  const { navigator } = globalThis as { readonly navigator?: { readonly onLine?: boolean } };
  return navigator?.onLine === false;
}

function offlineError(cause?: unknown): RowkeyClientError {
  return new RowkeyClientError('offline', 'The device is offline. Nothing was sent.', { cause });
}

function networkError(method: string, path: string, cause: unknown): RowkeyClientError {
  const unknown = method === 'GET' ? '' : ' The change may have been made.';
  return new RowkeyClientError('network', `${method} ${path} got no response.${unknown}`, { cause });
}

/** Throws the reason of the signal if it is aborted first. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason ?? new Error('The call was aborted.'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

/** `crypto.randomUUID` exists only in secure contexts, and not in React Native. The id need not be secret. */
function randomId(): string {
  return (
    globalThis.crypto?.randomUUID?.() ?? Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join('')
  );
}
