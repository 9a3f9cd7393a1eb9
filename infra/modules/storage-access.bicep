// Every role assignment of the app on one storage account.

import { roleId } from 'roles.bicep'

@description('Object id of the identity of the app.')
param principalId string

@description('Name of the storage account.')
param storageAccountName string

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageAccountName
}

// Names have the id of the principal: Azure rejects another principal under the name of an assignment, so without the id a
// deployment would fail once the identity has been deleted and created again.

resource blobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, principalId, roleId('Storage Blob Data Owner'))
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleId('Storage Blob Data Owner')
    description: 'The Functions host requires Owner for its leases and the package. The role includes user delegation keys.'
  }
}

resource queues 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, principalId, roleId('Storage Queue Data Contributor'))
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleId('Storage Queue Data Contributor')
    description: 'Sends and receives messages, also of poison queues.'
  }
}

resource tables 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, principalId, roleId('Storage Table Data Contributor'))
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleId('Storage Table Data Contributor')
    description: 'Reads and writes rows; creates and deletes the tables of days.'
  }
}

resource tableGrants 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, principalId, roleId('Storage Table Delegator'))
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleId('Storage Table Delegator')
    description: 'Gets the user delegation key that signs grants for rows.'
  }
}
