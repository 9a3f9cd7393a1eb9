import { ManagedIdentityCredential, type TokenCredential } from '@azure/identity';

/** The identity of the app in Azure: the one with the client id, or else the one that the system assigned. */
export function managedIdentity(clientId: string | undefined): TokenCredential {
  return clientId ? new ManagedIdentityCredential({ clientId }) : new ManagedIdentityCredential();
}
