import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import { keptFor } from '../../base/once.ts';
import { MINUTE_MS } from '../../base/time.ts';
import { pick, type Values } from '../../base/values.ts';
import { isSealed, ReferenceBroken, type Sealed } from '../../define/codec/entity-codec.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import { type Entity, type Feature, formerOf } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { fieldSchemas } from '../../define/schema/field-schema.ts';
import { keysWith } from '../../define/validate/feature-errors.ts';
import { type KeyRing, UnwrapFailed } from '../../storage/key-ring.ts';

/**
 * Encrypted properties pattern: AES-256-GCM with a data key for each entity. The data key is stored beside the ciphertext,
 * wrapped by a key-encryption key. The ciphertext is bound to the entity's address and the field's name, so it cannot be
 * decrypted in another row or field. Copies in indexes contain the ciphertext, as do all reads that bypass the API.
 *
 *   v1.{id of the wrapping key}.{wrapped data key}.{nonce}.{ciphertext and tag}     each base64url
 *
 * A row has the same parts as a binary property, in less than half of the bytes: a character of a text takes two. Rows of earlier
 * releases have the text.
 *
 *   1, {length of the id}{id of the wrapping key}, {length of the data key}{wrapped data key}, {nonce}, {ciphertext and tag}
 */
export const encryptedProperties: Feature = {
  name: 'encrypted properties',
  isUsed: ({ encrypted }) => encrypted.length > 0,
  *validate(entity) {
    const { encrypted, columns, access } = entity;
    for (const field of encrypted) {
      if (columns[field] !== 'String') yield `the encrypted field "${field}" is not a text. Declare it as z.string().`;
      if (!Object.hasOwn(access.restricted ?? {}, field))
        yield `the encrypted field "${field}" is not restricted. Name the roles that read it in access.restricted.`;
      for (const key of keysWith(entity, field))
        yield `the encrypted field "${field}" is in ${key} in plain text. Remove it from encrypted, or from ${key}.`;
    }
  },
  stored: {
    references: ({ encrypted }) => encrypted,
    columns: {
      names: ({ encrypted }, field) => (encrypted.includes(field) ? [field] : undefined),
      /** A value of an unknown form stays the text that it is. Throws `too-large`. */
      encode(_entity, field, value) {
        if (!isSealed(value)) return undefined;
        const form = storedForm(value);
        if ('stored' in form) return [[field, form.stored]];
        throw new RowkeyError('too-large', `The encrypted field ${field} is longer than it can be.`, {
          field,
          accepted: `at most ${form.room - TAG_BYTES} bytes in UTF-8`,
        });
      },
      decode(_entity, field, properties) {
        const stored = properties[field];
        if (stored === undefined || stored === null) return undefined;
        return stored instanceof Uint8Array ? fromBytes(Buffer.from(stored)) : { sealed: String(stored) };
      },
      longest({ schema }, field) {
        const { maxLength = MAX_BINARY_BYTES } = fieldSchemas(schema)[field] ?? {};
        return Math.min(MAX_BINARY_BYTES, MAX_BYTES_AROUND + UTF8_BYTES * maxLength);
      },
    },
    async store(engine, entity, values, current) {
      const plain: Record<string, string> = {};
      for (const field of entity.encrypted) {
        const value = values[field];
        if (typeof value === 'string') plain[field] = value;
      }
      const fields = Object.keys(plain);
      if (fields.length === 0) return values;
      const isSame = await decryptsTo(
        engine,
        entity,
        { ...pick(values, entity.keyFields), ...pick(current, fields) },
        plain,
      );
      return { ...values, ...(isSame ? pick(current, fields) : await seal(engine, entity, values, plain)) };
    },
    async load(engine, entity, values, field) {
      const value = values[field];
      return isSealed(value) ? await open(engine, entity, values, { field, sealed: value }) : undefined;
    },
    refusePatch({ encrypted }, fields) {
      const field = encrypted.find((each) => fields.includes(each));
      return field === undefined
        ? undefined
        : new RowkeyError('invalid-input', `"${field}" is encrypted and cannot be changed by PATCH.`, {
            field,
            accepted: 'PUT with the whole entity',
          });
    },
  },
  memory: {
    remember: ({ encrypted }) => ({ encrypted }),
    *refuse({ encrypted: now }, before) {
      const { encrypted } = Memory.parse(before);
      for (const field of new Set([...encrypted, ...now]))
        if (encrypted.includes(field) !== now.includes(field))
          yield `the field ${field} was ${encrypted.includes(field) ? '' : 'not '}declared encrypted`;
    },
  },
  check: {
    /** Only the form of a ciphertext: to decrypt it would take the key-encryption key. */
    unreadable: ({ encrypted }, values) =>
      encrypted.filter((field) => values[field] !== undefined && !hasSealedForm(values[field])),
  },
};

const Memory = z.object({ encrypted: z.array(z.string()).default([]) });

/** True if all of these fields are encrypted and decrypt to these texts. */
async function decryptsTo(
  engine: Engine,
  entity: Entity,
  values: Values,
  texts: Readonly<Record<string, string>>,
): Promise<boolean> {
  const results = await Promise.all(
    Object.entries(texts).map(async ([field, text]) => {
      const sealed = values[field];
      if (!isSealed(sealed)) return false;
      try {
        return (await open(engine, entity, values, { field, sealed })) === text;
      } catch (error) {
        if (error instanceof SealBroken) return false;
        throw error;
      }
    }),
  );
  return results.every((isSame) => isSame);
}

/** A ciphertext cannot be decrypted: it was changed, or copied to another row or field. */
export class SealBroken extends ReferenceBroken {
  override readonly name = 'SealBroken';
}

const FORM = 'v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const BINARY_FORM = 1;
/** Of a number before each part of variable length. */
const LENGTH_BYTES = 2;
/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const MAX_BINARY_BYTES = 65_536;
/** The most bytes of a UTF-16 code unit in UTF-8. */
const UTF8_BYTES = 3;
/** At least the bytes beside a ciphertext: the id of a key, and a data key that RSA has wrapped. */
const MAX_BYTES_AROUND = 1_000;
/** Unwrapping a data key is a request to Key Vault, so data keys are cached. */
const KEYS_KEPT = 2_000;
const KEYS_KEPT_MS = 5 * MINUTE_MS;

/** Encrypts the fields of `plain` for the entity with `key`, with one new data key. Throws `wrong-setting`. */
export async function seal(
  { keys }: Pick<Engine, 'keys'>,
  entity: Entity,
  key: Values,
  plain: Readonly<Record<string, string>>,
): Promise<Record<string, Sealed>> {
  const dataKey = randomBytes(KEY_BYTES);
  const { keyId, wrapped } = await keys.wrap(dataKey);
  const sealed = Object.entries(plain).map(([field, text]) => {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, dataKey, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(toAssociatedData(entity, key, field));
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return [field, toSealed({ keyId: Buffer.from(keyId), wrapped: Buffer.from(wrapped), nonce, ciphertext })] as const;
  });
  return Object.fromEntries(sealed);
}

/** Decrypts a field of the entity with `key`. Throws `SealBroken`, and as the key ring does. */
export async function open(
  { keys }: Pick<Engine, 'keys'>,
  entity: Entity,
  key: Values,
  { field, sealed }: { readonly field: string; readonly sealed: Sealed },
): Promise<string> {
  const { nonce, ciphertext, ...wrapping } = parseSealed(sealed);
  const dataKey = await unwrapDataKey(keys, wrapping);
  try {
    const decipher = createDecipheriv(CIPHER, dataKey, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(toAssociatedData(entity, key, field));
    decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
    return decipher.update(ciphertext.subarray(0, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    // Before an entity is moved to another key, its ciphertexts are those of the former one.
    const former = formerOf(entity);
    if (former) return open({ keys }, former, key, { field, sealed });
    throw new SealBroken(`The field "${field}" of an entity of ${entity.name} cannot be decrypted.`);
  }
}

/** Wraps the data key with the current key-encryption key. The ciphertext stays the same. */
export async function rewrap({ keys }: Pick<Engine, 'keys'>, sealed: Sealed): Promise<Sealed> {
  const { nonce, ciphertext, ...wrapping } = parseSealed(sealed);
  if (toText(wrapping.keyId) === (await keys.currentKeyId())) return sealed;
  const { keyId, wrapped } = await keys.wrap((await unwrapDataKey(keys, wrapping)).export());
  return toSealed({ keyId: Buffer.from(keyId), wrapped: Buffer.from(wrapped), nonce, ciphertext });
}

/** The wrapped data key of a sealed value and the id of the key that wrapped it, both in base64url. */
interface Wrapping {
  readonly keyId: string;
  readonly wrapped: string;
}

interface Parts extends Wrapping {
  readonly nonce: Buffer;
  readonly ciphertext: Buffer;
}

function toSealed(parts: Readonly<Record<'keyId' | 'wrapped' | 'nonce' | 'ciphertext', Buffer>>): Sealed {
  const [keyId, wrapped] = [parts.keyId.toString('base64url'), parts.wrapped.toString('base64url')];
  const [nonce, ciphertext] = [parts.nonce.toString('base64url'), parts.ciphertext.toString('base64url')];
  return { sealed: [FORM, keyId, wrapped, nonce, ciphertext].join('.') };
}

type StoredForm = { readonly stored: Uint8Array | string } | { readonly room: number };

/** What is stored of a sealed value, or the bytes of a ciphertext for which there is room. Kept, because the copies in indexes have the value too. */
const storedForm = keptFor((sealed: Sealed): StoredForm => {
  const parts = readParts(sealed);
  if (!parts) return { stored: sealed.sealed };
  const { nonce, ciphertext } = parts;
  const [keyId, wrapped] = [Buffer.from(parts.keyId, 'base64url'), Buffer.from(parts.wrapped, 'base64url')];
  const room = MAX_BINARY_BYTES - (1 + LENGTH_BYTES + keyId.length + LENGTH_BYTES + wrapped.length + nonce.length);
  if (ciphertext.length > room) return { room };
  const lengths = Buffer.alloc(2 * LENGTH_BYTES);
  lengths.writeUInt16BE(keyId.length);
  lengths.writeUInt16BE(wrapped.length, LENGTH_BYTES);
  const [ofKeyId, ofWrapped] = [lengths.subarray(0, LENGTH_BYTES), lengths.subarray(LENGTH_BYTES)];
  const bytes = Buffer.concat([Buffer.of(BINARY_FORM), ofKeyId, keyId, ofWrapped, wrapped, nonce, ciphertext]);
  // A text that was changed by hand may be another spelling of the same bytes.
  return { stored: toSealed({ keyId, wrapped, nonce, ciphertext }).sealed === sealed.sealed ? bytes : sealed.sealed };
});

/** Never throws, because rows are also changed by hand: bytes of an unknown form become a text of an unknown form. */
function fromBytes(bytes: Buffer): Sealed {
  const keyIdAt = 1 + LENGTH_BYTES;
  if (bytes[0] !== BINARY_FORM || bytes.length < keyIdAt) return { sealed: bytes.toString('base64url') };
  const keyIdEnd = keyIdAt + bytes.readUInt16BE(1);
  const wrappedAt = keyIdEnd + LENGTH_BYTES;
  const nonceAt = wrappedAt + (wrappedAt <= bytes.length ? bytes.readUInt16BE(keyIdEnd) : 0);
  const ciphertextAt = nonceAt + NONCE_BYTES;
  return toSealed({
    keyId: bytes.subarray(keyIdAt, keyIdEnd),
    wrapped: bytes.subarray(wrappedAt, nonceAt),
    nonce: bytes.subarray(nonceAt, ciphertextAt),
    ciphertext: bytes.subarray(ciphertextAt),
  });
}

function hasSealedForm(value: unknown): boolean {
  return isSealed(value) && readParts(value) !== undefined;
}

function parseSealed(sealed: Sealed): Parts {
  const parts = readParts(sealed);
  if (!parts) throw new SealBroken('The encrypted value has an unknown form.');
  return parts;
}

/** Undefined for a value of an unknown form. */
function readParts({ sealed }: Sealed): Parts | undefined {
  const [form, keyId, wrapped, nonceText = '', ciphertextText = ''] = sealed.split('.');
  const nonce = Buffer.from(nonceText, 'base64url');
  const ciphertext = Buffer.from(ciphertextText, 'base64url');
  const isWhole = nonce.length === NONCE_BYTES && ciphertext.length >= TAG_BYTES;
  if (form !== FORM || keyId === undefined || wrapped === undefined || !isWhole) return undefined;
  return { keyId, wrapped, nonce, ciphertext };
}

function toText(base64url: string): string {
  return Buffer.from(base64url, 'base64url').toString();
}

function toAssociatedData(entity: Entity, key: Values, field: string): Buffer {
  const { table, partition, row } = addressOf(entity, key);
  return Buffer.from(JSON.stringify([table, partition, row, field]));
}

function throwSealBroken(error: unknown): never {
  throw error instanceof UnwrapFailed
    ? new SealBroken('The data key of an encrypted value cannot be unwrapped.')
    : error;
}

const dataKeysOf = keptFor((_: KeyRing) => new LRUCache<string, KeyObject>({ max: KEYS_KEPT, ttl: KEYS_KEPT_MS }));

async function unwrapDataKey(keys: KeyRing, { keyId, wrapped }: Wrapping): Promise<KeyObject> {
  const cache = dataKeysOf(keys);
  const id = `${keyId}.${wrapped}`;
  const known = cache.get(id);
  if (known) return known;
  const bytes = await keys.unwrap(toText(keyId), Buffer.from(wrapped, 'base64url')).catch(throwSealBroken);
  // A key object is imported once; a cipher imports bytes at each use, which takes longer than decrypting a short text.
  const dataKey = createSecretKey(bytes);
  cache.set(id, dataKey);
  return dataKey;
}
