// Says when this resource group costs more than was thought. It stops nothing.

@description('Name of the budget.')
param name string

@description('Amount a month, in the currency of the subscription.')
@minValue(1)
param amount int

@description('First day of the month from which it counts, as 2026-11-01. Empty: this month.')
param start string

@description('First day of this month. Leave it as it is.')
param thisMonth string = '${utcNow('yyyy-MM')}-01'

@description('Who is told; at least one.')
param emails string[]

resource budget 'Microsoft.Consumption/budgets@2024-08-01' = {
  name: name
  properties: {
    category: 'Cost'
    amount: amount
    timeGrain: 'Monthly'
    timePeriod: {
      startDate: empty(start) ? thisMonth : start
    }
    notifications: {
      spent: {
        enabled: true
        operator: 'GreaterThan'
        threshold: 80
        thresholdType: 'Actual'
        contactEmails: emails
      }
      expected: {
        enabled: true
        operator: 'GreaterThan'
        threshold: 100
        thresholdType: 'Forecasted'
        contactEmails: emails
      }
    }
  }
}
