// Saved queries for operators, in a pack that they can choose in the workspace.

import { Tags } from 'types.bicep'

@description('Name of the query pack.')
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

var queries = [
  {
    name: 'poison'
    question: 'Which messages became poison?'
    query: loadTextContent('../queries/poison.kql')
  }
  {
    name: 'reconcile-lag'
    question: 'How far behind are the indexes?'
    query: loadTextContent('../queries/reconcile-lag.kql')
  }
  {
    name: 'transactions-by-pattern'
    question: 'Which patterns cost transactions?'
    query: loadTextContent('../queries/transactions-by-pattern.kql')
  }
  {
    name: 'storage-responses'
    question: 'Does storage throttle, and where?'
    query: loadTextContent('../queries/storage-responses.kql')
  }
  {
    name: 'hot-partitions'
    question: 'Which partitions are hot?'
    query: loadTextContent('../queries/hot-partitions.kql')
  }
  {
    name: 'failing-or-slow'
    question: 'Which requests fail or are slow?'
    query: loadTextContent('../queries/failing-or-slow.kql')
  }
  {
    name: 'one-write'
    question: 'What happened to this one write, from the request to the reconciled index?'
    query: loadTextContent('../queries/one-write.kql')
  }
]

// Not saved searches of the workspace: a second deployment of those needs an ETag, which a template cannot carry.
resource pack 'Microsoft.OperationalInsights/queryPacks@2025-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {}
}

resource savedQueries 'Microsoft.OperationalInsights/queryPacks/queries@2025-07-01' = [
  for item in queries: {
    parent: pack
    // The service accepts only GUIDs as names.
    name: guid(pack.id, item.name)
    properties: {
      displayName: item.question
      body: item.query
      related: {
        resourceTypes: ['microsoft.operationalinsights/workspaces']
      }
      tags: {
        labels: ['Rowkey']
      }
    }
  }
]
