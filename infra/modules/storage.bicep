// The storage account, with every table, queue and container of the model, and the retention of blobs.

import { Model, Tags } from 'types.bicep'

@description('Name of the storage account.')
@minLength(3)
@maxLength(24)
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Redundancy: one data centre (LRS) or three zones of the region (ZRS). GRS and GZRS add a copy in another region.')
param sku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'

@description('Tables, queues and containers to create.')
param model Model

@description('Container of the app package.')
param packageContainer string

@description('Origins of web pages that may use storage with a signature. Empty allows none.')
param allowedOrigins string[]

@description('Days for which the audit log is kept.')
@minValue(1)
param auditKeptDays int

@description('Days for which archives of periods are kept. 0 keeps them forever.')
@minValue(0)
param archivesKeptDays int

@description('Days for which a deleted blob or container can be restored.')
@minValue(1)
@maxValue(365)
param undeleteDays int

@description('Whether the account is locked against deletion, and the audit log against changes.')
param isProtected bool

@description('Whether the immutability policy of the audit log has been locked.')
param isAuditLogLocked bool

@description('Id of the workspace that receives metrics and logs.')
param workspaceId string

// The app moves finished uploads out of their container.
var uploadsKeptDays = 2

// Methods that a signature of the app may allow, and headers that a browser needs to read ETags and upload results. The storage
// service answers preflight requests itself.
var exposedHeaders = ['etag', 'x-ms-*']
var tableCorsRules = empty(allowedOrigins)
  ? []
  : [
      {
        allowedOrigins: allowedOrigins
        allowedMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'MERGE', 'DELETE', 'OPTIONS']
        allowedHeaders: ['*']
        exposedHeaders: exposedHeaders
        maxAgeInSeconds: 3600
      }
    ]
var blobCorsRules = empty(allowedOrigins)
  ? []
  : [
      {
        allowedOrigins: allowedOrigins
        allowedMethods: ['GET', 'HEAD', 'PUT', 'OPTIONS']
        allowedHeaders: ['*']
        exposedHeaders: exposedHeaders
        maxAgeInSeconds: 3600
      }
    ]

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: sku
  }
  properties: {
    accessTier: 'Hot'
    // The app uses its identity and signs with user delegation keys, so nobody needs an account key.
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    // Browsers and phones use storage directly, with a signature.
    publicNetworkAccess: 'Enabled'
    // Signatures of the app are valid for at most an hour. Log accepts a longer signature and sets SasExpiryStatus in the
    // resource log of the request. Only deletes are logged (see the diagnostics below), so a longer signature that reads or
    // writes leaves no trace. Block would reject requests because of a wrong clock.
    sasPolicy: {
      expirationAction: 'Log'
      sasExpirationPeriod: '00.01:00:00'
    }
  }
}

// Also keeps Azure Resource Manager from deleting a table, a container or an immutability policy. Clients of the data plane, such
// as the app, still can delete tables and blobs.
resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (isProtected) {
  scope: account
  name: 'keep'
  properties: {
    level: 'CanNotDelete'
    notes: 'The account holds all data of the app.'
  }
}

// Tables

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    cors: {
      corsRules: tableCorsRules
    }
  }
}

resource tables 'Microsoft.Storage/storageAccounts/tableServices/tables@2025-06-01' = [
  for table in model.tables: {
    parent: tableService
    name: table
  }
]

// Queues

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-06-01' = {
  parent: account
  name: 'default'
}

resource queues 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-06-01' = [
  for queue in model.queues: {
    parent: queueService
    name: queue
  }
]

// Blobs

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    cors: {
      corsRules: blobCorsRules
    }
    deleteRetentionPolicy: {
      enabled: true
      days: undeleteDays
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: undeleteDays
    }
  }
}

resource containers 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = [
  for container in model.containers: {
    parent: blobService
    name: container
    properties: {
      publicAccess: 'None'
    }
  }
]

resource auditContainer 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' existing = {
  parent: blobService
  name: model.auditContainer
}

// The role of the app includes deleting and overwriting blobs. Under the policy the app can create a blob and append to it, and
// nobody can change or delete a blob before auditKeptDays after its last append. Only a policy that an operator locks
// (docs/reference/infrastructure.md, Protection) cannot be shortened. The service rejects a deployment of a locked policy.
resource auditPolicy 'Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies@2025-06-01' = if (isProtected && !isAuditLogLocked) {
  parent: auditContainer
  name: 'default'
  properties: {
    immutabilityPeriodSinceCreationInDays: auditKeptDays
    allowProtectedAppendWrites: true
  }
  dependsOn: [containers]
}

resource packages 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobService
  name: packageContainer
  properties: {
    publicAccess: 'None'
  }
}

// The tier of an append blob cannot be set, so a rule can only delete. 0 days keep blobs forever.
var expiries = [
  {
    name: 'delete-old-audit-log'
    blobType: 'appendBlob'
    container: model.auditContainer
    days: auditKeptDays
  }
  {
    // The app deletes unfinished uploads after a day. This rule covers a timer that does not run.
    name: 'delete-uploads-never-taken-in'
    blobType: 'blockBlob'
    container: model.uploadsContainer
    days: uploadsKeptDays
  }
  {
    name: 'delete-old-period-archives'
    blobType: 'blockBlob'
    container: model.archivesContainer
    days: archivesKeptDays
  }
]

var deletions = map(filter(expiries, expiry => expiry.days > 0), expiry => {
  name: expiry.name
  enabled: true
  type: 'Lifecycle'
  definition: {
    filters: {
      blobTypes: [expiry.blobType]
      prefixMatch: ['${expiry.container}/']
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

// A file is never changed, so its age is the time since it was stored.
var coolings = map(model.coolContainers, container => {
  name: 'cool-${container.name}'
  enabled: true
  type: 'Lifecycle'
  definition: {
    filters: {
      blobTypes: ['blockBlob']
      prefixMatch: ['${container.name}/']
    }
    actions: {
      baseBlob: {
        tierToCool: {
          daysAfterModificationGreaterThan: container.days
        }
      }
    }
  }
})

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: concat(deletions, coolings)
    }
  }
  dependsOn: [blobService]
}

// Metrics of every transaction, because transactions are billed. A log of deletes, because nothing else records them. Logs of
// reads and writes would cost more than the transactions themselves.

resource tableDiagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: tableService
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

// Without a log of deletes: every finished message is a delete.
resource queueDiagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: queueService
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    metrics: [
      {
        category: 'Transaction'
        enabled: true
      }
    ]
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
