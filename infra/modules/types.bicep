// Shared types.

@export()
@description('Storage that the model needs: model.json, which npm run infra writes.')
type Model = {
  @description('Every table except the tables of days, which the app creates and deletes.')
  tables: string[]

  @description('Every queue, with its poison queue.')
  queues: string[]

  @description('Every blob container of the app.')
  containers: string[]

  @description('The container of the audit log, one of containers.')
  auditContainer: string

  @description('The container of unfinished uploads, one of containers.')
  uploadsContainer: string

  @description('The container of archived periods. One of containers if an entity declares archiveTo.')
  archivesContainer: string

  @description('Containers whose blobs move to the cool tier, each with the days after which they do.')
  coolContainers: CoolContainer[]

  @description('Paths of the API below which there are public files, for a content delivery network.')
  publicPaths: string[]

  @description('The beginning of the names of functions. Empty for a model without a prefix.')
  functionPrefix: string

  @description('The container of the backup, in an account of its own.')
  backupContainer: string

  @description('Days for which a backup is kept. 0 for a model without one.')
  @minValue(0)
  backupDays: int
}

@export()
@description('A container whose blobs move to the cool tier.')
type CoolContainer = {
  @description('Name of the container.')
  name: string

  @description('Days after the last change of a blob.')
  days: int
}

@export()
@description('A storage account of the app.')
type StorageAccount = {
  @description('The name of its connection: the beginning of its settings.')
  connection: string

  @description('The name of the account in Azure.')
  name: string
}

@export()
@description('How one storage account is managed. A value that is absent is that of all accounts.')
type AccountManagement = {
  @description('The name of the account: first, or one of furtherStorageAccounts.')
  account: string

  @description('Redundancy of the account.')
  storageSku: ('Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS')?

  @description('Days for which a deleted blob or container of the account can be restored.')
  @minValue(1)
  @maxValue(365)
  undeleteDays: int?

  @description('Whether the account is locked against deletion.')
  isProtected: bool?

  @description('Id of the workspace that receives metrics and logs of the account. Not for the first account.')
  workspaceId: string?

  @description('Email addresses that receive the alert of the account, besides those of all alerts.')
  alertEmails: string[]?
}

@export()
@description('Tags of a resource.')
type Tags = {
  *: string
}

@export()
@description('App registration in Microsoft Entra ID whose tokens the platform requires.')
type Authentication = {
  @description('Client id of the app registration. If empty, the platform passes every request to the app.')
  clientId: string

  @description('Tenant that issues the tokens.')
  tenantId: string
}
