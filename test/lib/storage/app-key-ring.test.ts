import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { KeyRing } from '../../../lib/storage/key-ring.ts';
import { rotateLocalKey } from '../../../lib/storage/local-key-ring.ts';

const URI = 'https://contoso.vault.azure.net/keys/data-keys';
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-keys-'));
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(() => {
  // The settings are read once, by each module that is loaded anew.
  vi.resetModules();
  vi.stubEnv('AzureWebJobsStorage', 'UseDevelopmentStorage=true');
  vi.stubEnv('TOKEN_ISSUER', 'https://issuer.example/');
  vi.stubEnv('TOKEN_AUDIENCE', 'rowkey');
  vi.stubEnv('TOKEN_JWKS_URI', 'https://issuer.example/keys');
});
afterEach(() => vi.unstubAllEnvs());

async function ringWith(environment: Record<string, string>): Promise<KeyRing> {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const { appKeyRing } = await import('../../../lib/storage/app-key-ring.ts');
  return appKeyRing();
}

test('the ring is that of the file which the settings name', async () => {
  const file = join(folder, 'keys.json');
  const keyId = await rotateLocalKey(file);
  const ring = await ringWith({ KEY_ENCRYPTION_KEY_FILE: file });
  const dataKey = randomBytes(32);
  const { wrapped } = await ring.wrap(dataKey);
  expect(await ring.currentKeyId()).toBe(keyId);
  expect(await ring.unwrap(keyId, wrapped)).toEqual(dataKey);
});

test('the ring is that of the key which the settings name, and knows no other', async () => {
  const ring = await ringWith({ KEY_ENCRYPTION_KEY_URI: URI });
  await expect(ring.unwrap('https://fabrikam.vault.azure.net/keys/data-keys/0a', randomBytes(256))).rejects.toThrow(
    'other than that of KEY_ENCRYPTION_KEY_URI',
  );
});

const UNUSABLE = [
  [{}, /KEY_ENCRYPTION_KEY_FILE or KEY_ENCRYPTION_KEY_URI/],
  [{ KEY_ENCRYPTION_KEY_FILE: 'keys.json', KEY_ENCRYPTION_KEY_URI: URI }, /KEY_ENCRYPTION_KEY_FILE: .*not both/],
  [{ KEY_ENCRYPTION_KEY_URI: URI.replace('https', 'http') }, /KEY_ENCRYPTION_KEY_URI/],
  [{ KEY_ENCRYPTION_KEY_URI: `${URI}/0a` }, /KEY_ENCRYPTION_KEY_URI: .*without a version/],
] as const;

test.each(UNUSABLE)('with %j every call says which setting is wrong', async (environment, message) => {
  const ring = await ringWith(environment);
  for (const call of [ring.wrap(randomBytes(32)), ring.unwrap('any', randomBytes(40)), ring.currentKeyId()])
    await expect(call).rejects.toMatchObject({ code: 'wrong-setting', message: expect.stringMatching(message) });
});
