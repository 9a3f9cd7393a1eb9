using 'main.bicep'

// Production: storage in three zones and longer retention. Values that differ between deployments come from environment
// variables; none is a secret.
var origins = readEnvironmentVariable('ALLOWED_ORIGINS', '')
var emails = readEnvironmentVariable('ALERT_EMAILS', '')
var accounts = readEnvironmentVariable('STORAGE_ACCOUNTS', '')

param environmentName = 'prod'
param model = loadJsonContent('model.json')

// Storage. Three zones of one region, because GRS and GZRS replicate to the other region asynchronously, with separate lags for
// tables, queues and blobs: a failover loses the last minutes of each. Prices, and the steps after a failover:
// docs/reference/infrastructure.md, Redundancy.
param storageSku = 'Standard_ZRS'
param furtherStorageAccounts = empty(accounts) ? [] : split(accounts, ' ')
param firstStorageAccountName = readEnvironmentVariable('FIRST_STORAGE_ACCOUNT_NAME', '')
param undeleteDays = 30
param auditKeptDays = 730
param isProtected = true

// App
// Two instances for HTTP and for each queue and timer would always run and be billed. Storage survives the loss of a zone; the app may
// be unavailable until Azure starts it in another zone. See docs/reference/infrastructure.md, Redundancy.
param isZoneRedundant = false
param maximumInstanceCount = 100
param instanceMemoryMB = 2048

// Microsoft Entra ID uses https://login.microsoftonline.com/{tenant}/v2.0, the id of the application, and
// https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys.
param tokenIssuer = readEnvironmentVariable('TOKEN_ISSUER')
param tokenAudience = readEnvironmentVariable('TOKEN_AUDIENCE')
param tokenJwksUri = readEnvironmentVariable('TOKEN_JWKS_URI')
param agreedModelChanges = readEnvironmentVariable('AGREED_MODEL_CHANGES', '')
param consoleClientId = readEnvironmentVariable('CONSOLE_CLIENT_ID', '')
param consoleScope = readEnvironmentVariable('CONSOLE_SCOPE', '')

// Comma-separated, such as https://app.example.com
param allowedOrigins = empty(origins) ? [] : split(replace(origins, ' ', ''), ',')

// Logs, alerts, budget
param logRetentionDays = 90
param logDailyCapGb = 5
param alertEmails = empty(emails) ? [] : split(replace(emails, ' ', ''), ',')
param budgetAmount = 200
param budgetStart = readEnvironmentVariable('BUDGET_START', '')
