// Types that more than one file uses.

@export()
@description('What the model of the app needs of storage: model.json, which a program writes.')
type Model = {
  @description('Every table, but those that are named by the day: the app makes and drops them.')
  tables: string[]

  @description('Every queue, with its poison queue.')
  queues: string[]

  @description('Every blob container of the app.')
  containers: string[]
}

@export()
@description('Tags of a resource.')
type Tags = {
  *: string
}

@export()
@description('The app registration in Microsoft Entra ID that the platform asks tokens for.')
type Authentication = {
  @description('Client id of the app registration. Empty: the platform lets every request through to the app.')
  clientId: string

  @description('The tenant that issues the tokens.')
  tenantId: string
}
