// The identity of the app. It is assigned by the user so that it, and its roles, are there before the app first starts.

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

@description('The object id, to which roles are assigned.')
output principalId string = identity.properties.principalId
