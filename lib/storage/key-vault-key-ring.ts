import { constants, createPublicKey, type KeyObject, publicEncrypt } from 'node:crypto';
import { type HttpClient, isRestError } from '@azure/core-rest-pipeline';
import type { TokenCredential } from '@azure/identity';
import type { CryptographyClient, KeyVaultKey } from '@azure/keyvault-keys';
import { RowkeyError, unavailable } from '../base/errors.ts';
import { loadOnce } from '../base/once.ts';
import { MINUTE_MS } from '../base/time.ts';
import { type KeyRing, UnwrapFailed } from './key-ring.ts';

const ALGORITHM = 'RSA-OAEP-256';
/** How long the current version of the key is cached. */
const LOOK_AGAIN_AFTER_MS = 5 * MINUTE_MS;
const TIMEOUT_MS = 10_000;
const RETRIES = { maxRetries: 3, retryDelayInMs: 200, maxRetryDelayInMs: 2_000 };
const NO_ANSWER = 'The key vault is unavailable.';

interface KeyVaultOptions {
  /** The URL of an RSA key without a version: `https://{vault}.vault.azure.net/keys/{name}`. */
  readonly keyUri: string;
  /** The identity of the credential needs the role Key Vault Crypto Service Encryption User. */
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
 * Uses a key in Azure Key Vault; the private key stays there. Wrapping needs only the public key and is done in process.
 * Unwrapping is one request to the vault for each data key. Throws `wrong-setting` if `keyUri` is not the URL of a key.
 */
export function createKeyVaultKeyRing({ keyUri, credential, httpClient }: KeyVaultOptions): KeyRing {
  const { vaultUrl, name, id } = parseKeyUri(keyUri);
  const versions = new Map<string, Version>();
  let kept: CurrentKey | undefined;
  let asked: Promise<CurrentKey> | undefined;

  /** New for each client, because a client changes its options. */
  const clientOptions = () => ({ retryOptions: RETRIES, ...(httpClient ? { httpClient } : {}) });

  // Loaded at first use, because loading is slow and most instances decrypt nothing.
  const openVault = loadOnce(async () => {
    const { KeyClient } = await import('@azure/keyvault-keys');
    return new KeyClient(vaultUrl, credential, clientOptions());
  });

  async function current(): Promise<CurrentKey> {
    if (kept && Date.now() < kept.until) return kept;
    asked ??= lookUp().finally(() => {
      asked = undefined;
    });
    kept = await asked;
    return kept;
  }

  async function lookUp(): Promise<CurrentKey> {
    const client = await openVault();
    const key = await vaultCall(client.getKey(name, { abortSignal: AbortSignal.timeout(TIMEOUT_MS) }));
    return { ...requireUsable(key, id), until: Date.now() + LOOK_AGAIN_AFTER_MS };
  }

  async function open(version: string): Promise<Version> {
    const { CryptographyClient } = await import('@azure/keyvault-keys');
    // With only the address, the client would fetch the key first and reject an expired one, which the vault still unwraps
    // with.
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
      // Wait for the first call, which authenticates: concurrent calls can lose their body during authentication.
      if (opened.first) await Promise.allSettled([opened.first]);
      const call = opened.client.unwrapKey(ALGORITHM, wrapped, { abortSignal: AbortSignal.timeout(TIMEOUT_MS) });
      opened.first ??= call;
      const { result } = await vaultCall(call.catch(refuseBytes));
      return result;
    },
    currentKeyId: async () => (await current()).keyId,
  };
}

/** Names of vaults and keys are case-insensitive; the id is in lower case. */
function parseKeyUri(keyUri: string): { vaultUrl: string; name: string; id: string } {
  const { origin, pathname, href } = new URL(URL.canParse(keyUri) ? keyUri : 'none:');
  const name = /^\/keys\/([0-9a-z-]+)$/i.exec(pathname)?.[1];
  if (!name || !origin.startsWith('https:') || href !== origin + pathname)
    throw new RowkeyError(
      'wrong-setting',
      'KEY_ENCRYPTION_KEY_URI must be https://{vault}.vault.azure.net/keys/{name}, without a version.',
    );
  return { vaultUrl: origin, name, id: href.toLowerCase() };
}

/** Only a version of this key is accepted: stored data must not choose the hosts that get the app's token. */
function versionIn(keyId: string, id: string): string {
  const version = /^([0-9a-f]+)$/.exec(keyId.toLowerCase().slice(id.length + 1))?.[1];
  if (!version || keyId.toLowerCase() !== `${id}/${version}`)
    throw new RowkeyError(
      'wrong-setting',
      'The data key was wrapped with a key other than that of KEY_ENCRYPTION_KEY_URI.',
    );
  return version;
}

/** Throws unless the vault would wrap with this key now: data wrapped with another key could not be read again. */
function requireUsable({ key, properties }: KeyVaultKey, id: string): Pick<CurrentKey, 'keyId' | 'publicKey'> {
  const { version, enabled, notBefore, expiresOn } = properties;
  const now = new Date();
  if (!key?.n || !key.e || !version)
    throw new RowkeyError('wrong-setting', 'The key at KEY_ENCRYPTION_KEY_URI must be an RSA key.');
  if (enabled === false || (notBefore && now < notBefore) || (expiresOn && expiresOn <= now))
    throw new RowkeyError('wrong-setting', 'The key at KEY_ENCRYPTION_KEY_URI is disabled, expired or not valid yet.');
  const jwk = { kty: 'RSA', n: base64url(key.n), e: base64url(key.e) };
  return { keyId: `${id}/${version}`, publicKey: createPublicKey({ key: jwk, format: 'jwk' }) };
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

/** The vault returns 400 for bytes that this key has not wrapped. */
function refuseBytes(error: unknown): never {
  throw isRestError(error) && error.statusCode === 400 ? new UnwrapFailed(error) : error;
}

/** Translates the failure of a call to the vault; rethrows an unknown failure unchanged. */
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
      { cause: error },
    );
  if (status === 404)
    return new RowkeyError('wrong-setting', 'The key vault does not have the key at KEY_ENCRYPTION_KEY_URI.', {
      cause: error,
    });
  return error;
}
