import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { createLazyKeyRing } from '../../../lib/storage/lazy-key-ring.ts';
import { storageKeys } from '../../kit/storage.ts';

const keyUri = 'https://contoso.vault.azure.net/keys/data-keys';
const folder = await mkdtemp(join(inject('folder'), 'keys-'));

test('wraps with the keys of a file', async () => {
  const file = join(folder, 'keys.json');
  const keyId = await storageKeys.rotateLocalKey(file);
  const ring = createLazyKeyRing(() => ({ file }));
  const dataKey = randomBytes(32);
  const { wrapped } = await ring.wrap(dataKey);
  expect(await ring.currentKeyId()).toBe(keyId);
  expect(await ring.unwrap(keyId, wrapped)).toEqual(dataKey);
});

test('unwraps only with the key of its options', async () => {
  const ring = createLazyKeyRing(() => ({ keyUri }));
  await expect(ring.unwrap('https://fabrikam.vault.azure.net/keys/data-keys/0a', randomBytes(256))).rejects.toThrow(
    'other than that of KEY_ENCRYPTION_KEY_URI',
  );
});

test.each([
  [undefined, /KEY_ENCRYPTION_KEY_FILE or KEY_ENCRYPTION_KEY_URI/],
  [{ keyUri: keyUri.replace('https', 'http') }, /KEY_ENCRYPTION_KEY_URI/],
  [{ keyUri: `${keyUri}/0a` }, /KEY_ENCRYPTION_KEY_URI .*without a version/],
])('rejects every call with the options %j and names the setting', async (options, message) => {
  const ring = createLazyKeyRing(() => options);
  for (const call of [ring.wrap(randomBytes(32)), ring.unwrap('any', randomBytes(40)), ring.currentKeyId()])
    await expect(call).rejects.toMatchObject({ code: 'wrong-setting', message: expect.stringMatching(message) });
});
