// @module-tag long

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createKeyVaultKeyRing } from '../../../lib/storage/key-vault-key-ring.ts';
import { type KeyRing, storageKeys } from '../../kit/storage.ts';
import { keyVault } from './key-vault.ts';

const KEY = 'https://contoso.vault.azure.net/keys/data-keys';
const FIRST = `${KEY}/0000000000000000000000000000000a`;
const credential = {
  getToken: async () => ({ token: 'of-the-identity', expiresOnTimestamp: Date.now() + 3_600_000 }),
};

let vault: ReturnType<typeof keyVault>;
let ring: KeyRing;

beforeEach(() => {
  vault = keyVault();
  ring = createKeyVaultKeyRing({ keyUri: KEY, credential, httpClient: vault.httpClient });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test('unwraps every data key that it wrapped', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 32, maxLength: 32 }), async (dataKey) => {
      const { keyId, wrapped } = await ring.wrap(dataKey);
      expect(keyId).toBe(FIRST);
      expect(Buffer.from(await ring.unwrap(keyId, wrapped))).toEqual(Buffer.from(dataKey));
    }),
    { numRuns: 25 },
  );
});

test('requests the current key once, and makes one request for each unwrapping', async () => {
  const many = await Promise.all(Array.from({ length: 10 }, () => ring.wrap(randomBytes(32))));
  expect(await ring.currentKeyId()).toBe(FIRST);
  expect(vault.requests.splice(0)).toEqual([`GET ${KEY}/ without token`, `GET ${KEY}/`]);
  for (const { keyId, wrapped } of many) await ring.unwrap(keyId, wrapped);
  expect(vault.requests).toEqual([
    `POST ${FIRST}/unwrapkey without token`,
    ...Array(10).fill(`POST ${FIRST}/unwrapkey`),
  ]);
});

test('unwraps many keys concurrently in an app that has just started', async () => {
  const dataKeys = Array.from({ length: 20 }, () => randomBytes(32));
  const wrapped = await Promise.all(dataKeys.map((dataKey) => ring.wrap(dataKey)));
  const started = createKeyVaultKeyRing({ keyUri: KEY, credential, httpClient: vault.httpClient });
  const unwrapped = await Promise.all(wrapped.map((one) => started.unwrap(one.keyId, one.wrapped)));
  expect(unwrapped.map((one) => Buffer.from(one))).toEqual(dataKeys);
});

test('uses a rotated key within five minutes and still unwraps with earlier versions', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  const dataKey = randomBytes(32);
  const old = await ring.wrap(dataKey);
  const version = vault.rotate();
  vi.setSystemTime(Date.now() + 299_000);
  expect(await ring.currentKeyId()).toBe(FIRST);
  vi.setSystemTime(Date.now() + 1_000);
  const fresh = await ring.wrap(dataKey);
  expect(fresh.keyId).toBe(`${KEY}/${version}`);
  expect(Buffer.from(await ring.unwrap(fresh.keyId, fresh.wrapped))).toEqual(dataKey);
  expect(Buffer.from(await ring.unwrap(old.keyId, old.wrapped))).toEqual(dataKey);
  await expect(ring.unwrap(old.keyId, fresh.wrapped)).rejects.toThrow(storageKeys.UnwrapFailed);
});

test('an expired version unwraps but does not wrap', async () => {
  const dataKey = randomBytes(32);
  const { keyId, wrapped } = await ring.wrap(dataKey);
  vault.attributes = { enabled: true, exp: 1_000_000_000 };
  const later = createKeyVaultKeyRing({ keyUri: KEY, credential, httpClient: vault.httpClient });
  expect(Buffer.from(await later.unwrap(keyId, wrapped))).toEqual(dataKey);
  await expect(later.wrap(dataKey)).rejects.toMatchObject({ code: 'wrong-setting' });
});

test('a disabled key, a key that is not valid yet and a key of another type do not wrap', async () => {
  vault.attributes = { enabled: false };
  await expect(ring.wrap(randomBytes(32))).rejects.toMatchObject({ code: 'wrong-setting' });
  vault.attributes = { enabled: true, nbf: 10_000_000_000 };
  await expect(ring.wrap(randomBytes(32))).rejects.toMatchObject({ code: 'wrong-setting' });
  vault.attributes = { enabled: true };
  vault.kty = 'EC';
  await expect(ring.wrap(randomBytes(32))).rejects.toMatchObject({ code: 'wrong-setting' });
});

test.each([
  'https://evil.example/keys/data-keys/0000000000000000000000000000000a',
  'https://fabrikam.vault.azure.net/keys/data-keys/0000000000000000000000000000000a',
  'https://contoso.vault.azure.net.evil.example/keys/data-keys/0000000000000000000000000000000a',
  'https://contoso.vault.azure.net@evil.example/keys/data-keys/0000000000000000000000000000000a',
  'https://contoso.vault.azure.net:8443/keys/data-keys/0000000000000000000000000000000a',
  'http://contoso.vault.azure.net/keys/data-keys/0000000000000000000000000000000a',
  'https://contoso.vault.azure.net/keys/others/0000000000000000000000000000000a',
  'https://contoso.vault.azure.net/secrets/data-keys/0000000000000000000000000000000a',
  `${KEY}-2/0000000000000000000000000000000a`,
  `${KEY}/../others/0000000000000000000000000000000a`,
  `${KEY}/%2e%2e/others`,
  `${FIRST}/unwrapkey`,
  `${FIRST}?a=b`,
  `${FIRST}#a`,
  `${FIRST}\n`,
  ` ${FIRST}`,
  `${KEY}/`,
  KEY,
  '0000000000000000000000000000000a',
  'local',
  '',
])('rejects the foreign key id %j without a request', async (keyId) => {
  await expect(ring.unwrap(keyId, randomBytes(256))).rejects.toMatchObject({ code: 'wrong-setting' });
  expect(vault.requests).toEqual([]);
});

test('treats key ids as case-insensitive', async () => {
  const keyUri = 'https://Contoso.vault.azure.net/keys/data-keys';
  const other = createKeyVaultKeyRing({ keyUri, credential, httpClient: vault.httpClient });
  const { keyId, wrapped } = await other.wrap(randomBytes(32));
  expect(keyId).toBe(FIRST);
  await ring.unwrap(keyId.toUpperCase().replace('HTTPS', 'https'), wrapped);
});

test('does not unwrap bytes that the key did not wrap', async () => {
  const { keyId, wrapped } = await ring.wrap(randomBytes(32));
  const changed = Uint8Array.from(wrapped, (byte, index) => (index === 7 ? byte ^ 1 : byte));
  for (const bytes of [changed, wrapped.subarray(1), new Uint8Array()])
    await expect(ring.unwrap(keyId, bytes)).rejects.toThrow(storageKeys.UnwrapFailed);
});

test('reports a missing version of a key as a wrong setting', async () => {
  await expect(ring.unwrap(`${KEY}/${'f'.repeat(32)}`, randomBytes(256))).rejects.toMatchObject({
    code: 'wrong-setting',
  });
});

test.each([401, 403])('reports status %i of the vault as a wrong setting that names the role', async (status) => {
  const refusal = {
    code: 'wrong-setting',
    message: expect.stringContaining('Key Vault Crypto Service Encryption User'),
  };
  vault.faults = [status];
  await expect(ring.currentKeyId()).rejects.toMatchObject(refusal);
  const { keyId, wrapped } = await ring.wrap(randomBytes(32));
  vault.faults = [status];
  await expect(ring.unwrap(keyId, wrapped)).rejects.toMatchObject(refusal);
  await ring.unwrap(keyId, wrapped);
});

test.each([429, 500, 503, 'reset'] as const)(
  'retries after %s and then reports the vault as unavailable',
  { tags: ['slow'] },
  async (fault) => {
    const unavailable = { code: 'storage-unavailable', retryAfter: 5 };
    vault.faults = Array(4).fill(fault);
    await expect(ring.wrap(randomBytes(32))).rejects.toMatchObject(unavailable);
    vault.faults = [fault];
    const { keyId, wrapped } = await ring.wrap(randomBytes(32));
    vault.faults = Array(4).fill(fault);
    await expect(ring.unwrap(keyId, wrapped)).rejects.toMatchObject(unavailable);
    vault.faults = [fault];
    await ring.unwrap(keyId, wrapped);
  },
);

test('reports a vault that does not respond as unavailable', async () => {
  const { timeout } = AbortSignal;
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout.call(AbortSignal, 50));
  vault.faults = ['silence'];
  await expect(ring.currentKeyId()).rejects.toMatchObject({ code: 'storage-unavailable' });
});

test.each([
  'http://contoso.vault.azure.net/keys/data-keys',
  'https://contoso.vault.azure.net/keys/data-keys/',
  'https://contoso.vault.azure.net/keys/data-keys?a=b',
  'https://contoso.vault.azure.net/secrets/data-keys',
  'https://user@contoso.vault.azure.net/keys/data-keys',
  FIRST,
  'data-keys',
])('rejects %s as the address of a key', (keyUri) => {
  expect(() => createKeyVaultKeyRing({ keyUri, credential })).toThrow(
    expect.objectContaining({ code: 'wrong-setting', message: expect.stringContaining('KEY_ENCRYPTION_KEY_URI') }),
  );
});
