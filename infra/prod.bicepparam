using 'main.bicep'

// For customers: storage in three zones, and everything kept for longer. What differs between deployments comes from the
// environment; none is a secret.
var origins = readEnvironmentVariable('ALLOWED_ORIGINS', '')
var emails = readEnvironmentVariable('ALERT_EMAILS', '')

param environmentName = 'prod'
param model = loadJsonContent('model.json')

// Storage. Three zones of one region, on purpose: GRS and GZRS replicate to the other region asynchronously, and tables, queues
// and blobs each with a lag of their own, so that a failover loses the last minutes of each. What it costs and what to do after
// a failover: docs/infrastructure.md, Redundancy.
param storageSku = 'Standard_ZRS'
param undeleteDays = 30
param auditKeptDays = 730

// App
param maximumInstanceCount = 100
param instanceMemoryMB = 2048

// Of the identity provider, such as https://login.microsoftonline.com/{tenant}/v2.0, the id of the application and
// https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys
param tokenIssuer = readEnvironmentVariable('TOKEN_ISSUER')
param tokenAudience = readEnvironmentVariable('TOKEN_AUDIENCE')
param tokenJwksUri = readEnvironmentVariable('TOKEN_JWKS_URI')
param agreedModelChanges = readEnvironmentVariable('AGREED_MODEL_CHANGES', '')

// Separated by commas, such as https://app.example.com
param allowedOrigins = empty(origins) ? [] : split(replace(origins, ' ', ''), ',')

// Logs, alerts, money
param logRetentionDays = 90
param logDailyCapGb = 5
param alertEmails = empty(emails) ? [] : split(replace(emails, ' ', ''), ',')
param budgetAmount = 200
param budgetStart = readEnvironmentVariable('BUDGET_START', '')
