// Deploys everything that Rowkey needs in Azure into one resource group. The modules give the reasons.

targetScope = 'resourceGroup'

import { AccountManagement, Authentication, Model, StorageAccount } from 'modules/types.bicep'

@description('Name of the environment, such as dev or prod. Part of most resource names: letters (a-z, A-Z), digits and hyphens, with a letter or digit first and last.')
@minLength(1)
@maxLength(12)
param environmentName string

@description('Region of every resource.')
param location string = resourceGroup().location

@description('Tables, queues and containers of the app, from model.json, which npm run infra writes.')
param model Model

@description('Redundancy of storage. Before you choose GRS or GZRS, which add a copy in another region, read docs/reference/infrastructure.md, Redundancy.')
param storageSku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'

@description('Names of further storage accounts, such as second and third, for more requests a second than one account executes: docs/accounts.md. Letters and digits, a letter first. Never remove or rename one that has data.')
@maxLength(20)
param furtherStorageAccounts string[] = []

@description('Management of single storage accounts, such as more redundancy for important data: docs/reference/infrastructure.md, Manage an account separately.')
param accountManagement AccountManagement[] = []

@description('Name of the first storage account. Empty for a name that begins with a hash. For environments that were deployed with another name: a new name is a new, empty account.')
@maxLength(24)
param firstStorageAccountName string = ''

@description('Days for which a deleted blob or container can be restored.')
@minValue(1)
@maxValue(365)
param undeleteDays int = 7

@description('Days for which the audit log is kept.')
@minValue(1)
param auditKeptDays int

@description('Days for which archives of periods (archiveTo) are kept. 0 keeps them forever.')
@minValue(0)
param archivesKeptDays int = 0

@description('Region of the storage account of the backup, if the model declares one. Another region survives the loss of that of the app.')
param backupLocation string = location

@description('Redundancy of the storage account of the backup.')
param backupStorageSku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS' = 'Standard_LRS'

@description('Whether the immutability policy of the backup has been locked, after which Azure rejects a deployment of the policy.')
param isBackupLocked bool = false

@description('Whether storage and key vault are locked against deletion, and the audit log against changes.')
param isProtected bool

@description('Whether the immutability policy of the audit log has been locked, after which Azure rejects a deployment of the policy.')
param isAuditLogLocked bool = false

@description('Whether instances of the app run in several zones: two instances for each queue and timer, and for HTTP, always run and are billed.')
param isZoneRedundant bool

@description('Maximum number of instances of the app.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int

@description('Memory of one instance of the app in MB.')
param instanceMemoryMB 512 | 2048 | 4096 = 2048

@description('How a deployment replaces running instances. Recreate ends requests and messages in progress. RollingUpdate lets them finish, while both versions run.')
param siteUpdateStrategy 'Recreate' | 'RollingUpdate' = 'Recreate'

@description('Issuer of the bearer tokens that the app accepts: the claim iss.')
@minLength(1)
param tokenIssuer string

@description('Audience of the bearer tokens that the app accepts: the claim aud.')
@minLength(1)
param tokenAudience string

@description('URL of the public keys of the issuer.')
@minLength(1)
param tokenJwksUri string

@description('How many proxies before the app append the address of their client: the front end of Azure, and one more for each before it. 0 trusts none.')
@minValue(0)
@maxValue(9)
param trustedProxies int = 1

@description('Code that accepts a rejected model change: docs/change-the-model.md. Empty accepts none.')
param agreedModelChanges string = ''

@description('Client id of the console at the issuer: a public client. Empty for no console.')
param consoleClientId string = ''

@description('Scopes that the console asks for, separated by spaces. Empty for openid.')
param consoleScope string = ''

@description('Origins of web pages that may call the API and use grants with storage. Empty allows none.')
param allowedOrigins string[] = []

@description('Whether Azure Front Door, a content delivery network, is put before the app. It costs a fixed price per month.')
param hasCdn bool = false

@description('Whether there is a static web app for a page: docs/deploy.md, The page.')
param hasPage bool = false

@description('Region of the static web app, which few regions have. Its files are served from everywhere.')
param pageLocation 'centralus' | 'eastasia' | 'eastus2' | 'westeurope' | 'westus2' = 'westeurope'

@description('App registration whose tokens the platform requires, in addition to the check by the app. Off by default.')
param authentication Authentication = {
  clientId: ''
  tenantId: ''
}

@description('Days for which logs and metrics are kept.')
@minValue(30)
@maxValue(730)
param logRetentionDays int

@description('Maximum ingestion of logs and metrics per day, in GB.')
@minValue(1)
param logDailyCapGb int

@description('Seconds that an index may lag behind its entity before an alert fires.')
@minValue(1)
param reconcileLagSeconds int = 60

@description('Email addresses that receive alerts and budget notifications. Empty shows alerts in the portal only and creates no budget.')
param alertEmails string[] = []

@description('Budget of the resource group per month, in the currency of the subscription.')
@minValue(1)
param budgetAmount int

@description('First day of the month of the first deployment, such as 2026-11-01. Azure rejects a later change. Empty creates no budget.')
param budgetStart string = ''

// Checks that parameter types cannot express. A failed check ends the deployment before it changes anything.

// Bicep has no regular expressions. Some services reject every other character.
var nameCharacters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-'
var wrongNameCharacters = filter(
  range(0, length(environmentName)),
  index => !contains(nameCharacters, substring(environmentName, index, 1))
)
var isNameUsable = empty(wrongNameCharacters) && !startsWith(environmentName, '-') && !endsWith(environmentName, '-')
var environmentLabel = isNameUsable
  ? environmentName
  : fail('environmentName "${environmentName}" is not usable. Use letters (a-z, A-Z), digits and hyphens, with a letter or digit first and last.')

// Without a tenant the issuer would match no token.
var checkedAuthentication = empty(authentication.clientId) == empty(authentication.tenantId)
  ? authentication
  : fail('authentication needs both clientId and tenantId, or neither to switch platform authentication off.')

// Each name begins the app settings of its account. The name first is that of AzureWebJobsStorage.
var accountCharacters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
var wrongAccounts = filter(
  furtherStorageAccounts,
  name =>
    empty(name) || toLower(name) == 'first' || contains('0123456789', substring('${name}-', 0, 1)) || !empty(filter(
      range(0, length(name)),
      index => !contains(accountCharacters, substring(name, index, 1))
    ))
)
var lowerCaseAccounts = map(furtherStorageAccounts, name => toLower(name))
var checkedAccounts = empty(wrongAccounts) && length(union([], lowerCaseAccounts)) == length(lowerCaseAccounts)
  ? furtherStorageAccounts
  : fail('furtherStorageAccounts needs different names of letters and digits, a letter first, other than first.')

// The alert on missing telemetry reads the metrics of storage in the workspace of the app, so those of the first account must be there.
var accountNames = concat(['first'], checkedAccounts)
var managedNames = map(accountManagement, one => one.account)
var wrongManagement = filter(
  accountManagement,
  one => !contains(accountNames, one.account) || (one.account == 'first' && one.?workspaceId != null)
)
var checkedManagement = empty(wrongManagement) && length(union([], managedNames)) == length(managedNames)
  ? accountManagement
  : fail('accountManagement needs different names, each first or one of furtherStorageAccounts, and no workspaceId for first.')

// The values of each account, the first before the others.
var managements = map(accountNames, name => first(filter(checkedManagement, one => one.account == name)))
var skus = map(managements, one => one.?storageSku ?? storageSku)
var undeletes = map(managements, one => one.?undeleteDays ?? undeleteDays)
var protections = map(managements, one => one.?isProtected ?? isProtected)
var accountReceivers = map(managements, one => union([], map(one.?alertEmails ?? [], email => toLower(trim(email)))))

// A zone-redundant app on storage in one data centre would stop with that data centre.
var checkedZoneRedundancy = !isZoneRedundant || empty(filter(
    skus,
    sku => !contains(['Standard_ZRS', 'Standard_GZRS'], sku)
  ))
  ? isZoneRedundant
  : fail('isZoneRedundant needs storage in three zones: storageSku Standard_ZRS or Standard_GZRS for each account.')

// The parameter files split these lists from text: a trailing comma must not become an empty receiver or origin.
// Receivers are named after their addresses, and an action group rejects duplicate names. union() drops duplicates.
var receivers = union([], map(filter(alertEmails, email => !empty(trim(email))), email => toLower(trim(email))))
var origins = filter(allowedOrigins, origin => !empty(trim(origin)))

// Names do not depend on deployed resources, so that a what-if can show every change.
var suffix = uniqueString(subscription().id, resourceGroup().id, environmentLabel)
var tags = {
  'azd-env-name': environmentLabel
}
// Storage accounts whose names begin alike share a range of the service's front ends and partition servers, so each name begins with a hash:
// https://learn.microsoft.com/azure/storage/blobs/storage-performance-checklist#partitioning
var names = {
  identity: 'id-rowkey-${environmentLabel}'
  storageAccount: empty(firstStorageAccountName) ? '${suffix}rowkey' : firstStorageAccountName
  backupAccount: '${uniqueString(subscription().id, resourceGroup().id, environmentLabel, 'backup-account')}rowkey'
  keyVault: 'kv-rowkey-${suffix}'
  workspace: 'log-rowkey-${environmentLabel}'
  applicationInsights: 'appi-rowkey-${environmentLabel}'
  plan: 'plan-rowkey-${environmentLabel}'
  functionApp: 'func-rowkey-${environmentLabel}-${suffix}'
  alerts: 'alert-rowkey-${environmentLabel}'
  queries: 'queries-rowkey-${environmentLabel}'
  budget: 'budget-rowkey-${environmentLabel}'
  cdn: 'afd-rowkey-${environmentLabel}'
  cdnEndpoint: 'rowkey-${environmentLabel}'
  page: 'stapp-rowkey-${environmentLabel}'
}
var furtherAccounts StorageAccount[] = map(checkedAccounts, name => {
  connection: name
  name: '${uniqueString(subscription().id, resourceGroup().id, environmentLabel, name)}rowkey'
})
var storageAccountNames = concat([names.storageAccount], map(furtherAccounts, account => account.name))
var packageContainer = 'deployments'
var keyName = 'key-encryption'

// The identity of the app, its only credential.
module identity 'modules/identity.bicep' = {
  name: 'identity'
  params: {
    name: names.identity
    location: location
    tags: tags
  }
}

// Logs. Other modules send theirs here, and depend on it.
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

// Storage for everything that the model declares.
module storage 'modules/storage.bicep' = {
  name: 'storage'
  params: {
    name: names.storageAccount
    location: location
    tags: tags
    sku: skus[0]
    model: model
    packageContainer: packageContainer
    allowedOrigins: origins
    auditKeptDays: auditKeptDays
    archivesKeptDays: archivesKeptDays
    undeleteDays: undeletes[0]
    isProtected: protections[0]
    isAuditLogLocked: isAuditLogLocked
    workspaceId: monitoring.outputs.workspaceId
  }
}

// Further storage accounts, each with the same tables, queues, containers and rules as the first, and the values of accountManagement. The
// immutability policy of each is locked separately, and only that of the account with the audit log has data.
module furtherStorage 'modules/storage.bicep' = [
  for (account, index) in furtherAccounts: {
    name: 'storage-${account.connection}'
    params: {
      name: account.name
      location: location
      tags: tags
      sku: skus[index + 1]
      model: model
      packageContainer: packageContainer
      allowedOrigins: origins
      auditKeptDays: auditKeptDays
      archivesKeptDays: archivesKeptDays
      undeleteDays: undeletes[index + 1]
      isProtected: protections[index + 1]
      isAuditLogLocked: false
      workspaceId: managements[index + 1].?workspaceId ?? monitoring.outputs.workspaceId
    }
  }
]

// The backup. A model without one has no such account.
module backup 'modules/backup.bicep' = if (model.backupDays > 0) {
  name: 'backup'
  params: {
    name: names.backupAccount
    location: backupLocation
    tags: tags
    sku: backupStorageSku
    containerName: model.backupContainer
    days: max(1, model.backupDays)
    isProtected: isProtected
    isBackupLocked: isBackupLocked
    // A what-if therefore does not list the assignment.
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
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
    isProtected: isProtected
    workspaceId: monitoring.outputs.workspaceId
  }
}

// Role assignments on each storage account.
module storageAccess 'modules/storage-access.bicep' = [
  for account in storageAccountNames: {
    name: 'access-${account}'
    params: {
      // A what-if therefore does not list the assignments.
      #disable-next-line what-if-short-circuiting
      principalId: identity.outputs.principalId
      storageAccountName: account
    }
    dependsOn: [storage, furtherStorage]
  }
]

// Other role assignments, each on one resource.
module access 'modules/access.bicep' = {
  name: 'access'
  params: {
    // A what-if therefore does not list the assignments.
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
    keyVaultName: names.keyVault
    keyName: keyName
    applicationInsightsName: names.applicationInsights
  }
  dependsOn: [keyVault, monitoring]
}

// The app. Its host needs the roles in order to start.
module app 'modules/app.bicep' = {
  name: 'app'
  params: {
    name: names.functionApp
    planName: names.plan
    location: location
    tags: tags
    identityName: names.identity
    storageAccountName: names.storageAccount
    furtherAccounts: furtherAccounts
    backupAccountName: model.backupDays > 0 ? names.backupAccount : ''
    packageContainer: packageContainer
    keyVaultName: names.keyVault
    keyName: keyName
    applicationInsightsName: names.applicationInsights
    isZoneRedundant: checkedZoneRedundancy
    maximumInstanceCount: maximumInstanceCount
    instanceMemoryMB: instanceMemoryMB
    siteUpdateStrategy: siteUpdateStrategy
    tokenIssuer: tokenIssuer
    tokenAudience: tokenAudience
    tokenJwksUri: tokenJwksUri
    agreedModelChanges: agreedModelChanges
    trustedProxies: trustedProxies
    consoleClientId: consoleClientId
    consoleScope: consoleScope
    allowedOrigins: origins
    authentication: checkedAuthentication
  }
  dependsOn: [access, storageAccess, backup]
}

// Keeps public files near their readers.
module cdn 'modules/cdn.bicep' = if (hasCdn) {
  name: 'cdn'
  params: {
    name: names.cdn
    endpointName: names.cdnEndpoint
    tags: tags
    appHostName: app.outputs.hostName
    publicPaths: model.publicPaths
  }
}

// The page. The app and storage get its origin as an allowed one, by a parameter: a value of a deployed resource would hide both from a
// what-if.
module page 'modules/page.bicep' = if (hasPage) {
  name: 'page'
  params: {
    name: names.page
    location: pageLocation
    tags: tags
  }
}

// Alerts.
module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  params: {
    name: names.alerts
    location: location
    tags: tags
    workspaceId: monitoring.outputs.workspaceId
    storageAccountNames: storageAccountNames
    accountEmails: accountReceivers
    emails: receivers
    functionPrefix: model.functionPrefix
    hasBackup: model.backupDays > 0
    reconcileLagSeconds: reconcileLagSeconds
  }
  // The metric alerts name the storage accounts.
  dependsOn: [storage, furtherStorage]
}

// Saved queries for operators.
module queries 'modules/queries.bicep' = {
  name: 'queries'
  params: {
    name: names.queries
    location: location
    tags: tags
  }
}

// The start date is a parameter because Azure rejects a changed one: the date of the deployment would fail the second time.
module budget 'modules/budget.bicep' = if (!empty(receivers) && !empty(budgetStart)) {
  name: 'budget'
  params: {
    name: names.budget
    amount: budgetAmount
    start: budgetStart
    emails: receivers
  }
}

// No output is a secret. Azure returns names that start with capitals respelt, such as azurE_RESOURCE_GROUP, so names start in
// lower case. azd looks for AZURE_RESOURCE_GROUP in any case.

@description('Name of the function app.')
output functionAppName string = names.functionApp

@description('URL of the API, without the prefix of its routes.')
output apiUrl string = 'https://${app.outputs.hostName}'

@description('URL of the app through the content delivery network. Empty without one.')
output cdnUrl string = hasCdn ? 'https://${cdn!.outputs.hostName}' : ''

@description('Name of the resource group.')
output AZURE_RESOURCE_GROUP string = resourceGroup().name

@description('Name of the storage account.')
output storageAccountName string = names.storageAccount

@description('Names of the further storage accounts.')
output furtherStorageAccountNames string[] = map(furtherAccounts, account => account.name)

@description('Name of the storage account of the backup; empty for none.')
output backupAccountName string = model.backupDays > 0 ? names.backupAccount : ''

@description('Name of the key vault.')
output keyVaultName string = names.keyVault

@description('Name of the Application Insights component.')
output applicationInsightsName string = names.applicationInsights

@description('Name of the static web app of the page; empty for none.')
output pageName string = hasPage ? names.page : ''

@description('Origin of the page; empty for none.')
output pageOrigin string = page.?outputs.origin ?? ''
