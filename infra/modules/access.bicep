// Who may do what. Every role of the app is on this page, each on the one resource it is for.

import { roles } from 'roles.bicep'

@description('Name of the identity of the app.')
param identityName string

@description('Object id of the identity of the app.')
param principalId string

@description('Name of the storage account.')
param storageAccountName string

@description('Name of the key vault.')
param keyVaultName string

@description('Name of the key-encryption key.')
param keyName string

@description('Name of the Application Insights component.')
param applicationInsightsName string

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageAccountName
}

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

// The names are made of what is known before anything is deployed, so that a what-if shows each assignment.

resource blobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, identityName, roles['Storage Blob Data Owner'])
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Storage Blob Data Owner'])
    description: 'Owner is what the Functions host asks for, for its leases and the package; making user delegation keys is part of it.'
  }
}

resource queues 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, identityName, roles['Storage Queue Data Contributor'])
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Storage Queue Data Contributor'])
    description: 'Sends and takes messages, poison queues included.'
  }
}

resource tables 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, identityName, roles['Storage Table Data Contributor'])
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Storage Table Data Contributor'])
    description: 'Reads and writes rows; makes and drops the tables that are named by the day.'
  }
}

resource tableGrants 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, identityName, roles['Storage Table Delegator'])
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Storage Table Delegator'])
    description: 'Asks for the user delegation key with which grants for rows are signed.'
  }
}

resource encryption 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: key
  name: guid(key.id, identityName, roles['Key Vault Crypto Service Encryption User'])
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Key Vault Crypto Service Encryption User'])
    description: 'Reads the public key and unwraps data keys, with this one key; may not make, change or delete keys.'
  }
}

resource telemetry 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: applicationInsights
  name: guid(applicationInsights.id, identityName, roles['Monitoring Metrics Publisher'])
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Monitoring Metrics Publisher'])
    description: 'Sends logs and metrics.'
  }
}
