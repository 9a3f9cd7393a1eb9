// Everything that Rowkey needs in Azure, in one resource group. This file composes; each module says why.

targetScope = 'resourceGroup'

import { Authentication, Model } from 'modules/types.bicep'

@description('Name of the environment, such as dev or prod: letters (a-z, A-Z), digits and hyphens, with a letter or digit first and last. It is part of most names.')
@minLength(1)
@maxLength(12)
param environmentName string

@description('Region of every resource.')
param location string = resourceGroup().location

@description('What the model of the app needs of storage: model.json, which npm run infra-model writes.')
param model Model

@description('Redundancy of storage. GRS and GZRS add a copy in another region: docs/infrastructure.md, Redundancy, before you choose one.')
param storageSku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'

@description('How many days a deleted blob or container can be had back.')
@minValue(1)
@maxValue(365)
param undeleteDays int = 7

@description('How many days the audit log is kept.')
@minValue(1)
param auditKeptDays int

@description('The most instances of the app at a time.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int

@description('Memory of an instance of the app in MB.')
param instanceMemoryMB 512 | 2048 | 4096 = 2048

@description('Issuer of the bearer tokens that the app accepts, as in their claim iss.')
@minLength(1)
param tokenIssuer string

@description('Audience of the bearer tokens that the app accepts, as in their claim aud.')
@minLength(1)
param tokenAudience string

@description('Where the public keys of the issuer are.')
@minLength(1)
param tokenJwksUri string

@description('The word that agrees to a change of the model which was refused: docs/operating.md. Empty: none is agreed to.')
param agreedModelChanges string = ''

@description('Origins of web pages that call the API, and that use grants straight with storage. Empty: none may.')
param allowedOrigins string[] = []

@description('The app registration that the platform asks tokens for, before the app checks them itself. Off by default.')
param authentication Authentication = {
  clientId: ''
  tenantId: ''
}

@description('How many days logs and metrics are kept.')
@minValue(30)
@maxValue(730)
param logRetentionDays int

@description('The most logs and metrics that are taken in on one day, in GB.')
@minValue(1)
param logDailyCapGb int

@description('How many seconds an index may lag behind its entity before somebody is told.')
@minValue(1)
param reconcileLagSeconds int = 60

@description('Who is told of alerts and of the budget. Empty: alerts are seen in the portal only.')
param alertEmails string[] = []

@description('What the resource group may cost a month, in the currency of the subscription.')
@minValue(1)
param budgetAmount int

@description('First day of the month in which the budget is first deployed, as 2026-11-01; the same ever after. Empty: no budget.')
param budgetStart string = ''

// What the types of parameters cannot say. A failed check ends the deployment before it changes anything.

// Bicep has no regular expressions. Everything else is accepted by some of the services and rejected by others.
var nameCharacters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-'
var wrongNameCharacters = filter(
  range(0, length(environmentName)),
  index => !contains(nameCharacters, substring(environmentName, index, 1))
)
var isNameUsable = empty(wrongNameCharacters) && !startsWith(environmentName, '-') && !endsWith(environmentName, '-')
var environmentLabel = isNameUsable
  ? environmentName
  : fail('environmentName "${environmentName}" is not usable. It takes letters (a-z, A-Z), digits and hyphens, with a letter or digit first and last.')

// An issuer without a tenant would reject every token.
var checkedAuthentication = empty(authentication.clientId) == empty(authentication.tenantId)
  ? authentication
  : fail('authentication needs both clientId and tenantId, or neither to switch platform authentication off.')

// The lists are split from text: a trailing comma must not become an empty receiver or origin.
// An address is the name of its receiver, and an action group takes no name twice. union() drops equal elements.
var receivers = union([], map(filter(alertEmails, email => !empty(trim(email))), email => toLower(trim(email))))
var origins = filter(allowedOrigins, origin => !empty(trim(origin)))

// Names are known before anything is deployed, so that a what-if can tell what it would change.
var suffix = uniqueString(subscription().id, resourceGroup().id, environmentLabel)
var tags = {
  'azd-env-name': environmentLabel
}
var names = {
  identity: 'id-rowkey-${environmentLabel}'
  storageAccount: 'strowkey${suffix}'
  keyVault: 'kv-rowkey-${suffix}'
  workspace: 'log-rowkey-${environmentLabel}'
  applicationInsights: 'appi-rowkey-${environmentLabel}'
  plan: 'plan-rowkey-${environmentLabel}'
  functionApp: 'func-rowkey-${environmentLabel}-${suffix}'
  alerts: 'alert-rowkey-${environmentLabel}'
  queries: 'queries-rowkey-${environmentLabel}'
  budget: 'budget-rowkey-${environmentLabel}'
}
var packageContainer = 'deployments'
var keyName = 'key-encryption'

// The app's own identity, which is all that it proves itself with.
module identity 'modules/identity.bicep' = {
  name: 'identity'
  params: {
    name: names.identity
    location: location
    tags: tags
  }
}

// First of all the place where the others send their logs.
module monitoring 'modules/monitoring.bicep' = {
  name: 'monitoring'
  params: {
    workspaceName: names.workspace
    applicationInsightsName: names.applicationInsights
    location: location
    tags: tags
    retentionDays: logRetentionDays
    dailyCapGb: logDailyCapGb
  }
}

// What is stored: everything that the model declares.
module storage 'modules/storage.bicep' = {
  name: 'storage'
  params: {
    name: names.storageAccount
    location: location
    tags: tags
    sku: storageSku
    model: model
    packageContainer: packageContainer
    allowedOrigins: origins
    auditKeptDays: auditKeptDays
    undeleteDays: undeleteDays
    workspaceId: monitoring.outputs.workspaceId
  }
}

// The key that wraps the keys of encrypted properties.
module keyVault 'modules/key-vault.bicep' = {
  name: 'key-vault'
  params: {
    name: names.keyVault
    location: location
    tags: tags
    keyName: keyName
    workspaceId: monitoring.outputs.workspaceId
  }
}

// Who may do what: every role, each on one resource.
module access 'modules/access.bicep' = {
  name: 'access'
  params: {
    identityName: names.identity
    principalId: identity.outputs.principalId
    storageAccountName: names.storageAccount
    keyVaultName: names.keyVault
    keyName: keyName
    applicationInsightsName: names.applicationInsights
  }
  dependsOn: [storage, keyVault, monitoring]
}

// The app. It comes after its roles, which its host needs in order to start.
module app 'modules/app.bicep' = {
  name: 'app'
  params: {
    name: names.functionApp
    planName: names.plan
    location: location
    tags: tags
    identityName: names.identity
    storageAccountName: names.storageAccount
    packageContainer: packageContainer
    keyVaultName: names.keyVault
    keyName: keyName
    applicationInsightsName: names.applicationInsights
    maximumInstanceCount: maximumInstanceCount
    instanceMemoryMB: instanceMemoryMB
    tokenIssuer: tokenIssuer
    tokenAudience: tokenAudience
    tokenJwksUri: tokenJwksUri
    agreedModelChanges: agreedModelChanges
    allowedOrigins: origins
    authentication: checkedAuthentication
  }
  dependsOn: [access]
}

// What wakes somebody up.
module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  params: {
    name: names.alerts
    location: location
    tags: tags
    workspaceId: monitoring.outputs.workspaceId
    storageAccountName: names.storageAccount
    emails: receivers
    reconcileLagSeconds: reconcileLagSeconds
  }
  // The metric alert names the storage account.
  dependsOn: [storage]
}

// What somebody who is awake asks first.
module queries 'modules/queries.bicep' = {
  name: 'queries'
  params: {
    name: names.queries
    location: location
    tags: tags
  }
}

// What it may cost. A budget keeps the day from which it counts: a later deployment that gives another one is refused,
// so that the day has to be said, and cannot be that of the deployment.
module budget 'modules/budget.bicep' = if (!empty(receivers) && !empty(budgetStart)) {
  name: 'budget'
  params: {
    name: names.budget
    amount: budgetAmount
    start: budgetStart
    emails: receivers
  }
}

// Nothing here is a secret. The service gives back a name that begins in capitals respelt, such as azurE_RESOURCE_GROUP: so
// names begin small, but for the one that azd looks for, in whatever spelling.

@description('Name of the function app.')
output functionAppName string = names.functionApp

@description('Address of the API, without the prefix of its routes.')
output apiUrl string = 'https://${app.outputs.hostName}'

@description('Name of the resource group.')
output AZURE_RESOURCE_GROUP string = resourceGroup().name

@description('Name of the storage account.')
output storageAccountName string = names.storageAccount

@description('Name of the key vault.')
output keyVaultName string = names.keyVault

@description('Name of the Application Insights component.')
output applicationInsightsName string = names.applicationInsights
