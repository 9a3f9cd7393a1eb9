import { RowkeyError } from '../errors.ts';
import { settings } from '../settings.ts';
import type { KeyRing } from './key-ring.ts';
import { keyVaultKeyRing } from './key-vault-key-ring.ts';
import { localKeyRing } from './local-key-ring.ts';
import { managedIdentity } from './managed-identity.ts';

let current: KeyRing | undefined;

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
    wrap: async (dataKey) => opened().wrap(dataKey),
    unwrap: async (keyId, wrapped) => opened().unwrap(keyId, wrapped),
    currentKeyId: async () => opened().currentKeyId(),
  };
}

function open(): KeyRing {
  const { KEY_ENCRYPTION_KEY_FILE: file, KEY_ENCRYPTION_KEY_URI: keyUri, ...rest } = settings();
  if (file) return localKeyRing(file);
  if (keyUri) return keyVaultKeyRing({ keyUri, credential: managedIdentity(rest.AzureWebJobsStorage__clientId) });
  throw new RowkeyError(
    'wrong-setting',
    'Encrypted properties need the setting KEY_ENCRYPTION_KEY_FILE or KEY_ENCRYPTION_KEY_URI.',
  );
}
