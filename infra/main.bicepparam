using 'main.bicep'

// For azd, which looks for a file of this name: a small environment for trials. Values come from the azd environment
// (azd env set).
var origins = readEnvironmentVariable('ALLOWED_ORIGINS', '')
var emails = readEnvironmentVariable('ALERT_EMAILS', '')
var accounts = readEnvironmentVariable('STORAGE_ACCOUNTS', '')

param environmentName = readEnvironmentVariable('AZURE_ENV_NAME', 'azd')
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
param model = loadJsonContent('model.json')

// Storage
param storageSku = 'Standard_LRS'
param furtherStorageAccounts = empty(accounts) ? [] : split(accounts, ' ')
param firstStorageAccountName = readEnvironmentVariable('FIRST_STORAGE_ACCOUNT_NAME', '')
param undeleteDays = 7
param auditKeptDays = 30
param isProtected = false

// App
param isZoneRedundant = false
param maximumInstanceCount = 40
param instanceMemoryMB = 2048
param tokenIssuer = readEnvironmentVariable('TOKEN_ISSUER')
param tokenAudience = readEnvironmentVariable('TOKEN_AUDIENCE')
param tokenJwksUri = readEnvironmentVariable('TOKEN_JWKS_URI')
param agreedModelChanges = readEnvironmentVariable('AGREED_MODEL_CHANGES', '')
param consoleClientId = readEnvironmentVariable('CONSOLE_CLIENT_ID', '')
param consoleScope = readEnvironmentVariable('CONSOLE_SCOPE', '')
param allowedOrigins = empty(origins) ? [] : split(replace(origins, ' ', ''), ',')

// Logs, alerts, budget
param logRetentionDays = 30
param logDailyCapGb = 1
param alertEmails = empty(emails) ? [] : split(replace(emails, ' ', ''), ',')
param budgetAmount = 20
param budgetStart = readEnvironmentVariable('BUDGET_START', '')
