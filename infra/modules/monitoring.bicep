// Where logs and metrics go: one workspace, and Application Insights on top of it.

import { Tags } from 'types.bicep'

@description('Name of the Log Analytics workspace.')
param workspaceName string

@description('Name of the Application Insights component.')
param applicationInsightsName string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('How many days logs and metrics are kept. The price of ingestion includes 31 days, and 90 for Application Insights.')
@minValue(30)
@maxValue(730)
param retentionDays int

@description('The most that is taken in on one day, in GB. What comes after that is lost, alerts included.')
@minValue(1)
param dailyCapGb int

// Every table that Application Insights writes: https://learn.microsoft.com/azure/azure-monitor/app/data-model-complete
var applicationInsightsTables = [
  'AppAvailabilityResults'
  'AppBrowserTimings'
  'AppDependencies'
  'AppEvents'
  'AppExceptions'
  'AppMetrics'
  'AppPageViews'
  'AppPerformanceCounters'
  'AppRequests'
  'AppSystemEvents'
  'AppTraces'
]

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: retentionDays
    workspaceCapping: {
      dailyQuotaGb: dailyCapGb
    }
    features: {
      disableLocalAuth: true
      enableLogAccessUsingOnlyResourcePermissions: true
    }
  }
}

// These tables keep 90 days whatever the retention of the workspace is, unless each one says otherwise.
// One at a time: the workspace is changed by each of them.
@batchSize(1)
resource tables 'Microsoft.OperationalInsights/workspaces/tables@2025-07-01' = [
  for table in applicationInsightsTables: {
    parent: workspace
    name: table
    properties: {
      retentionInDays: retentionDays
      // Without it a longer total from before would keep the rows in long-term storage.
      totalRetentionInDays: retentionDays
    }
  }
]

resource applicationInsights 'Microsoft.Insights/components@2020-02-02' = {
  name: applicationInsightsName
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    IngestionMode: 'LogAnalytics'
    // Telemetry is taken from identities with the role Monitoring Metrics Publisher only, so that the connection string
    // names a place and opens nothing.
    DisableLocalAuth: true
  }
}

@description('Id of the workspace.')
output workspaceId string = workspace.id
