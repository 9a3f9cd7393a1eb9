import { constants, createPublicKey, type KeyObject, publicEncrypt } from 'node:crypto';
import { type HttpClient, isRestError } from '@azure/core-rest-pipeline';
import type { TokenCredential } from '@azure/identity';
import type { CryptographyClient, KeyClient, KeyVaultKey } from '@azure/keyvault-keys';
import { RowkeyError, unavailable } from '../errors.ts';
import { MINUTE_MS } from '../time.ts';
import { type KeyRing, UnwrapFailed } from './key-ring.ts';

const ALGORITHM = 'RSA-OAEP-256';
/** After this long the vault is asked anew which version is the current one. */
const LOOK_AGAIN_AFTER_MS = 5 * MINUTE_MS;
const TIMEOUT_MS = 10_000;
const RETRIES = { maxRetries: 3, retryDelayInMs: 200, maxRetryDelayInMs: 2_000 };
const NO_ANSWER = 'The key vault does not answer now.';

export interface KeyVaultOptions {
  /** `https://{vault}.vault.azure.net/keys/{name}`, of an RSA key and without its version. */
  readonly keyUri: string;
  /** Of an identity with the role Key Vault Crypto Service Encryption User. */
  readonly credential: TokenCredential;
  readonly httpClient?: HttpClient;
}

interface CurrentKey {
  readonly keyId: string;
  readonly publicKey: KeyObject;
  readonly until: number;
}

interface Version {
  readonly client: CryptographyClient;
  first?: Promise<unknown>;
}

/**
 * Wraps with a key in Azure Key Vault, whose private part stays there. Wrapping needs the public part only and is done
 * here; unwrapping asks the vault, one request for each data key. Throws `wrong-setting` when `keyUri` is no such address.
 */
export function keyVaultKeyRing({ keyUri, credential, httpClient }: KeyVaultOptions): KeyRing {
  const { vaultUrl, name, id } = parseKeyUri(keyUri);
  const versions = new Map<string, Version>();
  let vault: Promise<KeyClient> | undefined;
  let kept: CurrentKey | undefined;
  let asked: Promise<CurrentKey> | undefined;

  /** New for each client, since a client changes what it is given. */
  const clientOptions = () => ({ retryOptions: RETRIES, ...(httpClient ? { httpClient } : {}) });

  async function current(): Promise<CurrentKey> {
    if (kept && Date.now() < kept.until) return kept;
    asked ??= lookUp().finally(() => {
      asked = undefined;
    });
    kept = await asked;
    return kept;
  }

  async function lookUp(): Promise<CurrentKey> {
    // Loaded at first use, as it takes long: most instances that start open nothing that is encrypted.
    vault ??= import('@azure/keyvault-keys').then(
      ({ KeyClient }) => new KeyClient(vaultUrl, credential, clientOptions()),
    );
    const client = await vault;
    const key = await vaultCall(client.getKey(name, { abortSignal: AbortSignal.timeout(TIMEOUT_MS) }));
    return { ...usable(key, id), until: Date.now() + LOOK_AGAIN_AFTER_MS };
  }

  async function open(version: string): Promise<Version> {
    const { CryptographyClient } = await import('@azure/keyvault-keys');
    // Given no more than the address, the client would first fetch the key, and refuse an expired one, which the vault
    // unwraps with.
    const key = { name, id: `${id}/${version}`, properties: { name, vaultUrl, version } };
    const opened = versions.get(version) ?? { client: new CryptographyClient(key, credential, clientOptions()) };
    versions.set(version, opened);
    return opened;
  }

  return {
    async wrap(dataKey) {
      const { keyId, publicKey } = await current();
      const padding = constants.RSA_PKCS1_OAEP_PADDING;
      return { keyId, wrapped: publicEncrypt({ key: publicKey, padding, oaepHash: 'sha256' }, dataKey) };
    },
    async unwrap(keyId, wrapped) {
      const opened = await open(versionIn(keyId, id));
      // The first call authenticates, and has the client to itself: calls that meet it there can lose their body.
      if (opened.first) await Promise.allSettled([opened.first]);
      const call = opened.client.unwrapKey(ALGORITHM, wrapped, { abortSignal: AbortSignal.timeout(TIMEOUT_MS) });
      opened.first ??= call;
      const { result } = await vaultCall(call.catch(refuseBytes));
      return result;
    },
    currentKeyId: async () => (await current()).keyId,
  };
}

/** Names of vaults and of keys mean the same in upper and lower case, so the id is kept in the latter. */
function parseKeyUri(keyUri: string): { vaultUrl: string; name: string; id: string } {
  const { origin, pathname, href } = new URL(URL.canParse(keyUri) ? keyUri : 'none:');
  const name = /^\/keys\/([0-9a-z-]+)$/i.exec(pathname)?.[1];
  if (!name || !origin.startsWith('https:') || href !== origin + pathname)
    throw new RowkeyError(
      'wrong-setting',
      'KEY_ENCRYPTION_KEY_URI has to be https://{vault}.vault.azure.net/keys/{name}, without a version.',
    );
  return { vaultUrl: origin, name, id: href.toLowerCase() };
}

/** What is stored may not choose whom the app's identity talks to: nothing but a version of this very key is accepted. */
function versionIn(keyId: string, id: string): string {
  const version = /^([0-9a-f]+)$/.exec(keyId.toLowerCase().slice(id.length + 1))?.[1];
  if (!version || keyId.toLowerCase() !== `${id}/${version}`)
    throw new RowkeyError(
      'wrong-setting',
      'The data key was wrapped with a key other than that of KEY_ENCRYPTION_KEY_URI.',
    );
  return version;
}

/** The public part of a key with which the vault would wrap now; data wrapped with another could not be read again. */
function usable({ key, properties }: KeyVaultKey, id: string): Pick<CurrentKey, 'keyId' | 'publicKey'> {
  const { version, enabled, notBefore, expiresOn } = properties;
  const now = new Date();
  if (!key?.n || !key.e || !version)
    throw new RowkeyError('wrong-setting', 'The key at KEY_ENCRYPTION_KEY_URI has to be an RSA key.');
  if (enabled === false || (notBefore && now < notBefore) || (expiresOn && expiresOn <= now))
    throw new RowkeyError('wrong-setting', 'The key at KEY_ENCRYPTION_KEY_URI is disabled, expired or not valid yet.');
  const jwk = { kty: 'RSA', n: base64url(key.n), e: base64url(key.e) };
  return { keyId: `${id}/${version}`, publicKey: createPublicKey({ key: jwk, format: 'jwk' }) };
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

/** The vault answers 400 when the bytes are not what the key has wrapped. */
function refuseBytes(error: unknown): never {
  throw isRestError(error) && error.statusCode === 400 ? new UnwrapFailed(error) : error;
}

/** Runs one call to the vault and translates its failure; what is not understood is rethrown as it is. */
async function vaultCall<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    throw translate(error);
  }
}

function translate(error: unknown): unknown {
  if (error instanceof Error && error.name === 'AbortError') return unavailable(NO_ANSWER, error);
  if (!isRestError(error)) return error;
  const status = error.statusCode;
  if (status === undefined || status === 408 || status === 429 || status >= 500) return unavailable(NO_ANSWER, error);
  if (status === 401 || status === 403)
    return new RowkeyError(
      'wrong-setting',
      "The app's identity needs the role Key Vault Crypto Service Encryption User. A disabled key does not unwrap either.",
      {},
      error,
    );
  if (status === 404) return new RowkeyError('wrong-setting', 'The key vault has no such key.', {}, error);
  return error;
}
