// Notifies when the resource group exceeds its budget. Stops nothing.

@description('Name of the budget.')
param name string

@description('Amount per month, in the currency of the subscription.')
@minValue(1)
param amount int

@description('First day of the month of the first deployment, such as 2026-11-01. Azure rejects a later change.')
param start string

@description('Email addresses that receive notifications, at least one.')
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
