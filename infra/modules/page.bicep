// The page of the app: Azure Static Web Apps, with files and nothing else. Visitors sign in as everywhere, with tokens in their requests.

import { Tags } from 'types.bicep'

@description('Name of the static web app.')
param name string

@description('Region of the management of the static web app. Its files are served from everywhere.')
param location string

@description('Tags of every resource.')
param tags Tags

resource page 'Microsoft.Web/staticSites@2025-03-01' = {
  name: name
  location: location
  // azd finds the resource of a service by this tag.
  tags: union(tags, {
    'azd-service-name': 'page'
  })
  // A free site has two domains of its own, 100 GB a month, and no fixed price.
  sku: {
    name: 'Free'
    tier: 'Free'
  }
  properties: {
    // A pull request gets no site of its own: the app accepts pages of known origins only.
    stagingEnvironmentPolicy: 'Disabled'
    allowConfigFileUpdates: true
  }
}

@description('Origin of the page.')
output origin string = 'https://${page.properties.defaultHostname}'
