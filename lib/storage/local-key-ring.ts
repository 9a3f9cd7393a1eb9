import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { RowkeyError } from '../base/errors.ts';
import { type KeyRing, UnwrapFailed } from './key-ring.ts';

const KEY_BYTES = 32;
/** AES key wrap (RFC 3394) with its default initial value. */
const ALGORITHM = 'id-aes256-wrap';
const INITIAL_VALUE = Buffer.alloc(8, 0xa6);

const KeyFile = z
  .object({ current: z.string(), keys: z.record(z.string(), z.base64()) })
  .transform(({ current, keys }) => ({
    current,
    keys: new Map(Object.entries(keys).map(([id, key]) => [id, Buffer.from(key, 'base64')])),
  }))
  .refine(({ current, keys }) => keys.has(current) && [...keys.values()].every((key) => key.length === KEY_BYTES));
type KeyFile = z.infer<typeof KeyFile>;

/**
 * Keys in a file, `{ "current": "<id>", "keys": { "<id>": "<base64 of 32 bytes>" } }`, for one machine and for tests.
 * The file is read at first use and after each change, so a rotation needs no restart. Every call throws `wrong-setting`
 * while the file is missing or invalid.
 */
export function createLocalKeyRing(file: string): KeyRing {
  let kept: { readonly version: string; readonly content: KeyFile } | undefined;

  async function read(): Promise<KeyFile> {
    // Reads the version before the content: a change between the two is read at the next call.
    const version = await versionOf(file);
    if (kept?.version !== version) kept = { version, content: await readKeyFile(file) };
    return kept.content;
  }

  return {
    async wrap(dataKey) {
      const { current, keys } = await read();
      const cipher = createCipheriv(ALGORITHM, keyIn(keys, current), INITIAL_VALUE);
      return { keyId: current, wrapped: Buffer.concat([cipher.update(dataKey), cipher.final()]) };
    },
    async unwrap(keyId, wrapped) {
      const { keys } = await read();
      return unwrapWith(keyIn(keys, keyId), wrapped);
    },
    currentKeyId: async () => (await read()).current,
  };
}

/**
 * Adds a new key to the file and makes it the current one; data keys of earlier keys stay readable. Creates the file, for
 * its owner only, and its folder if they do not exist. The change is atomic. Throws `wrong-setting` if the file is invalid, and `busy`
 * during another rotation, which would lose the key of this one.
 */
export async function rotateLocalKey(file: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const beside = `${file}.new`;
  const handle = await openNew(beside);
  try {
    const { keys } = (await isThere(file)) ? await readKeyFile(file) : { keys: new Map<string, Buffer>() };
    const current = randomUUID();
    keys.set(current, randomBytes(KEY_BYTES));
    const texts = Object.fromEntries(Array.from(keys, ([id, key]) => [id, key.toString('base64')]));
    await handle.writeFile(`${JSON.stringify({ current, keys: texts }, undefined, 2)}\n`);
    // Flushed before it replaces the old file: a lost key is lost data.
    await handle.sync();
    await rename(beside, file);
    return current;
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

function keyIn(keys: KeyFile['keys'], keyId: string): Buffer {
  const key = keys.get(keyId);
  if (!key) throw new RowkeyError('wrong-setting', `The file at KEY_ENCRYPTION_KEY_FILE has no key "${keyId}".`);
  return key;
}

function unwrapWith(key: Buffer, wrapped: Uint8Array): Uint8Array {
  // The cipher unwraps no bytes to an empty key instead of failing.
  if (wrapped.length === 0) throw new UnwrapFailed();
  try {
    const decipher = createDecipheriv(ALGORITHM, key, INITIAL_VALUE);
    return Buffer.concat([decipher.update(wrapped), decipher.final()]);
  } catch (error) {
    throw new UnwrapFailed(error);
  }
}

async function versionOf(file: string): Promise<string> {
  const { ino, mtimeNs, size } = await stat(file, { bigint: true }).catch(throwInvalidFile);
  return `${ino} ${mtimeNs} ${size}`;
}

async function readKeyFile(file: string): Promise<KeyFile> {
  try {
    return KeyFile.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return throwInvalidFile();
  }
}

/** Without a cause, because a parser quotes the keys that it cannot read. */
function throwInvalidFile(): never {
  throw new RowkeyError(
    'wrong-setting',
    'KEY_ENCRYPTION_KEY_FILE must be a readable file of the form {"current": "<id>", "keys": {"<id>": "<base64 of 32 bytes>"}}.',
  );
}

async function openNew(path: string) {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    throw new RowkeyError(
      'busy',
      `Another rotation is running. If none is, delete ${path}, which an interrupted rotation left.`,
    );
  }
}

async function isThere(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
