import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AUDIT_CONTAINER } from '../../lib/operations/audit-log.ts';
import { ARRIVALS_CONTAINER } from '../../lib/patterns/attachment.ts';
import {
  all,
  at,
  children,
  type Declaration,
  declarations,
  files,
  INFRA,
  properties,
  resources,
  templates,
  theResource,
  unquoted,
  written,
} from './bicep.ts';

/** Ids of built-in roles, from https://learn.microsoft.com/azure/role-based-access-control/built-in-roles. */
const ROLES = {
  'Storage Blob Data Owner': 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b',
  'Storage Queue Data Contributor': '974c5e8b-45b9-4653-ba55-5f855dd0fb88',
  'Storage Table Data Contributor': '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3',
  'Storage Table Delegator': '965033a5-c8eb-4f35-b82f-fef460a3606d',
  'Monitoring Metrics Publisher': '3913510d-42f4-4e42-8a64-420c390055eb',
  'Key Vault Crypto Service Encryption User': 'e147488a-f6f5-4113-8e2d-b22465e65bf6',
};

/** Every role that anybody may be given, and on what. Another one is added here when it has a reason. */
const ALLOWED = [
  'Key Vault Crypto Service Encryption User on Microsoft.KeyVault/vaults/keys',
  'Monitoring Metrics Publisher on Microsoft.Insights/components',
  'Storage Blob Data Owner on Microsoft.Storage/storageAccounts',
  'Storage Queue Data Contributor on Microsoft.Storage/storageAccounts',
  'Storage Table Data Contributor on Microsoft.Storage/storageAccounts',
  'Storage Table Delegator on Microsoft.Storage/storageAccounts',
];

/** By provider or by type. Diagnostic settings have no later version, and no stable one. */
const API_VERSIONS: Readonly<Record<string, string>> = {
  'Microsoft.Authorization/roleAssignments': '2022-04-01',
  'Microsoft.Consumption/budgets': '2024-08-01',
  'Microsoft.Insights/actionGroups': '2023-01-01',
  'Microsoft.Insights/components': '2020-02-02',
  'Microsoft.Insights/diagnosticSettings': '2021-05-01-preview',
  'Microsoft.Insights/metricAlerts': '2018-03-01',
  'Microsoft.Insights/scheduledQueryRules': '2023-12-01',
  'Microsoft.KeyVault/': '2025-05-01',
  'Microsoft.ManagedIdentity/userAssignedIdentities': '2024-11-30',
  'Microsoft.OperationalInsights/': '2025-07-01',
  'Microsoft.Storage/': '2025-06-01',
  'Microsoft.Web/': '2025-03-01',
};

/** Everything that the app is told. None is a key: the connection string is of a component without local authentication. */
const SETTINGS = [
  'AGREED_MODEL_CHANGES',
  'APPLICATIONINSIGHTS_AUTHENTICATION_STRING',
  'APPLICATIONINSIGHTS_CONNECTION_STRING',
  'AzureWebJobsStorage__blobServiceUri',
  'AzureWebJobsStorage__clientId',
  'AzureWebJobsStorage__credential',
  'AzureWebJobsStorage__queueServiceUri',
  'AzureWebJobsStorage__tableServiceUri',
  'KEY_ENCRYPTION_KEY_URI',
  'TOKEN_AUDIENCE',
  'TOKEN_ISSUER',
  'TOKEN_JWKS_URI',
];

/** https://learn.microsoft.com/azure/azure-monitor/app/data-model-complete */
const APPLICATION_INSIGHTS_TABLES = [
  'AppAvailabilityResults',
  'AppBrowserTimings',
  'AppDependencies',
  'AppEvents',
  'AppExceptions',
  'AppMetrics',
  'AppPageViews',
  'AppPerformanceCounters',
  'AppRequests',
  'AppSystemEvents',
  'AppTraces',
];

/** https://learn.microsoft.com/azure/storage/tables/monitor-table-storage-reference#metrics-dimensions */
const THROTTLED = [
  'ServerBusyError',
  'ClientThrottlingError',
  'ClientAccountBandwidthThrottlingError',
  'ClientAccountRequestThrottlingError',
];

const model: { tables: string[]; queues: string[]; containers: string[] } = JSON.parse(
  readFileSync(join(INFRA, 'model.json'), 'utf8'),
);
const everyResource = declarations.filter(({ kind }) => kind === 'resource');

describe('storage', () => {
  const account = theResource('Microsoft.Storage/storageAccounts');

  test('has no account keys', () => {
    expect(written(account, 'properties.allowSharedKeyAccess')).toBe('false');
    expect(written(account, 'properties.defaultToOAuthAuthentication')).toBe('true');
  });
  test('takes TLS 1.2 at least', () => expect(written(account, 'properties.minimumTlsVersion')).toBe("'TLS1_2'"));
  test('takes HTTPS only', () => expect(written(account, 'properties.supportsHttpsTrafficOnly')).toBe('true'));
  test('has no public blobs', () => {
    expect(written(account, 'properties.allowBlobPublicAccess')).toBe('false');
    for (const container of resources('Microsoft.Storage/storageAccounts/blobServices/containers'))
      expect(written(container, 'properties.publicAccess')).toBe("'None'");
  });
  test('marks a signature that exceeds an hour in the log of its request, and says which requests are logged', () => {
    expect(written(account, 'properties.sasPolicy.expirationAction')).toBe("'Log'");
    expect(written(account, 'properties.sasPolicy.sasExpirationPeriod')).toBe("'00.01:00:00'");
    const [, comment] = /((?:^ *\/\/.*\n)+) *sasPolicy:/m.exec(account.node.text) ?? [];
    expect(comment).toContain('SasExpiryStatus');
    expect(comment).toContain('Only deletes are logged');
  });
  test('lets no other tenant replicate', () =>
    expect(written(account, 'properties.allowCrossTenantReplication')).toBe('false'));

  test('lets browsers of no origin but those given in', () => {
    for (const rules of ['tableCorsRules', 'blobCorsRules']) {
      const rule = declarations.find(({ name }) => name === rules);
      expect(rule?.node.text).toMatch(/^var \w+ = empty\(allowedOrigins\)\s+\? \[\]/);
      expect(rule?.node.text).toContain('allowedOrigins: allowedOrigins');
    }
  });

  test.each([
    ['table', 'Microsoft.Storage/storageAccounts/tableServices/tables', 'model.tables'],
    ['queue', 'Microsoft.Storage/storageAccounts/queueServices/queues', 'model.queues'],
    ['container', 'Microsoft.Storage/storageAccounts/blobServices/containers', 'model.containers'],
  ])('has every %s of the model', (name, type, list) => {
    const [declaration] = resources(type).filter(({ loopsOver }) => loopsOver === list);
    expect(declaration && written(declaration, 'name')).toBe(name);
  });

  test('has a poison queue for every queue', () => {
    const queues = model.queues.filter((queue) => !queue.endsWith('-poison'));
    expect(queues).not.toEqual([]);
    expect(model.queues).toEqual(queues.flatMap((queue) => [queue, `${queue}-poison`]).toSorted());
  });

  test('deletes what is old in the containers of the audit log and of arrivals, and in no others', () => {
    const [policy] = resources('Microsoft.Storage/storageAccounts/managementPolicies');
    const values = new Map(
      declarations.filter(({ kind }) => kind === 'var').map(({ name, node }) => [name, children(node)[1]?.text]),
    );
    expect(values.get('auditContainer')).toBe(`'${AUDIT_CONTAINER}'`);
    expect(values.get('arrivalsContainer')).toBe(`'${ARRIVALS_CONTAINER}'`);
    const list = policy && at(policy.body, 'properties.policy.rules');
    const rules = (list ? children(list) : []).map((rule) =>
      ['blobTypes', 'prefixMatch']
        .map((filter) => at(rule, `definition.filters.${filter}`)?.text.replaceAll(/\$\{(\w+)\}/g, '$1'))
        .join(' '),
    );
    expect(rules).toEqual(["['appendBlob'] ['auditContainer/']", "['blockBlob'] ['arrivalsContainer/']"]);
    // The tier of an append blob cannot be set: such a rule would be refused.
    expect(policy?.node.text).not.toContain('tierTo');
  });
});

describe('the key vault', () => {
  const vault = theResource('Microsoft.KeyVault/vaults');
  const key = theResource('Microsoft.KeyVault/vaults/keys');

  test('cannot be purged', () => {
    expect(written(vault, 'properties.enablePurgeProtection')).toBe('true');
    expect(written(vault, 'properties.enableSoftDelete')).toBe('true');
  });
  test('knows roles and no access policies', () => {
    expect(written(vault, 'properties.enableRbacAuthorization')).toBe('true');
    expect(written(vault, 'properties.accessPolicies')).toBeUndefined();
  });
  test('has a key that wraps and does nothing else', () => {
    expect(written(key, 'properties.kty')).toBe("'RSA'");
    expect(written(key, 'properties.keySize')).toBe('3072');
    expect(written(key, 'properties.keyOps')).toBe("['wrapKey', 'unwrapKey']");
  });
  test('rotates the key, and lets no version expire that something is wrapped with', () => {
    expect(key.node.text).toMatch(/type: 'rotate'[\s\S]*timeAfterCreate: 'P1Y'/);
    expect(key.node.text).not.toMatch(/expiryTime|\bexp:/);
  });
});

describe('the app', () => {
  const app = theResource('Microsoft.Web/sites');

  test('takes HTTPS only', () => expect(written(app, 'properties.httpsOnly')).toBe('true'));
  test('takes TLS 1.2 at least', () => {
    expect(written(app, 'properties.siteConfig.minTlsVersion')).toBe("'1.2'");
    expect(written(app, 'properties.siteConfig.scmMinTlsVersion')).toBe("'1.2'");
  });
  test('says nothing of what Flex Consumption refuses or has of its own', () => {
    const refused = /ftpsState|linuxFxVersion|alwaysOn|use32BitWorkerProcess|netFrameworkVersion|appSettings/;
    expect(app.body?.text.replaceAll(/\/\/.*/g, '')).not.toMatch(refused);
  });
  test('cannot be published to with a password', () => {
    const policies = resources('Microsoft.Web/sites/basicPublishingCredentialsPolicies');
    expect(policies.map((policy) => written(policy, 'name')).toSorted()).toEqual(["'ftp'", "'scm'"]);
    for (const policy of policies) {
      expect(written(policy, 'properties.allow')).toBe('false');
      // The service has been known to refuse them without, though no documentation says so.
      expect(written(policy, 'location')).toBe('location');
    }
  });
  test('fetches its package as its identity', () =>
    expect(written(app, 'properties.functionAppConfig.deployment.storage.authentication.type')).toBe(
      "'UserAssignedIdentity'",
    ));
  test('has the settings that are known', () => {
    const settings = resources('Microsoft.Web/sites/config').find(
      (config) => written(config, 'name') === "'appsettings'",
    );
    const value = at(settings?.body, 'properties');
    const names = value ? all(value, 'object').flatMap((object) => [...properties(object).keys()]) : [];
    expect(names.toSorted()).toEqual(SETTINGS);
  });
  test('switches platform authentication off when its client id is emptied', () => {
    const authentication = resources('Microsoft.Web/sites/config').find(
      (config) => written(config, 'name') === "'authsettingsV2'",
    );
    // A resource with a condition is left as it is when the condition fails.
    expect(authentication?.node.text).not.toMatch(/^resource .* = if /m);
    const isOn = declarations.find(({ name }) => name === 'isAuthenticationOn');
    expect(isOn && children(isOn.node)[1]?.text).toBe('!empty(authentication.clientId)');
    for (const switched of ['platform.enabled', 'globalValidation.requireAuthentication'])
      expect(authentication && written(authentication, `properties.${switched}`)).toBe('isAuthenticationOn');
  });
  test('has its site configuration written one resource after the other', () => {
    const parts = declarations.filter((part) => part.file === 'modules/app.bicep' && written(part, 'parent') === 'app');
    expect(parts.length).toBeGreaterThan(3);
    const before = parts.map((part) => written(part, 'dependsOn'));
    expect(before).toEqual(parts.map((_, index) => parts[index - 1] && `[${parts[index - 1]?.name}]`));
  });
  test('sends no cookies to other origins', () =>
    expect(written(app, 'properties.siteConfig.cors.supportCredentials')).toBe('false'));
});

describe('monitoring', () => {
  test('takes telemetry of identities only', () => {
    const component = theResource('Microsoft.Insights/components');
    expect(written(component, 'properties.DisableLocalAuth')).toBe('true');
    const workspace = theResource('Microsoft.OperationalInsights/workspaces');
    expect(written(workspace, 'properties.features.disableLocalAuth')).toBe('true');
  });
  test('keeps the tables of Application Insights as long as the rest of the workspace', () => {
    const retention = written(theResource('Microsoft.OperationalInsights/workspaces'), 'properties.retentionInDays');
    const tables = theResource('Microsoft.OperationalInsights/workspaces/tables');
    expect(written(tables, 'properties.retentionInDays')).toBe(retention);
    expect(written(tables, 'properties.totalRetentionInDays')).toBe(retention);
    expect(tables.decorators).toContain('batchSize(1)');
    const list = declarations.find(({ kind, name }) => kind === 'var' && name === tables.loopsOver);
    const names = list ? all(list.node, 'string').map(({ text }) => unquoted(text)) : [];
    expect(names).toEqual(APPLICATION_INSIGHTS_TABLES);
  });
  test('watches the throttling of the whole storage account', () => {
    const alert = theResource('Microsoft.Insights/metricAlerts');
    expect(written(alert, 'properties.scopes')).toBe('[account.id]');
    expect(alert.node.text).toContain("metricName: 'Transactions'");
    expect(alert.node.text).toContain("name: 'ResponseType'");
    expect(alert.node.text.match(/(?<=')\w+Error(?=')/g)).toEqual(THROTTLED);
  });
  test('has a daily cap', () => {
    const workspace = theResource('Microsoft.OperationalInsights/workspaces');
    expect(written(workspace, 'properties.workspaceCapping.dailyQuotaGb')).toBe('dailyCapGb');
  });
  test('hears who deletes rows and blobs, and who uses the key', () => {
    const logs = resources('Microsoft.Insights/diagnosticSettings').map(
      (setting) =>
        `${written(setting, 'scope')}: ${/category: '(\w+)'/.exec(written(setting, 'properties.logs') ?? '')?.[1]}`,
    );
    expect(logs.toSorted()).toEqual([
      'blobService: StorageDelete',
      'queueService: undefined',
      'tableService: StorageDelete',
      'vault: AuditEvent',
    ]);
  });
});

describe('roles', () => {
  const assignments = resources('Microsoft.Authorization/roleAssignments');
  const roleOf = (declaration: Declaration) =>
    /^subscriptionResourceId\('Microsoft.Authorization\/roleDefinitions', roles\['([^']+)'\]\)$/.exec(
      written(declaration, 'properties.roleDefinitionId') ?? '',
    )?.[1];
  const scopeOf = (declaration: Declaration) => {
    const scope = declarations.find(
      ({ file, name }) => file === declaration.file && name === written(declaration, 'scope'),
    );
    return scope?.of.split('@')[0];
  };

  test('have the ids that they have in Azure', () => {
    const roles = declarations.find(({ name }) => name === 'roles')?.body;
    const ids = roles && [...properties(roles)].map(([name, id]) => [name, unquoted(id.text)]);
    expect(Object.fromEntries(ids ?? [])).toEqual(ROLES);
  });
  test('are those that are allowed, each on one resource', () =>
    expect(assignments.map((assignment) => `${roleOf(assignment)} on ${scopeOf(assignment)}`).toSorted()).toEqual(
      ALLOWED,
    ));
  test('are given to the identity of the app and to nobody else', () => {
    for (const assignment of assignments) {
      expect(written(assignment, 'properties.principalId')).toBe('principalId');
      expect(written(assignment, 'properties.principalType')).toBe("'ServicePrincipal'");
    }
    const access = declarations.find(({ kind, name }) => kind === 'module' && name === 'access');
    expect(access && written(access, 'params.principalId')).toBe('identity.outputs.principalId');
  });
  test('have names that differ, made of what they are for', () => {
    for (const assignment of assignments)
      expect(written(assignment, 'name')).toBe(
        `guid(${written(assignment, 'scope')}.id, identityName, roles['${roleOf(assignment)}'])`,
      );
  });
  test('come before the app', () => {
    const app = declarations.find(({ kind, name }) => kind === 'module' && name === 'app');
    expect(app && written(app, 'dependsOn')).toBe('[access]');
  });
});

describe('everywhere', () => {
  test.each(files.map((file) => [file.path, file.root.text]))('%s has no key and asks for none', (_path, text) => {
    expect(text).not.toMatch(/\blist(Keys|Secrets|AccountSas|ServiceSas|Credentials)?\(|\.list\w*\(/i);
    expect(text).not.toMatch(/AccountKey|SharedAccessSignature|InstrumentationKey|DefaultEndpointsProtocol|@secure/i);
  });

  test('a connection string is only that of Application Insights, which opens nothing', () => {
    const lines = templates
      .flatMap(({ root }) => root.text.split('\n'))
      .filter((line) => /connection_?string/i.test(line));
    const code = lines.filter((line) => !line.trim().startsWith('//')).map((line) => line.trim());
    expect(code).toEqual(['APPLICATIONINSIGHTS_CONNECTION_STRING: applicationInsights.properties.ConnectionString']);
  });

  test.each(everyResource.map((resource) => [`${resource.file} ${resource.name}`, resource]))(
    '%s has the API version of its kind',
    (_name, resource) => {
      const [type = '', version] = resource.of.split('@');
      const [, expected] = Object.entries(API_VERSIONS).find(([prefix]) => type.startsWith(prefix)) ?? [];
      expect(version).toBe(expected);
    },
  );

  test.each(everyResource.map((resource) => [`${resource.file} ${resource.name}`, resource]))(
    '%s has a name',
    (_name, resource) => expect(written(resource, 'name')).toBeTruthy(),
  );

  test.each(templates.map((file) => [file.path, file]))('%s describes every parameter and output', (_path, file) => {
    const undescribed = file.declarations
      .filter(({ kind }) => kind === 'param' || kind === 'output' || kind === 'type')
      .filter(({ decorators }) => !decorators.some((decorator) => /^description\('.{5,}'\)$/.test(decorator)));
    expect(undescribed.map(({ name }) => name)).toEqual([]);
  });

  test('what has a place of its own has the tags of the environment', () => {
    const untagged = everyResource
      .filter(({ existing, of }) => !existing && !of.includes('/basicPublishingCredentialsPolicies@'))
      .filter(
        (resource) => written(resource, 'location') && !/^(union\()?tags\b/.test(written(resource, 'tags') ?? ''),
      );
    expect(untagged.map(({ name }) => name)).toEqual([]);
  });

  test('every rule of the linter is an error', () => {
    const { rules } = JSON.parse(readFileSync(join(INFRA, 'bicepconfig.json'), 'utf8')).analyzers.core;
    expect(Object.keys(rules).length).toBeGreaterThan(30);
    expect(Object.entries(rules).filter(([, rule]) => (rule as { level: string }).level !== 'error')).toEqual([]);
  });
});
