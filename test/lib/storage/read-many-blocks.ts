import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEmulatorAccount, startAzurite } from '../../../local/instance/azurite.ts';
import { storageAccounts, storageBlobs } from '../../kit/storage.ts';

/** Appends lines as blocks of their own to a blob in an emulator of its own, and prints how many lines it reads back. */
const [blocks = 0, bytes = 0] = process.argv.slice(2).map(Number);
const folder = await mkdtemp(join(tmpdir(), 'rowkey-blocks-'));
const azurite = await startAzurite({ folder, accounts: [createEmulatorAccount(randomBytes(64).toString('base64'))] });
try {
  const storage = storageAccounts.openStorage({ connectionString: azurite.connectionString() });
  await storage.container('audit').create();
  const blob = { container: 'audit', name: 'many.log' };
  await storageBlobs.createAppendBlob(storage, blob);
  const line = Buffer.from(`${'x'.repeat(bytes - 1)}\n`);
  for (let block = 0; block < blocks; block += 1)
    await storageBlobs.appendBlock(storage, blob, { bytes: line, position: block * bytes });
  const lines = await Array.fromAsync(storageBlobs.readLines(storage, blob));
  console.log(lines.filter((text) => text.length === bytes - 1).length);
} finally {
  await azurite.stop();
  await rm(folder, { recursive: true, force: true });
}
