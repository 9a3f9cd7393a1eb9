import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLocalKeyRing, rotateLocalKey } from '../../../lib/storage/local-key-ring.ts';
import { storageKeys } from '../../kit/storage.ts';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-keys-'));
  file = join(folder, 'keys.json');
});
afterEach(() => rm(folder, { recursive: true }));

const dataKeys = fc.uint8Array({ minLength: 32, maxLength: 32 });

test('unwraps every data key, and no wrapped key contains its data key', async () => {
  await rotateLocalKey(file);
  const ring = createLocalKeyRing(file);
  await fc.assert(
    fc.asyncProperty(dataKeys, async (dataKey) => {
      const { keyId, wrapped } = await ring.wrap(dataKey);
      expect(Buffer.from(await ring.unwrap(keyId, wrapped))).toEqual(Buffer.from(dataKey));
      expect(Buffer.from(wrapped).includes(Buffer.from(dataKey.subarray(0, 8)))).toBe(false);
    }),
  );
});

test('wraps a data key as RFC 3394 specifies', async () => {
  const key = Buffer.from('000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F', 'hex').toString('base64');
  await writeFile(file, JSON.stringify({ current: 'rfc', keys: { rfc: key } }));
  const dataKey = Buffer.from('00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F', 'hex');
  const { keyId, wrapped } = await createLocalKeyRing(file).wrap(dataKey);
  expect(keyId).toBe('rfc');
  expect(Buffer.from(wrapped).toString('hex')).toBe(
    '28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21',
  );
});

test('uses a rotated key without a restart and still unwraps with earlier keys', async () => {
  const first = await rotateLocalKey(file);
  const ring = createLocalKeyRing(file);
  const dataKey = randomBytes(32);
  const old = await ring.wrap(dataKey);
  expect(old.keyId).toBe(first);

  const second = await rotateLocalKey(file);
  expect(second).not.toBe(first);
  expect(await ring.currentKeyId()).toBe(second);
  expect(await ring.unwrap(old.keyId, old.wrapped)).toEqual(dataKey);
  const fresh = await ring.wrap(dataKey);
  expect(fresh.keyId).toBe(second);
  expect(await ring.unwrap(fresh.keyId, fresh.wrapped)).toEqual(dataKey);
  await expect(ring.unwrap(first, fresh.wrapped)).rejects.toThrow(storageKeys.UnwrapFailed);
});

test('creates the file for its owner only and leaves no other file', async () => {
  await rotateLocalKey(file);
  await rotateLocalKey(file);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['keys.json']);
  expect(Object.keys(JSON.parse(await readFile(file, 'utf8')).keys).length).toBe(2);
});

test('keeps the keys of all concurrent rotations', async () => {
  const rotations = await Promise.allSettled(Array.from({ length: 10 }, () => rotateLocalKey(file)));
  const done = rotations.flatMap((rotation) => (rotation.status === 'fulfilled' ? [rotation.value] : []));
  const refused = rotations.flatMap((rotation) => (rotation.status === 'rejected' ? [rotation.reason.code] : []));
  expect(Object.keys(JSON.parse(await readFile(file, 'utf8')).keys).sort()).toEqual(done.sort());
  expect(new Set(refused)).toEqual(new Set(refused.length > 0 ? ['busy'] : []));
});

test('does not unwrap changed, shortened or extended bytes', async () => {
  await rotateLocalKey(file);
  const ring = createLocalKeyRing(file);
  const { keyId, wrapped } = await ring.wrap(randomBytes(32));
  await fc.assert(
    fc.asyncProperty(fc.nat(wrapped.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const changed = Uint8Array.from(wrapped, (byte, index) => (index === at ? byte ^ change : byte));
      await expect(ring.unwrap(keyId, changed)).rejects.toThrow(storageKeys.UnwrapFailed);
    }),
  );
  for (let length = 0; length < wrapped.length; length++)
    await expect(ring.unwrap(keyId, wrapped.subarray(0, length))).rejects.toThrow(storageKeys.UnwrapFailed);
  await expect(ring.unwrap(keyId, Buffer.concat([wrapped, Buffer.alloc(8)]))).rejects.toThrow(storageKeys.UnwrapFailed);
});

test('reports a key that is missing from the file as a wrong setting', async () => {
  await rotateLocalKey(file);
  const ring = createLocalKeyRing(file);
  const { wrapped } = await ring.wrap(randomBytes(32));
  for (const keyId of ['another', '', 'constructor', '__proto__'])
    await expect(ring.unwrap(keyId, wrapped)).rejects.toMatchObject({ code: 'wrong-setting' });
});

const SECRET = Buffer.alloc(32, 'secret').toString('base64');
const UNUSABLE = {
  'no JSON': `{"current": "a", "keys": {"a": ${SECRET}}}`,
  'no object': `"${SECRET}"`,
  'no key that is current': JSON.stringify({ current: 'b', keys: { a: SECRET } }),
  'a current that is inherited': JSON.stringify({ current: 'constructor', keys: { a: SECRET } }),
  'a short key': JSON.stringify({ current: 'a', keys: { a: SECRET, b: Buffer.alloc(16).toString('base64') } }),
  'no base64': JSON.stringify({ current: 'a', keys: { a: SECRET.replace('=', '*') } }),
};

test.each(Object.entries(UNUSABLE))(
  'reports a file with %s as a wrong setting without quoting it',
  async (_name, content) => {
    await writeFile(file, content);
    for (const work of [() => createLocalKeyRing(file).currentKeyId(), () => rotateLocalKey(file)]) {
      const error: unknown = await work().catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        code: 'wrong-setting',
        message: expect.stringContaining('KEY_ENCRYPTION_KEY_FILE'),
      });
      expect(inspect(error)).not.toContain(SECRET.slice(0, 4));
    }
    expect(await readFile(file, 'utf8')).toBe(content);
    expect(await readdir(folder)).toEqual(['keys.json']);
  },
);

test('reports a missing file as a wrong setting until the file exists', async () => {
  const ring = createLocalKeyRing(file);
  await expect(ring.wrap(randomBytes(32))).rejects.toMatchObject({
    code: 'wrong-setting',
    message: expect.stringContaining('KEY_ENCRYPTION_KEY_FILE'),
  });
  const keyId = await rotateLocalKey(file);
  expect(await ring.currentKeyId()).toBe(keyId);
});
