import type { HttpClient } from '@azure/core-rest-pipeline';
import type { MemoryServer } from './memory-server.ts';

const kept = globalThis as { memoryServer?: MemoryServer };

/** Takes a short cut to the accounts in memory of this process; another request uses the network. */
export function shortcut(network: HttpClient): HttpClient {
  return {
    sendRequest: (request) => (kept.memoryServer?.find(request.url)?.httpClient ?? network).sendRequest(request),
  };
}
