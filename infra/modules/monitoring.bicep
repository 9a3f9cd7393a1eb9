// Logs and metrics: one workspace, and Application Insights on top of it.

import { Tags } from 'types.bicep'

@description('Name of the Log Analytics workspace.')
param workspaceName string

@description('Name of the Application Insights component.')
param applicationInsightsName string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Days for which logs and metrics are kept. The price of ingestion includes 31 days, or 90 for Application Insights.')
@minValue(30)
@maxValue(730)
param retentionDays int

@description('Maximum ingestion per day, in GB. Data above it is lost, so alerts do not fire.')
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

// These tables keep 90 days, whatever the retention of the workspace, unless each table overrides it.
// One at a time, because each table changes the workspace.
@batchSize(1)
resource tables 'Microsoft.OperationalInsights/workspaces/tables@2025-07-01' = [
  for table in applicationInsightsTables: {
    parent: workspace
    name: table
    properties: {
      retentionInDays: retentionDays
      // An earlier, longer total would keep the rows in long-term storage.
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
    // Only identities with the role Monitoring Metrics Publisher can send telemetry. The connection string alone gives no access.
    DisableLocalAuth: true
  }
}

@description('Id of the workspace.')
output workspaceId string = workspace.id
