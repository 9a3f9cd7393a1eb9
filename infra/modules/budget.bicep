// Says when this resource group costs more than was thought. It stops nothing.

@description('Name of the budget.')
param name string

@description('Amount a month, in the currency of the subscription.')
@minValue(1)
param amount int

@description('First day of the month in which it is made, as 2026-11-01. It cannot be changed afterwards.')
param start string

@description('Who is told; at least one.')
param emails string[]

resource budget 'Microsoft.Consumption/budgets@2024-08-01' = {
  name: name
  properties: {
    category: 'Cost'
    amount: amount
    timeGrain: 'Monthly'
    timePeriod: {
      startDate: start
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
