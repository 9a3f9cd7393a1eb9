import type { TokenCredential } from '@azure/identity';
import { loadOnce } from '../base/once.ts';

/**
 * The app's identity in Azure: user-assigned with this client id, else system-assigned. Its library is loaded for the first token,
 * because loading it takes longer than registering all functions.
 */
export function managedIdentity(clientId: string | undefined): TokenCredential {
  const open = loadOnce(async () => {
    const { ManagedIdentityCredential } = await import('@azure/identity');
    return clientId ? new ManagedIdentityCredential({ clientId }) : new ManagedIdentityCredential();
  });
  return { getToken: async (scopes, options) => (await open()).getToken(scopes, options) };
}
