import { RowkeyError } from '../errors.ts';
import type { KeyRing } from './key-ring.ts';
import { keyVaultKeyRing } from './key-vault-key-ring.ts';
import { localKeyRing } from './local-key-ring.ts';
import { managedIdentity } from './managed-identity.ts';

/** Where the key-encryption keys are kept. */
export type KeyRingOptions =
  /** A file on this machine. */
  | { readonly file: string }
  /** The `https://` id of a key in Key Vault, without a version, and the client id of the identity that may use the key. */
  | { readonly keyUri: string; readonly clientId?: string | undefined };

/**
 * A key ring that is opened at its first use. Without options every call throws `wrong-setting`: an app that encrypts nothing
 * needs no keys.
 */
export function lazyKeyRing(optionsOf: () => KeyRingOptions | undefined): KeyRing {
  let ring: KeyRing | undefined;
  const opened = () => {
    ring ??= open(optionsOf());
    return ring;
  };
  return {
    wrap: async (dataKey) => opened().wrap(dataKey),
    unwrap: async (keyId, wrapped) => opened().unwrap(keyId, wrapped),
    currentKeyId: async () => opened().currentKeyId(),
  };
}

function open(options: KeyRingOptions | undefined): KeyRing {
  if (!options)
    throw new RowkeyError(
      'wrong-setting',
      'Encrypted properties need the setting KEY_ENCRYPTION_KEY_FILE or KEY_ENCRYPTION_KEY_URI.',
    );
  if ('file' in options) return localKeyRing(options.file);
  return keyVaultKeyRing({ keyUri: options.keyUri, credential: managedIdentity(options.clientId) });
}
