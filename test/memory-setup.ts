import { startMemoryServer } from './memory-server.ts';

/** Before each test file: a process starts the server of its accounts for its first one. */
const kept = globalThis as { memoryServer?: Awaited<ReturnType<typeof startMemoryServer>> };
kept.memoryServer ??= await startMemoryServer();
