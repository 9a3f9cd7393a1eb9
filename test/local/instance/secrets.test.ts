import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { createEmulatorAccount, formatConnectionString, startAzurite } from '../../../local/instance/azurite.ts';
import { readSecrets } from '../../../local/instance/secrets.ts';
import { storageAccounts } from '../../kit/storage.ts';

/** The published key that every emulator uses by default. */
const PUBLISHED = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const folder = await mkdtemp(join(inject('folder'), 'secrets-'));

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

test('creates random secrets for each data folder, readable by its owner only', async () => {
  const [one, other] = [join(folder, 'new', 'one'), join(folder, 'other')];
  const secrets = await readSecrets(one);
  expect(await readSecrets(one)).toEqual(secrets);
  expect(Buffer.from(secrets.storageKey, 'base64')).toHaveLength(64);
  expect(secrets.hostKey).toMatch(/^[\w-]{43}$/);
  const others = await readSecrets(other);
  expect([others.storageKey, others.hostKey]).not.toEqual([secrets.storageKey, secrets.hostKey]);
  expect(await modeOf(one)).toBe(0o700);
  expect(await modeOf(join(one, 'secrets.json'))).toBe(0o600);
});

test('reports an invalid file of secrets without showing it', async () => {
  const data = join(folder, 'broken');
  await readSecrets(data);
  const file = join(data, 'secrets.json');
  for (const text of ['', '{}', (await readFile(file, 'utf8')).slice(0, -5)]) {
    await writeFile(file, text);
    await expect(readSecrets(data)).rejects.toThrow(`${file} is not valid: delete it`);
  }
});

test('the emulator rejects the published key and accepts the key of the data folder', { tags: ['slow'] }, async () => {
  const { storageKey } = await readSecrets(join(folder, 'served'));
  const azurite = await startAzurite({ folder: join(folder, 'served'), accounts: [createEmulatorAccount(storageKey)] });
  try {
    const { tables, queues, blobs } = storageAccounts.openStorage({ connectionString: azurite.connectionString() });
    await queues.createQueue('work');
    const endpoints = { tables: tables.url, queues: queues.url, blobs: blobs.url };
    const stranger = storageAccounts.openStorage({
      connectionString: formatConnectionString(createEmulatorAccount(PUBLISHED), endpoints),
    });
    await expect(stranger.queue('work').sendMessage('{}')).rejects.toMatchObject({ statusCode: 403 });
    await expect(tables.createTable('things')).resolves.toBeUndefined();
  } finally {
    await azurite.stop();
  }
});
