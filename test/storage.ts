import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';

/** Returns the connection string of the storage account of a test file; pass `import.meta.url`. */
export function testStorage(url: string): string {
  const connection = inject('storage')[fileURLToPath(url)];
  if (!connection) throw new Error(`No storage account was made for ${url}: is it a test file?`);
  return connection;
}
