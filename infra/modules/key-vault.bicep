// The key vault with the key that wraps the keys of encrypted properties.

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

@description('Id of the workspace that takes the audit log of the vault.')
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
    // A key that is lost takes every encrypted property with it. Once on, neither can be switched off.
    enableSoftDelete: true
    softDeleteRetentionInDays: 90
    enablePurgeProtection: true
    // The app has no network of its own; what protects the key is its role.
    publicNetworkAccess: 'Enabled'
  }
}

// Made once: a deployment leaves a key that is there as it is, and is refused where it asks for another kind of key.
resource key 'Microsoft.KeyVault/vaults/keys@2025-05-01' = {
  parent: vault
  name: keyName
  properties: {
    kty: 'RSA'
    keySize: 3072
    keyOps: ['wrapKey', 'unwrapKey']
    // A new version every year. None expires: what was wrapped with it has to be unwrapped for as long as it is stored.
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
