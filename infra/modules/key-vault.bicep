// The key vault with the key-encryption key, which wraps the data keys of encrypted properties.

import { Tags } from 'types.bicep'

@description('Name of the key vault.')
@minLength(3)
@maxLength(24)
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Name of the key-encryption key.')
param keyName string

@description('Whether the vault is locked against deletion.')
param isProtected bool

@description('Id of the workspace that receives the audit log of the vault.')
param workspaceId string

resource vault 'Microsoft.KeyVault/vaults@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    tenantId: tenant().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    // Without the key every encrypted property is lost. Neither setting can be switched off again.
    enableSoftDelete: true
    softDeleteRetentionInDays: 90
    enablePurgeProtection: true
    // The app runs outside a virtual network. Access to the key is limited by role.
    publicNetworkAccess: 'Enabled'
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (isProtected) {
  scope: vault
  name: 'keep'
  properties: {
    level: 'CanNotDelete'
    notes: 'Without the key, encrypted properties cannot be read.'
  }
}

// Created once: a deployment leaves an existing key unchanged, and fails if the template declares another kind of key.
resource key 'Microsoft.KeyVault/vaults/keys@2025-05-01' = {
  parent: vault
  name: keyName
  properties: {
    kty: 'RSA'
    keySize: 3072
    keyOps: ['wrapKey', 'unwrapKey']
    // A new version every year. Versions never expire, because stored data keys must stay readable.
    rotationPolicy: {
      lifetimeActions: [
        {
          action: {
            type: 'rotate'
          }
          trigger: {
            timeAfterCreate: 'P1Y'
          }
        }
      ]
    }
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: vault
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'AuditEvent'
        enabled: true
      }
    ]
  }
}
