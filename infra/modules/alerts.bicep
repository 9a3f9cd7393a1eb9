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

@description('Who is told. Empty: alerts are seen in the portal only.')
param emails string[]

@description('How many seconds an index may lag behind its entity.')
@minValue(1)
param reconcileLagSeconds int

// Each query answers a number in the column `measure`; the alert fires when the largest, or the total, is above the
// threshold. A rule is looked at every quarter of an hour at most, which is the cheapest there is, and looks back twice
// as far, as telemetry comes minutes late. They ask metrics where they can: the Functions host keeps only some traces of many,
// with their logs (ItemCount says how many one stands for), and names no function in its logs.
var rules = [
  {
    name: 'poison'
    title: 'A message was given up on'
    description: 'A change was recorded as poison: an index or an archive is not what it should be until it is replayed. See docs/operating.md.'
    severity: 1
    every: 'PT15M'
    window: 'PT30M'
    query: '''
      AppMetrics
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
      AppMetrics
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
      AppRequests
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
    // The longest there is. What has not run in it counts from the first metric of any kind, so that a new deployment is
    // given its time.
    window: 'P2D'
    query: '''
      let began = toscalar(AppMetrics | summarize min(TimeGenerated));
      datatable(Timer: string, within: timespan) ['roll-days', 26h, 'collect-orphans', 26h, 'audit-drift', 3h]
      | join kind=leftouter (
          AppMetrics
          | where Name == 'rowkey.timer.completed'
          | summarize completed = max(TimeGenerated) by Timer = tostring(Properties.timer)
        ) on Timer
      | project Timer, measure = iff(coalesce(completed, began) > now() - within, 0, 1)
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
    name: 'drift'
    title: 'The audit found what does not agree'
    description: 'An index, copy, list, count or blob does not agree with its entity. See docs/operating.md.'
    severity: 2
    every: 'PT1H'
    window: 'PT2H'
    query: '''
      AppMetrics
      | where Name == 'rowkey.drift.found'
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
            query: rule.query
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
      // The tables come with the first telemetry, which is after the first deployment.
      skipQueryValidation: true
      actions: {
        actionGroups: [operators.id]
      }
    }
  }
]
