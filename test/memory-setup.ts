import { vi } from 'vitest';
import { startMemoryServer } from './memory-server.ts';
import { shortcut } from './memory-shortcut.ts';

/** Before each test file: a process starts the server of its accounts for its first one. */
const kept = globalThis as { memoryServer?: Awaited<ReturnType<typeof startMemoryServer>> };
kept.memoryServer ??= await startMemoryServer();

/** The SDKs take a short cut; what sends requests by itself uses the server. */
vi.mock('@azure/core-rest-pipeline', async (original) => {
  const actual = await original<typeof import('@azure/core-rest-pipeline')>();
  return { ...actual, createDefaultHttpClient: () => shortcut(actual.createDefaultHttpClient()) };
});
