// The storage account: every table, queue and container of the model, and how long blobs are kept.

import { Model, Tags } from 'types.bicep'

@description('Name of the storage account.')
@minLength(3)
@maxLength(24)
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Redundancy: one data centre (LRS) or three zones of the region (ZRS); GRS and GZRS add a copy in another region.')
param sku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'

@description('The tables, queues and containers to make.')
param model Model

@description('Container of the app package.')
param packageContainer string

@description('Origins of web pages that read and write straight in storage with a signature. Empty: none may.')
param allowedOrigins string[]

@description('How many days the audit log is kept.')
@minValue(1)
param auditKeptDays int

@description('How many days a deleted blob or container can be had back.')
@minValue(1)
@maxValue(365)
param undeleteDays int

@description('Id of the workspace that takes metrics and logs.')
param workspaceId string

// Where the app appends what was done, and where uploads land before they are taken in.
var auditContainer = 'audit'
var arrivalsContainer = 'uploads'
var arrivalsKeptDays = 2

// What a signature of the app may allow, and what a browser needs in order to see a row's ETag and an upload's outcome.
// The storage service answers the preflight itself.
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
    // Nobody holds an account key: the app has an identity, and what it signs is signed with user delegation keys.
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    // Browsers and phones reach it with a signature, and the app over the platform's own network.
    publicNetworkAccess: 'Enabled'
    // The app signs for half an hour, half of it in the past because clocks differ, so no signature of the app exceeds an
    // hour. Log accepts a longer one and sets SasExpiryStatus in the resource log of the request. Only deletes are logged
    // (see the diagnostics below): a longer signature used to read or write leaves no trace. Block would reject requests
    // because of a wrong clock.
    sasPolicy: {
      expirationAction: 'Log'
      sasExpirationPeriod: '00.01:00:00'
    }
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

resource packages 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobService
  name: packageContainer
  properties: {
    publicAccess: 'None'
  }
}

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: [
        {
          // Append blobs, whose access tier cannot be set: a lifecycle rule can delete them and nothing else.
          name: 'delete-old-audit-log'
          enabled: true
          type: 'Lifecycle'
          definition: {
            filters: {
              blobTypes: ['appendBlob']
              prefixMatch: ['${auditContainer}/']
            }
            actions: {
              baseBlob: {
                delete: {
                  daysAfterModificationGreaterThan: auditKeptDays
                }
              }
            }
          }
        }
        {
          // The app deletes these after a day; this is for when its timer does not run.
          name: 'delete-uploads-never-taken-in'
          enabled: true
          type: 'Lifecycle'
          definition: {
            filters: {
              blobTypes: ['blockBlob']
              prefixMatch: ['${arrivalsContainer}/']
            }
            actions: {
              baseBlob: {
                delete: {
                  daysAfterModificationGreaterThan: arrivalsKeptDays
                }
              }
            }
          }
        }
      ]
    }
  }
  dependsOn: [blobService]
}

// Metrics of every transaction, which are what storage is paid by; and who deleted what, since nothing else can tell
// afterwards. Reads and writes are not logged: they would cost more than the transactions themselves.

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

// No deletions here: every message that is done with is one.
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
