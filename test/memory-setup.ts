import { vi } from 'vitest';
import type { MemoryServer } from './memory-server.ts';
import { shortcut } from './memory-shortcut.ts';

/** Before each test file: a process loads and starts the server of its accounts for its first one. */
const kept = globalThis as { memoryServer?: MemoryServer };
kept.memoryServer ??= await (await import('./memory-server.ts')).startMemoryServer();

/** The SDKs take a short cut; what sends requests by itself uses the server. */
vi.mock('@azure/core-rest-pipeline', async (original) => {
  const actual = await original<typeof import('@azure/core-rest-pipeline')>();
  return { ...actual, createDefaultHttpClient: () => shortcut(actual.createDefaultHttpClient()) };
});
