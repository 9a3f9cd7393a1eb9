import { IncomingMessage } from 'node:http';
import type { PipelinePolicy, PipelineRequest, PipelineResponse } from '@azure/core-rest-pipeline';
import { silentSoFar } from './cost.ts';

/**
 * Every request to storage ends, also if the account accepts the connection and never responds, or stops in the middle of a response. Callers
 * of single calls give up sooner with a signal of their own.
 */

/** The services work on a request for at most 30 s. Without a response, a connection is lost. */
const RESPONSE_WITHIN_MS = 40_000;
/** The service copies up to 256 MiB before it responds. */
const COPY_WITHIN_MS = 300_000;
/** A body has this time in addition: 32 KiB in a second. */
const BYTES_PER_MS = 32;
/** So long a response may stop before its end. */
const IDLE_MS = 60_000;

/** Ends the wait for a response, and for the rest of one. */
export const boundWaits: PipelinePolicy = {
  name: 'boundWaits',
  async sendRequest(request, next) {
    const { abortSignal, timeout } = request;
    const withinMs = timeout || limitOf(request);
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), withinMs + IDLE_MS);
    // The transport limits the time until the response begins, and no longer.
    request.timeout = withinMs;
    request.abortSignal = abortSignal ? AbortSignal.any([abortSignal as AbortSignal, ending.signal]) : ending.signal;
    try {
      const response = await next(request);
      endIfIdle(response);
      return response;
    } finally {
      clearTimeout(timer);
      // The SDK repeats the same object.
      Object.assign(request, { abortSignal, timeout });
    }
  },
};

function limitOf({ headers, body }: PipelineRequest): number {
  if (headers.has('x-ms-copy-source')) return COPY_WITHIN_MS;
  const length = Number(headers.get('content-length') ?? (typeof body === 'string' ? body.length : 0));
  return RESPONSE_WITHIN_MS + Math.ceil(length / BYTES_PER_MS);
}

/** Destroys the stream of a body if the account sends no more. A stream that its reader has paused, or not emptied, waits for the reader. */
function endIfIdle({ readableStreamBody: stream }: PipelineResponse): void {
  if (!(stream instanceof IncomingMessage)) return;
  let received = -1;
  const timer = setInterval(() => {
    const isIdle = stream.socket.bytesRead === received && stream.readableLength === 0 && !stream.isPaused();
    received = stream.socket.bytesRead;
    if (isIdle) stream.destroy(new DOMException('The account stopped in the middle of a response.', 'AbortError'));
  }, IDLE_MS);
  timer.unref();
  stream.once('close', () => clearInterval(timer));
}

/**
 * Measured work, such as a request of a caller, waits once for a service of an account that does not respond, or stops in the middle of a
 * response: its further calls fail immediately. Otherwise, a request with many blobs would wait for each of them.
 */
export function failAfterSilence(): PipelinePolicy {
  const policy: PipelinePolicy = {
    name: 'failAfterSilence',
    async sendRequest(request, next) {
      const silent = silentSoFar();
      if (silent?.has(policy)) throw new DOMException('The account did not respond to an earlier call.', 'AbortError');
      const note = (error: unknown) => {
        // A caller with a signal of its own may not have waited for long.
        if (error instanceof Error && error.name === 'AbortError' && !request.abortSignal?.aborted) silent?.add(policy);
      };
      try {
        const response = await next(request);
        response.readableStreamBody?.once('error', note);
        return response;
      } catch (error) {
        note(error);
        throw error;
      }
    },
  };
  return policy;
}
