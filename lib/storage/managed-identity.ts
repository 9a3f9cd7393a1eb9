import type { TokenCredential } from '@azure/identity';

/**
 * The app's identity in Azure: user-assigned with this client id, else system-assigned. Its library is loaded for the first token,
 * because loading it takes longer than registering all functions.
 */
export function managedIdentity(clientId: string | undefined): TokenCredential {
  let opened: Promise<TokenCredential> | undefined;
  const open = async () => {
    const { ManagedIdentityCredential } = await import('@azure/identity');
    return clientId ? new ManagedIdentityCredential({ clientId }) : new ManagedIdentityCredential();
  };
  return {
    async getToken(scopes, options) {
      opened ??= open();
      return (await opened).getToken(scopes, options);
    },
  };
}
