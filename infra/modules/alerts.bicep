// Alerts and the people who receive them.

import { Tags } from 'types.bicep'

@description('Name of the action group; the alerts are named after it.')
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

@description('Id of the workspace that the alerts query.')
param workspaceId string

@description('Names of the storage accounts to watch for throttling.')
param storageAccountNames string[]

@description('Email addresses that also receive the alert of an account, for each of storageAccountNames.')
param accountEmails string[][]

@description('Email addresses that receive alerts. Empty shows alerts in the portal only.')
param emails string[]

@description('The beginning of the names of timers.')
param functionPrefix string

@description('Whether the model declares a backup, whose timer then runs.')
param hasBackup bool

@description('Seconds that an index may lag behind its entity.')
@minValue(1)
param reconcileLagSeconds int

// Each query returns a number in the column `measure`. The alert fires if the largest value, or the total, is above the
// threshold. Rules run at most every 15 minutes, the cheapest interval, and look back twice as far because telemetry arrives
// minutes late. Queries read the metrics of the app, which are complete. The Functions host samples its requests and logs, to a few a second. ItemCount
// is the number of values or of requests that a row stands for.

// The union declares the columns, so that queries are valid before the first telemetry creates the tables. Azure Monitor
// disables a rule whose query fails for a week.
var tables = '''
  let Metrics = union isfuzzy=true
    (datatable(TimeGenerated: datetime, Name: string, Sum: real, Max: real, ItemCount: int, Properties: dynamic) []), AppMetrics;
  let Requests = union isfuzzy=true
    (datatable(TimeGenerated: datetime, Url: string, ResultCode: string, ItemCount: int) []), AppRequests;
  let Platform = union isfuzzy=true
    (datatable(TimeGenerated: datetime, ResourceProvider: string) []), AzureMetrics;
'''

// Table storage rejects some requests whenever it moves a partition to another server, and the SDK retries them. A higher number
// in half an hour means that a table, a queue or the account is at its limit.
var throttledAtMost = 20

var rules = [
  {
    name: 'poison'
    title: 'A message became poison'
    description: 'The app gave up on a message. An index or an archive stays stale until the message is replayed. See docs/operating.md.'
    severity: 1
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      Metrics
      | where Name == 'rowkey.poison.recorded'
      | extend Queue = strcat(iff(isempty(Properties.account), '', strcat(Properties.account, '/')), Properties.queue)
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
    description: 'The time from a write to its reconciled indexes exceeded reconcileLagSeconds.'
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
    description: 'More than 5 % of at least 20 requests returned 5xx.'
    severity: 1
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      let byApp = Metrics
      | where Name == 'rowkey.request.duration'
      | summarize total = sum(ItemCount), failed = sumif(ItemCount, tostring(Properties.status) startswith '5');
      // With the requests that fail in the host, before they reach the app.
      let byHost = Requests
      | where isnotempty(Url)
      | summarize total = sum(ItemCount), failed = sumif(ItemCount, ResultCode startswith '5');
      union byApp, byHost
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
    description: 'A timer has not completed within its limit.'
    severity: 2
    every: 'PT1H'
    // The longest window of Azure Monitor. A timer that has not completed in the window counts from the first metric of any
    // kind, so that a new deployment gets the same time. Without any metric the alert telemetry-missing fires instead.
    window: 'P2D'
    query: '''
      let began = toscalar(Metrics | summarize min(TimeGenerated));
      datatable(Timer: string, within: timespan) ['roll-periods', 3h, 'collect-orphans', 26h, 'verify', 3h, 'expire', 3h, 'poison', 1h, 'follow', 1h, 'backup', 3h, 'backup-drill', 26h]
      | where hasBackup or Timer !startswith 'backup'
      | extend Timer = strcat(functionPrefix, Timer)
      | join kind=leftouter (
          Metrics
          | where Name == 'rowkey.timer.completed'
          | summarize completed = max(TimeGenerated) by Timer = tostring(Properties.timer)
        ) on Timer
      // Only an app that follows a table of another program has this timer.
      | where isnotnull(completed) or Timer != strcat(functionPrefix, 'follow')
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
    name: 'backup-old'
    title: 'The last snapshot of the backup is older than 26 hours'
    description: 'The backup has no new snapshot. Everything can still be restored, and takes longer. See docs/backup.md.'
    severity: 2
    every: 'PT1H'
    window: 'PT2H'
    // In hours. The timer of the backup reports it hourly.
    query: '''
      Metrics
      | where Name == 'rowkey.backup.age'
      | summarize measure = max(Max) / 3600
    '''
    aggregation: 'Maximum'
    threshold: 26
    dimensions: []
  }
  {
    name: 'telemetry-missing'
    title: 'The app sends no telemetry'
    description: 'Storage is in use, and no metric of the app has arrived for an hour. The app does not start, or may not send telemetry. No other alert can fire.'
    severity: 1
    every: 'PT1H'
    // Storage reports its own metrics, so a deployment without a published app is silent, and a published app gets an hour.
    window: 'P2D'
    query: '''
      let inUse = toscalar(Platform | where ResourceProvider =~ 'Microsoft.Storage' | where TimeGenerated < ago(1h) | count);
      Metrics
      | where Name startswith 'rowkey.'
      | where TimeGenerated > ago(1h)
      | summarize received = count()
      | project measure = iff(received == 0 and inUse > 0, 1, 0)
    '''
    aggregation: 'Maximum'
    threshold: 0
    dimensions: []
  }
  {
    name: 'ingestion-capped'
    title: 'Logs and metrics reached the daily cap'
    description: 'The workspace accepts no more data until its next day, so other alerts cannot fire. See docs/reference/infrastructure.md, Alerts.'
    severity: 1
    every: 'PT15M'
    // The workspace says so once a day.
    window: 'P1D'
    // https://learn.microsoft.com/azure/azure-monitor/logs/daily-cap#alert-when-daily-cap-is-reached
    query: '''
      _LogOperation
      | where Category =~ 'Ingestion'
      | where Detail contains 'OverQuota'
      | summarize measure = count()
    '''
    aggregation: 'Total'
    threshold: 0
    dimensions: []
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
      | extend Resource = strcat(Properties.service, ' ', iff(isempty(Properties.account), '', strcat(Properties.account, '/')), Properties.resource)
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
  {
    name: 'hot-partition'
    title: 'A partition is at half of its limit, or is throttled'
    description: 'A partition of a table has used half of the 2,000 entities a second that storage handles in one, or storage rejected its requests. The partition is named by its table and slot: Hot partitions in the console has its key. See docs/operating.md.'
    severity: 2
    every: 'PT15M'
    window: 'PT30M'
    // In percent: 1,000 entities a second during five minutes, or 20 rejected requests in the window.
    query: '''
      Metrics
      | where Name startswith 'rowkey.partition.'
      | extend Partition = strcat(tostring(Properties.resource), ', slot ', tostring(Properties.slot))
      | summarize
          load = sumif(Sum, Name == 'rowkey.partition.load'),
          throttled = sumif(Sum, Name == 'rowkey.partition.throttled')
          by Partition, bin(TimeGenerated, 5m)
      | summarize measure = max_of(100.0 * max(load) / 300000, 5.0 * sum(throttled)) by Partition
    '''
    aggregation: 'Maximum'
    threshold: 100
    dimensions: [
      {
        name: 'Partition'
        operator: 'Include'
        values: ['*']
      }
    ]
  }
]

resource accounts 'Microsoft.Storage/storageAccounts@2025-06-01' existing = [
  for account in storageAccountNames: {
    name: account
  }
]

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

// Who is responsible for one account.
resource accountOperators 'Microsoft.Insights/actionGroups@2023-01-01' = [
  for (account, index) in storageAccountNames: if (!empty(accountEmails[index])) {
    name: '${name}-${account}'
    location: 'global'
    tags: tags
    properties: {
      groupShortName: 'rowkey'
      enabled: true
      emailReceivers: [
        for email in accountEmails[index]: {
          name: email
          emailAddress: email
          useCommonAlertSchema: true
        }
      ]
    }
  }
]

// An app without a backup does not pay for the alert on its age.
var deployedRules = filter(rules, rule => hasBackup || rule.name != 'backup-old')

resource alerts 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [
  for rule in deployedRules: {
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
            query: 'let functionPrefix = "${functionPrefix}";let hasBackup = ${hasBackup};${tables}${rule.query}'
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
      autoMitigate: true
      // Validation needs tables that the first telemetry creates, after the first deployment.
      skipQueryValidation: true
      actions: {
        actionGroups: [operators.id]
      }
    }
  }
]

// Throttling of a whole account, by the metric of the service, which includes clients that use a grant and bypass the app.
// Values of the dimension ResponseType:
// https://learn.microsoft.com/azure/storage/tables/monitor-table-storage-reference#metrics-dimensions
resource accountsThrottled 'Microsoft.Insights/metricAlerts@2018-03-01' = [
  for (account, index) in storageAccountNames: {
    name: index == 0 ? '${name}-account-throttled' : '${name}-account-throttled-${account}'
    location: 'global'
    tags: tags
    properties: {
      description: 'The storage account ${account} rejected requests because a partition, a queue or the account is at its limit. See docs/operating.md.'
      severity: 2
      enabled: true
      scopes: [accounts[index].id]
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
      actions: concat(
        [
          {
            actionGroupId: operators.id
          }
        ],
        empty(accountEmails[index])
          ? []
          : [
              {
                actionGroupId: accountOperators[index].id
              }
            ]
      )
    }
  }
]
