import type { HttpClient } from '@azure/core-rest-pipeline';

/**
 * Writes JSON bodies in ASCII, with escapes, for the emulator alone: Azurite decodes a request in pieces of 64 KiB and
 * spoils a character that lies across two of them. The service does not.
 */
export function withAsciiJson(client: HttpClient): HttpClient {
  return {
    sendRequest(request) {
      if (typeof request.body === 'string') {
        request.body = request.body.replace(/[\u0080-\uffff]/g, escaped);
        if (request.headers.has('content-length')) request.headers.set('content-length', request.body.length);
      }
      return client.sendRequest(request);
    },
  };
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
