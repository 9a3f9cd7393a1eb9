// The operators' questions, as saved queries of the workspace.

@description('Name of the Log Analytics workspace.')
param workspaceName string

var queries = [
  {
    name: 'poison'
    question: 'Is anything in poison?'
    query: loadTextContent('../queries/poison.kql')
  }
  {
    name: 'reconcile-lag'
    question: 'How far behind are the indexes?'
    query: loadTextContent('../queries/reconcile-lag.kql')
  }
  {
    name: 'transactions-by-pattern'
    question: 'What costs transactions, by pattern?'
    query: loadTextContent('../queries/transactions-by-pattern.kql')
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

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' existing = {
  name: workspaceName
}

resource savedQueries 'Microsoft.OperationalInsights/workspaces/savedSearches@2025-07-01' = [
  for item in queries: {
    parent: workspace
    name: 'rowkey-${item.name}'
    // One that is there is replaced.
    etag: '*'
    properties: {
      category: 'Rowkey'
      displayName: item.question
      query: item.query
    }
  }
]
