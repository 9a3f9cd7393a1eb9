// The function app, on the Flex Consumption plan.

import { Authentication, StorageAccount, Tags } from 'types.bicep'

@description('Name of the function app.')
param name string

@description('Name of the plan.')
param planName string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Name of the identity of the app.')
param identityName string

@description('Name of the storage account.')
param storageAccountName string

@description('Further storage accounts.')
param furtherAccounts StorageAccount[]

@description('Storage account of the backup. Empty for none.')
param backupAccountName string

@description('Container of the app package.')
param packageContainer string

@description('Name of the key vault.')
param keyVaultName string

@description('Name of the key-encryption key.')
param keyName string

@description('Name of the Application Insights component.')
param applicationInsightsName string

@description('Whether instances run in several zones. The platform then keeps two always-ready instances for HTTP and for each queue and timer.')
param isZoneRedundant bool

@description('Maximum number of instances. Limits the cost of an attack or a loop.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int

@description('Memory of one instance in MB.')
param instanceMemoryMB 512 | 2048 | 4096

@description('How a deployment replaces running instances.')
param siteUpdateStrategy 'Recreate' | 'RollingUpdate'

@description('Issuer of the bearer tokens that the app accepts: the claim iss.')
param tokenIssuer string

@description('Audience of the bearer tokens that the app accepts: the claim aud.')
param tokenAudience string

@description('URL of the public keys of the issuer.')
param tokenJwksUri string

@description('How many proxies before the app append the address of their client. 0 trusts none.')
param trustedProxies int

@description('Code that accepts a rejected model change. Empty accepts none.')
param agreedModelChanges string

@description('Client id of the console at the issuer. Empty for no console.')
param consoleClientId string

@description('Scopes that the console asks for. Empty for openid.')
param consoleScope string

@description('Origins of web pages that may call the API.')
param allowedOrigins string[]

@description('App registration whose tokens the platform requires, in addition to the check by the app.')
param authentication Authentication

// Handlers wait for storage most of the time, so one instance serves many requests concurrently.
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
    zoneRedundant: isZoneRedundant
  }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  // azd finds the target of a service in azure.yaml by this tag.
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
      // Documented for this API version, and missing in its types.
      #disable-next-line BCP037
      siteUpdateStrategy: {
        type: siteUpdateStrategy
      }
    }
    // Flex Consumption has no FTP and rejects ftpsState.
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

// The settings of the further storage accounts, which begin with the names of their connections.
var suffixOfStorage = environment().suffixes.storage
var furtherSettings = reduce(
  map(furtherAccounts, one => {
    '${one.connection}__blobServiceUri': 'https://${one.name}.blob.${suffixOfStorage}/'
    '${one.connection}__queueServiceUri': 'https://${one.name}.queue.${suffixOfStorage}/'
    '${one.connection}__tableServiceUri': 'https://${one.name}.table.${suffixOfStorage}/'
    '${one.connection}__credential': 'managedidentity'
    '${one.connection}__clientId': identity.properties.clientId
  }),
  {},
  (all, one) => union(all, one)
)

// App Service returns 409 now and then for concurrent writes to one site, so each resource below depends on the previous one.

// No setting is a secret. Application Insights accepts nothing for the connection string without an identity that has the role.
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
      // The home page of the host, at /, would tell anybody that this is a function app.
      AzureWebJobsDisableHomepage: 'true'
      // Without a version, so that the app wraps with the newest.
      KEY_ENCRYPTION_KEY_URI: key.properties.keyUri
      TOKEN_ISSUER: tokenIssuer
      TOKEN_AUDIENCE: tokenAudience
      TOKEN_JWKS_URI: tokenJwksUri
      TRUSTED_PROXIES: string(trustedProxies)
      APPLICATIONINSIGHTS_CONNECTION_STRING: applicationInsights.properties.ConnectionString
      APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identity.properties.clientId};Authorization=AAD'
    },
    empty(furtherAccounts) ? {} : { STORAGE_ACCOUNTS: join(map(furtherAccounts, one => one.connection), ' ') },
    furtherSettings,
    empty(backupAccountName)
      ? {}
      : { BackupStorage__blobServiceUri: 'https://${backupAccountName}.blob.${suffixOfStorage}/' },
    empty(agreedModelChanges) ? {} : { AGREED_MODEL_CHANGES: agreedModelChanges },
    empty(consoleClientId) ? {} : { CONSOLE_CLIENT_ID: consoleClientId },
    empty(consoleScope) ? {} : { CONSOLE_SCOPE: consoleScope }
  )
}

// Publishing passwords would bypass Microsoft Entra ID. The service sometimes rejects these resources without a
// location, although their type does not document one (BCP187).

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

// Off by default: the app checks bearer tokens of any issuer itself. When on, the platform rejects a request without a token
// of the tenant, except on the excluded paths, which need none. The list lacks `/`, which leads to the console: it might match every path.
// The resource has no condition, because a deployment leaves a skipped resource unchanged: authentication would stay on after the
// client id is emptied.
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
      excludedPaths: [
        '/api/health'
        '/api/model'
        '/api/openapi.json'
        '/api/problems'
        '/console'
        '/console/*'
        '/docs'
        '/docs/*'
      ]
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
