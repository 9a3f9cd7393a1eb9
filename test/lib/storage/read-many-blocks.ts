import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { appendBlock, createAppendBlob, readLines } from '../../../lib/storage/append-blobs.ts';
import { openStorage } from '../../../lib/storage/storage.ts';
import { createEmulatorAccount, startAzurite } from '../../../local/instance/azurite.ts';

/** Appends lines as blocks of their own to a blob in an emulator of its own, and prints how many lines it reads back. */
const [blocks = 0, bytes = 0] = process.argv.slice(2).map(Number);
const folder = await mkdtemp(join(tmpdir(), 'rowkey-blocks-'));
const azurite = await startAzurite({ folder, accounts: [createEmulatorAccount(randomBytes(64).toString('base64'))] });
try {
  const storage = openStorage({ connectionString: azurite.connectionString() });
  await storage.container('audit').create();
  const blob = { container: 'audit', name: 'many.log' };
  await createAppendBlob(storage, blob);
  const line = Buffer.from(`${'x'.repeat(bytes - 1)}\n`);
  for (let block = 0; block < blocks; block += 1)
    await appendBlock(storage, blob, { bytes: line, position: block * bytes });
  const lines = await Array.fromAsync(readLines(storage, blob));
  console.log(lines.filter((text) => text.length === bytes - 1).length);
} finally {
  await azurite.stop();
  await rm(folder, { recursive: true, force: true });
}
