import { RowkeyError } from '../base/errors.ts';
import type { KeyRing } from './key-ring.ts';
import { createKeyVaultKeyRing } from './key-vault-key-ring.ts';
import { createLocalKeyRing } from './local-key-ring.ts';
import { managedIdentity } from './managed-identity.ts';

/** The location of the key-encryption keys. */
export type KeyRingOptions =
  /** A file on this machine. */
  | { readonly file: string }
  /** The `https://` id of a key in Key Vault, without a version, and the client id of the identity that may use the key. */
  | { readonly keyUri: string; readonly clientId?: string | undefined };

/**
 * A key ring that is opened at its first use. Without options every call throws `wrong-setting`: an app that encrypts nothing
 * needs no keys.
 */
export function createLazyKeyRing(optionsOf: () => KeyRingOptions | undefined): KeyRing {
  let ring: KeyRing | undefined;
  const openOnce = () => {
    ring ??= open(optionsOf());
    return ring;
  };
  return {
    wrap: async (dataKey) => openOnce().wrap(dataKey),
    unwrap: async (keyId, wrapped) => openOnce().unwrap(keyId, wrapped),
    currentKeyId: async () => openOnce().currentKeyId(),
  };
}

function open(options: KeyRingOptions | undefined): KeyRing {
  if (!options)
    throw new RowkeyError(
      'wrong-setting',
      'Encrypted properties need the setting KEY_ENCRYPTION_KEY_FILE or KEY_ENCRYPTION_KEY_URI.',
    );
  if ('file' in options) return createLocalKeyRing(options.file);
  return createKeyVaultKeyRing({ keyUri: options.keyUri, credential: managedIdentity(options.clientId) });
}
