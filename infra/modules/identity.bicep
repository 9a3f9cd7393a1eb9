// The identity of the app. User-assigned, so that the identity and its roles exist before the app first starts.

import { Tags } from 'types.bicep'

@description('Name of the identity.')
param name string

@description('Region.')
param location string

@description('Tags of every resource.')
param tags Tags

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

@description('Object id of the identity, for role assignments.')
output principalId string = identity.properties.principalId
