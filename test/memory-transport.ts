import { createDefaultHttpClient as createNetworkClient, type HttpClient } from '@azure/core-rest-pipeline';
import { shortcut } from './memory-shortcut.ts';

/** What the fixtures' app imports in place of the package if it runs in the process of a test, with storage in memory. */
export * from '@azure/core-rest-pipeline';

export function createDefaultHttpClient(): HttpClient {
  return shortcut(createNetworkClient());
}
