// The role with which an app adds to its backup. An owner of the subscription creates it once (docs/workflows.md), because the identity that
// deploys the app may assign roles and define none.

targetScope = 'subscription'

import { backupRoleName } from 'modules/roles.bicep'

// No built-in role lets its holder add blobs and not delete them. Blocks of a large blob need the right to write.
resource writer 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: backupRoleName()
  properties: {
    // Unique in the tenant.
    roleName: 'Rowkey Backup Writer (${subscription().subscriptionId})'
    description: 'Reads and adds blobs of a backup, and deletes none.'
    type: 'CustomRole'
    permissions: [
      {
        actions: ['Microsoft.Storage/storageAccounts/blobServices/containers/read']
        notActions: []
        dataActions: [
          'Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read'
          'Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write'
          'Microsoft.Storage/storageAccounts/blobServices/containers/blobs/add/action'
        ]
        notDataActions: []
      }
    ]
    assignableScopes: [subscription().id]
  }
}

@description('Name of the role, a GUID, for the condition of the deployer.')
output name string = writer.name
