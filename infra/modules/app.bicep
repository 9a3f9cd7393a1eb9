// The function app, on the Flex Consumption plan.

import { Authentication, Tags } from 'types.bicep'

@description('Name of the function app.')
param name string

@description('Name of its plan.')
param planName string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Name of the identity of the app.')
param identityName string

@description('Name of the storage account.')
param storageAccountName string

@description('Container of the app package.')
param packageContainer string

@description('Name of the key vault.')
param keyVaultName string

@description('Name of the key-encryption key.')
param keyName string

@description('Name of the Application Insights component.')
param applicationInsightsName string

@description('The most instances at a time: what an attack or a loop can cost at most.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int

@description('Memory of an instance in MB.')
param instanceMemoryMB 512 | 2048 | 4096

@description('Issuer of the bearer tokens that the app accepts, as in their claim iss.')
param tokenIssuer string

@description('Audience of the bearer tokens that the app accepts, as in their claim aud.')
param tokenAudience string

@description('Where the public keys of the issuer are.')
param tokenJwksUri string

@description('The word that agrees to a change of the model which was refused. Empty: none is agreed to.')
param agreedModelChanges string

@description('Origins of web pages that call the API.')
param allowedOrigins string[]

@description('The app registration that the platform asks tokens for, before the app checks them itself.')
param authentication Authentication

// Handlers wait for storage most of the time, so that one process serves many requests at once.
var httpConcurrency = 32

var isAuthenticationOn = !empty(authentication.clientId)

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' existing = {
  name: identityName
}

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

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
  }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  // By this tag azd knows which service of azure.yaml is deployed here.
  tags: union(tags, { 'azd-service-name': 'api' })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity.id}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    publicNetworkAccess: 'Enabled'
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${account.properties.primaryEndpoints.blob}${packageContainer}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identity.id
          }
        }
      }
      runtime: {
        name: 'node'
        version: '24'
      }
      scaleAndConcurrency: {
        maximumInstanceCount: maximumInstanceCount
        instanceMemoryMB: instanceMemoryMB
        triggers: {
          http: {
            perInstanceConcurrency: httpConcurrency
          }
        }
      }
    }
    // Flex Consumption has no FTP, and refuses a site that says anything of ftpsState.
    siteConfig: {
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
      cors: {
        allowedOrigins: allowedOrigins
        supportCredentials: false
      }
    }
  }
}

// The resources below all write to the site. App Service returns 409 now and then for concurrent writes to one site, so each
// of them depends on the one before.

// No setting is a secret. The connection string of Application Insights names a place; without an identity that has the
// role, nothing is accepted there.
resource settings 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'appsettings'
  properties: union(
    {
      AzureWebJobsStorage__blobServiceUri: account.properties.primaryEndpoints.blob
      AzureWebJobsStorage__queueServiceUri: account.properties.primaryEndpoints.queue
      AzureWebJobsStorage__tableServiceUri: account.properties.primaryEndpoints.table
      AzureWebJobsStorage__credential: 'managedidentity'
      AzureWebJobsStorage__clientId: identity.properties.clientId
      // Without a version: the app wraps with the newest.
      KEY_ENCRYPTION_KEY_URI: key.properties.keyUri
      TOKEN_ISSUER: tokenIssuer
      TOKEN_AUDIENCE: tokenAudience
      TOKEN_JWKS_URI: tokenJwksUri
      APPLICATIONINSIGHTS_CONNECTION_STRING: applicationInsights.properties.ConnectionString
      APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identity.properties.clientId};Authorization=AAD'
    },
    empty(agreedModelChanges) ? {} : { AGREED_MODEL_CHANGES: agreedModelChanges }
  )
}

// A password for uploading the app would be a way in past Microsoft Entra ID. The service has been known to refuse these two
// without a location, which their type does not have.

resource ftpCredentials 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: app
  name: 'ftp'
  #disable-next-line BCP187
  location: location
  properties: {
    allow: false
  }
  dependsOn: [settings]
}

resource scmCredentials 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: app
  name: 'scm'
  #disable-next-line BCP187
  location: location
  properties: {
    allow: false
  }
  dependsOn: [ftpCredentials]
}

// Off by default: the app checks bearer tokens itself, of any issuer. If it is on, the platform rejects a request without
// a token of the tenant, except on the three routes that need no token. The resource is deployed in both cases: a deployment
// does not remove a resource that the template leaves out, so authentication would stay on after the client id is emptied.
resource platformAuthentication 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: {
      enabled: isAuthenticationOn
    }
    globalValidation: {
      requireAuthentication: isAuthenticationOn
      unauthenticatedClientAction: isAuthenticationOn ? 'Return401' : 'AllowAnonymous'
      excludedPaths: ['/api/health', '/api/openapi.json', '/api/problems']
    }
    identityProviders: isAuthenticationOn
      ? {
          azureActiveDirectory: {
            enabled: true
            registration: {
              clientId: authentication.clientId
              openIdIssuer: '${environment().authentication.loginEndpoint}${authentication.tenantId}/v2.0'
            }
            validation: {
              allowedAudiences: [tokenAudience]
            }
          }
        }
      : {}
    login: {
      tokenStore: {
        enabled: false
      }
    }
    httpSettings: {
      requireHttps: true
    }
  }
  dependsOn: [scmCredentials]
}

@description('Host name of the app.')
output hostName string = app.properties.defaultHostName
