// Every role assignment of the app but those on storage, each on one resource.

import { roleId } from 'roles.bicep'

@description('Object id of the identity of the app.')
param principalId string

@description('Name of the key vault.')
param keyVaultName string

@description('Name of the key-encryption key.')
param keyName string

@description('Name of the Application Insights component.')
param applicationInsightsName string

resource vault 'Microsoft.KeyVault/vaults@2025-05-01' existing = {
  name: keyVaultName
}

resource key 'Microsoft.KeyVault/vaults/keys@2025-05-01' existing = {
  parent: vault
  name: keyName
}

resource applicationInsights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: applicationInsightsName
}

// Names have the id of the principal: Azure rejects another principal under the name of an assignment, so without the id a
// deployment would fail once the identity has been deleted and created again.

resource encryption 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: key
  name: guid(key.id, principalId, roleId('Key Vault Crypto Service Encryption User'))
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleId('Key Vault Crypto Service Encryption User')
    description: 'Reads the public key and unwraps data keys with this key. Cannot create, change or delete keys.'
  }
}

resource telemetry 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: applicationInsights
  name: guid(applicationInsights.id, principalId, roleId('Monitoring Metrics Publisher'))
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleId('Monitoring Metrics Publisher')
    description: 'Sends logs and metrics.'
  }
}
