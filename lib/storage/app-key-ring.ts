import { RowkeyError } from '../errors.ts';
import { settings } from '../settings.ts';
import type { KeyRing } from './key-ring.ts';
import { localKeyRing } from './local-key-ring.ts';

let current: Promise<KeyRing> | undefined;

/**
 * The key ring that the settings name, opened at first use: an app that encrypts nothing needs none. Every call throws
 * `wrong-setting` where no setting names one.
 */
export function appKeyRing(): KeyRing {
  const opened = () => {
    current ??= open();
    return current;
  };
  return {
    wrap: async (dataKey) => (await opened()).wrap(dataKey),
    unwrap: async (keyId, wrapped) => (await opened()).unwrap(keyId, wrapped),
    currentKeyId: async () => (await opened()).currentKeyId(),
  };
}

async function open(): Promise<KeyRing> {
  const { KEY_ENCRYPTION_KEY_FILE: file, KEY_ENCRYPTION_KEY_URI: keyUri, ...rest } = settings();
  if (file) return localKeyRing(file);
  if (!keyUri)
    throw new RowkeyError(
      'wrong-setting',
      'Encrypted properties need the setting KEY_ENCRYPTION_KEY_FILE or KEY_ENCRYPTION_KEY_URI.',
    );
  // Loaded where they are needed, since the SDKs take long to load.
  const [{ managedIdentity }, { keyVaultKeyRing }] = await Promise.all([
    import('./managed-identity.ts'),
    import('./key-vault-key-ring.ts'),
  ]);
  return keyVaultKeyRing({ keyUri, credential: managedIdentity(rest.AzureWebJobsStorage__clientId) });
}
