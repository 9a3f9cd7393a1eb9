import { ManagedIdentityCredential, type TokenCredential } from '@azure/identity';

/** The app's identity in Azure: user-assigned with this client id, else system-assigned. */
export function managedIdentity(clientId: string | undefined): TokenCredential {
  return clientId ? new ManagedIdentityCredential({ clientId }) : new ManagedIdentityCredential();
}
