import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { appendBlock, createAppendBlob, readLines } from '../../../lib/storage/append-blobs.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
const container = 'lines';
beforeAll(async () => {
  await storage.container(container).create();
});

async function readBack(name: string, blocks: readonly Buffer[]): Promise<string[]> {
  const blob = { container, name };
  await createAppendBlob(storage, blob);
  let position = 0;
  for (const bytes of blocks) {
    await appendBlock(storage, blob, { bytes, position });
    position += bytes.length;
  }
  return Array.fromAsync(readLines(storage, blob));
}

test('reads the lines of a blob of any length, and none of an empty or missing one', { tags: ['slow'] }, async () => {
  // Characters of two to four bytes, at every position of a line, so that one lies across each end of a part.
  const lines = Array.from({ length: 40_000 }, (_, index) => `${'x'.repeat(index % 7)}é€😀${index}`);
  const bytes = Buffer.from(`${lines.join('\n')}\n`);
  expect(bytes.length).toBeGreaterThan(700_000);
  expect(await readBack('many.log', [bytes])).toEqual(lines);
  expect(await readBack('empty.log', [])).toEqual([]);
  expect(await Array.fromAsync(readLines(storage, { container, name: 'missing.log' }))).toEqual([]);
});

test('reads a blob of more blocks than the emulator can open files', { tags: ['slow'] }, async () => {
  // The emulator opens a file for each block of a request. The blocks are ten times as long as a record of the audit log, and fewer.
  const script = fileURLToPath(new URL('read-many-blocks.ts', import.meta.url));
  const run = promisify(execFile)('sh', ['-c', `ulimit -n 200 && exec "${process.execPath}" "${script}" 400 4000`]);
  expect((await run).stdout).toBe('400\n');
});
