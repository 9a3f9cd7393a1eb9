// The assigned built-in roles by name: https://learn.microsoft.com/azure/role-based-access-control/built-in-roles

@export()
@description('Ids of role definitions, the same in every tenant.')
var roles = {
  'Storage Blob Data Owner': 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
  'Storage Queue Data Contributor': '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
  'Storage Table Data Contributor': '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
  'Storage Table Delegator': '965033a5-c8eb-4f35-b82f-fef460a3606d'
  'Monitoring Metrics Publisher': '3913510d-42f4-4e42-8a64-420c390055eb'
  'Key Vault Crypto Service Encryption User': 'e147488a-f6f5-4113-8e2d-b22465e65bf6'
}

@export()
@description('Returns the id of a role definition by the name of the role.')
func roleId(role string) string => subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles[role])

@export()
@description('Returns the name of the role of backups, which backup-role.bicep creates in the subscription.')
func backupRoleName() string => guid(subscription().id, 'rowkey-backup')

@export()
@description('Returns the id of the role of backups.')
func backupRoleId() string => subscriptionResourceId('Microsoft.Authorization/roleDefinitions', backupRoleName())
