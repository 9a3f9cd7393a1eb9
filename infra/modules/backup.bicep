// The storage account of the backup. The app may read it and add to it, and cannot delete from it.

import { backupRoleId } from 'roles.bicep'
import { Tags } from 'types.bicep'

@description('Name of the storage account.')
@minLength(3)
@maxLength(24)
param name string

@description('Region. Another one than that of the app survives the loss of a region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Redundancy.')
param sku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'

@description('Container of the backup.')
param containerName string

@description('Days for which everything can be had back.')
@minValue(1)
param days int

@description('Whether the account is locked against deletion, and the backup against changes.')
param isProtected bool

@description('Whether the immutability policy of the backup has been locked.')
param isBackupLocked bool

@description('Object id of the identity of the app.')
param principalId string

@description('Id of the workspace that receives metrics and logs.')
param workspaceId string

// A snapshot uses parts again that are younger than the retention, and blobs are copied again after that time. The two days are for the snapshot
// before the first moment, and for rules that run late.
var journalKeptDays = days + 2
var partsKeptDays = 2 * days + 2

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: sku
  }
  properties: {
    // Cool storage bills at least 30 days of each blob.
    accessTier: days < 30 ? 'Hot' : 'Cool'
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    // The app has no network of its own.
    publicNetworkAccess: 'Enabled'
    sasPolicy: {
      expirationAction: 'Log'
      sasExpirationPeriod: '00.01:00:00'
    }
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (isProtected) {
  scope: account
  name: 'keep'
  properties: {
    level: 'CanNotDelete'
    notes: 'The account holds the backup of the app.'
  }
}

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: {
      enabled: true
      days: 7
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: 7
    }
  }
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobService
  name: containerName
  properties: {
    publicAccess: 'None'
  }
}

// The app can create a blob and append to the journal, and nobody can change or delete a blob before the days since its last append have
// passed. Only a policy that an operator locks cannot be shortened. The service rejects a deployment of a locked policy.
resource policy 'Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies@2025-06-01' = if (isProtected && !isBackupLocked) {
  parent: container
  name: 'default'
  properties: {
    immutabilityPeriodSinceCreationInDays: days
    allowProtectedAppendWrites: true
  }
}

// The tier of an append blob cannot be set, so rules can only delete.
var expiries = [
  {
    name: 'delete-old-journal'
    blobTypes: ['appendBlob', 'blockBlob']
    folders: ['journal', 'manifests', 'progress']
    days: journalKeptDays
  }
  {
    name: 'delete-old-parts'
    blobTypes: ['blockBlob']
    folders: ['parts', 'blobs']
    days: partsKeptDays
  }
]

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: map(expiries, expiry => {
        name: expiry.name
        enabled: true
        type: 'Lifecycle'
        definition: {
          filters: {
            blobTypes: expiry.blobTypes
            prefixMatch: map(expiry.folders, folder => '${containerName}/${folder}/')
          }
          actions: {
            baseBlob: {
              delete: {
                daysAfterModificationGreaterThan: expiry.days
              }
            }
          }
        }
      })
    }
  }
  dependsOn: [blobService]
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, principalId, 'backup')
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: backupRoleId()
    description: 'Adds to the backup, and reads it.'
  }
}

resource blobDiagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: blobService
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'StorageDelete'
        enabled: true
      }
    ]
    metrics: [
      {
        category: 'Transaction'
        enabled: true
      }
    ]
  }
}
