// What wakes somebody up, and whom.

import { Tags } from 'types.bicep'

@description('Name of the action group; the alerts are named after it.')
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Id of the workspace that is asked.')
param workspaceId string

@description('Name of the storage account whose throttling is watched.')
param storageAccountName string

@description('Who is told. Empty: alerts are seen in the portal only.')
param emails string[]

@description('How many seconds an index may lag behind its entity.')
@minValue(1)
param reconcileLagSeconds int

// Each query returns a number in the column `measure`; the alert fires if the largest value, or the total, is above the
// threshold. A rule runs at most every 15 minutes, which is the cheapest interval, and looks back twice as far, because
// telemetry arrives minutes late. The queries read metrics where they can: the Functions host keeps only a sample of traces
// and their logs (ItemCount says how many one stands for), and names no function in its logs.

// The tables with their columns, so that a query is valid before the first telemetry has created them. A rule whose query
// fails for a week is switched off by the service.
var tables = '''
  let Metrics = union isfuzzy=true
    (datatable(TimeGenerated: datetime, Name: string, Sum: real, Max: real, Properties: dynamic) []), AppMetrics;
  let Requests = union isfuzzy=true
    (datatable(TimeGenerated: datetime, Url: string, ResultCode: string, ItemCount: int) []), AppRequests;
'''

// Table storage rejects some requests whenever it moves a partition to another server, and the SDK repeats them. More than
// this number in half an hour means that a table, a queue or the account is at its limit.
var throttledAtMost = 20

var rules = [
  {
    name: 'poison'
    title: 'A message was given up on'
    description: 'A change was recorded as poison: an index or an archive is not what it should be until it is replayed. See docs/operating.md.'
    severity: 1
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      Metrics
      | where Name == 'rowkey.poison.recorded'
      | extend Queue = tostring(Properties.queue)
      | summarize measure = sum(Sum) by Queue
    '''
    aggregation: 'Total'
    threshold: 0
    dimensions: [
      {
        name: 'Queue'
        operator: 'Include'
        values: ['*']
      }
    ]
  }
  {
    name: 'reconcile-lag'
    title: 'Indexes lag behind'
    description: 'From a write until its indexes agreed took longer than is promised.'
    severity: 2
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      Metrics
      | where Name == 'rowkey.reconcile.lag'
      | summarize measure = max(Max)
    '''
    aggregation: 'Maximum'
    threshold: reconcileLagSeconds
    dimensions: []
  }
  {
    name: 'server-errors'
    title: 'More than 5 % of the requests fail'
    description: 'Of at least 20 requests, more than 5 % were answered with 5xx.'
    severity: 1
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      Requests
      | where isnotempty(Url)
      | summarize total = sum(ItemCount), failed = sumif(ItemCount, ResultCode startswith '5')
      | where total >= 20
      | project measure = 100.0 * failed / total
    '''
    aggregation: 'Maximum'
    threshold: 5
    dimensions: []
  }
  {
    name: 'timer-missed'
    title: 'A timer did not run'
    description: 'A timer has not run to its end for longer than it may.'
    severity: 2
    every: 'PT1H'
    // The longest window there is. A timer that has not completed in it counts from the first metric of any kind, so that
    // a new deployment gets the same time. Without any metric nothing is known, and the alert does not fire.
    window: 'P2D'
    query: '''
      let began = toscalar(Metrics | summarize min(TimeGenerated));
      datatable(Timer: string, within: timespan) ['roll-days', 26h, 'collect-orphans', 26h, 'verify', 3h, 'poison', 1h]
      | join kind=leftouter (
          Metrics
          | where Name == 'rowkey.timer.completed'
          | summarize completed = max(TimeGenerated) by Timer = tostring(Properties.timer)
        ) on Timer
      | extend since = coalesce(completed, began)
      | project Timer, measure = iff(isnull(since) or since > now() - within, 0, 1)
    '''
    aggregation: 'Maximum'
    threshold: 0
    dimensions: [
      {
        name: 'Timer'
        operator: 'Include'
        values: ['*']
      }
    ]
  }
  {
    name: 'inconsistent'
    title: 'The consistency check found inconsistent rows'
    description: 'An index, copy, list, count or blob does not agree with its entity. See docs/operating.md.'
    severity: 2
    every: 'PT1H'
    window: 'PT2H'
    query: '''
      Metrics
      | where Name == 'rowkey.verify.found'
      | extend Entity = tostring(Properties.entity)
      | summarize measure = max(Sum) by Entity
    '''
    aggregation: 'Maximum'
    threshold: 0
    dimensions: [
      {
        name: 'Entity'
        operator: 'Include'
        values: ['*']
      }
    ]
  }
  {
    name: 'storage-throttled'
    title: 'Storage throttles the app'
    description: 'Storage rejected requests of the app with 429 or 503: a table, a queue or a container is at its limit. See docs/operating.md.'
    severity: 2
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      Metrics
      | where Name == 'rowkey.storage.responses'
      | where tostring(Properties.status) in ('429', '503')
      | extend Resource = strcat(Properties.service, ' ', Properties.resource)
      | summarize measure = sum(Sum) by Resource
    '''
    aggregation: 'Total'
    threshold: throttledAtMost
    dimensions: [
      {
        name: 'Resource'
        operator: 'Include'
        values: ['*']
      }
    ]
  }
]

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageAccountName
}

resource operators 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: name
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'rowkey'
    enabled: true
    emailReceivers: [
      for email in emails: {
        name: email
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

resource alerts 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [
  for rule in rules: {
    name: '${name}-${rule.name}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: rule.title
      description: rule.description
      severity: rule.severity
      enabled: true
      scopes: [workspaceId]
      evaluationFrequency: rule.every
      windowSize: rule.window
      criteria: {
        allOf: [
          {
            query: '${tables}${rule.query}'
            timeAggregation: rule.aggregation
            metricMeasureColumn: 'measure'
            dimensions: rule.dimensions
            operator: 'GreaterThan'
            threshold: rule.threshold
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      // Says by itself when it is over.
      autoMitigate: true
      // Validation would need the tables of the first telemetry, which comes after the first deployment.
      skipQueryValidation: true
      actions: {
        actionGroups: [operators.id]
      }
    }
  }
]

// The same for the whole account, by the service's own metric: it also counts clients that hold a grant and never reach
// the app. The values are those of the dimension ResponseType:
// https://learn.microsoft.com/azure/storage/tables/monitor-table-storage-reference#metrics-dimensions
resource accountThrottled 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: '${name}-account-throttled'
  location: 'global'
  tags: tags
  properties: {
    description: 'The storage account rejected requests because a partition, a queue or the account is at its limit. See docs/operating.md.'
    severity: 2
    enabled: true
    scopes: [account.id]
    evaluationFrequency: 'PT15M'
    windowSize: 'PT30M'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'throttled'
          metricNamespace: 'Microsoft.Storage/storageAccounts'
          metricName: 'Transactions'
          dimensions: [
            {
              name: 'ResponseType'
              operator: 'Include'
              values: [
                'ServerBusyError'
                'ClientThrottlingError'
                'ClientAccountBandwidthThrottlingError'
                'ClientAccountRequestThrottlingError'
              ]
            }
          ]
          timeAggregation: 'Total'
          operator: 'GreaterThan'
          threshold: throttledAtMost
        }
      ]
    }
    autoMitigate: true
    actions: [
      {
        actionGroupId: operators.id
      }
    ]
  }
}
