import { describe, expect, test } from 'vitest';
import { model } from '../fixtures/model.ts';
import { httpDoor } from '../kit/http.ts';
import {
  type Declaration,
  ofApp,
  propertiesOf,
  readDeclarations,
  resources,
  type Sources,
  sources,
  theDeclaration,
  theResource,
  valueAt,
} from './bicep.ts';

/** A rule passes for the templates and fails for each of its violations. */
interface Rule {
  readonly title: string;
  readonly check: (templates: Templates) => void;
  readonly violations: readonly Violation[];
}

interface Violation {
  readonly file: string;
  /** Text of the file, and the text that replaces its first occurrence. */
  readonly text: string;
  readonly replacement: string;
  /** Text before the occurrence. */
  readonly after?: string;
}

interface Templates {
  readonly sources: Sources;
  readonly declarations: readonly Declaration[];
}

/** Values of every resource of a type. */
const REQUIRED: readonly [type: string, path: string, value: string][] = [
  ['Microsoft.Storage/storageAccounts', 'properties.allowSharedKeyAccess', 'false'],
  ['Microsoft.Storage/storageAccounts', 'properties.defaultToOAuthAuthentication', 'true'],
  ['Microsoft.Storage/storageAccounts', 'properties.minimumTlsVersion', "'TLS1_2'"],
  ['Microsoft.Storage/storageAccounts', 'properties.supportsHttpsTrafficOnly', 'true'],
  ['Microsoft.Storage/storageAccounts', 'properties.allowBlobPublicAccess', 'false'],
  ['Microsoft.Storage/storageAccounts', 'properties.allowCrossTenantReplication', 'false'],
  ['Microsoft.Storage/storageAccounts', 'properties.sasPolicy.expirationAction', "'Log'"],
  ['Microsoft.Storage/storageAccounts', 'properties.sasPolicy.sasExpirationPeriod', "'00.01:00:00'"],
  ['Microsoft.Storage/storageAccounts/blobServices/containers', 'properties.publicAccess', "'None'"],
  ['Microsoft.KeyVault/vaults', 'properties.enablePurgeProtection', 'true'],
  ['Microsoft.KeyVault/vaults', 'properties.enableSoftDelete', 'true'],
  ['Microsoft.KeyVault/vaults', 'properties.enableRbacAuthorization', 'true'],
  ['Microsoft.KeyVault/vaults/keys', 'properties.kty', "'RSA'"],
  ['Microsoft.KeyVault/vaults/keys', 'properties.keySize', '3072'],
  ['Microsoft.KeyVault/vaults/keys', 'properties.keyOps', "['wrapKey', 'unwrapKey']"],
  ['Microsoft.Web/sites', 'properties.httpsOnly', 'true'],
  ['Microsoft.Web/sites', 'properties.siteConfig.minTlsVersion', "'1.2'"],
  ['Microsoft.Web/sites', 'properties.siteConfig.scmMinTlsVersion', "'1.2'"],
  ['Microsoft.Web/sites', 'properties.siteConfig.cors.supportCredentials', 'false'],
  [
    'Microsoft.Web/sites',
    'properties.functionAppConfig.deployment.storage.authentication.type',
    "'UserAssignedIdentity'",
  ],
  ['Microsoft.Web/sites/basicPublishingCredentialsPolicies', 'properties.allow', 'false'],
  ['Microsoft.Insights/components', 'properties.DisableLocalAuth', 'true'],
  ['Microsoft.OperationalInsights/workspaces', 'properties.features.disableLocalAuth', 'true'],
  ['Microsoft.OperationalInsights/workspaces', 'properties.workspaceCapping.dailyQuotaGb', 'dailyCapGb'],
  ['Microsoft.Authorization/roleAssignments', 'properties.principalId', 'principalId'],
  ['Microsoft.Authorization/roleAssignments', 'properties.principalType', "'ServicePrincipal'"],
];

/** Ids of built-in roles, from https://learn.microsoft.com/azure/role-based-access-control/built-in-roles. */
const ROLES = {
  'Storage Blob Data Owner': 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b',
  'Storage Queue Data Contributor': '974c5e8b-45b9-4653-ba55-5f855dd0fb88',
  'Storage Table Data Contributor': '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3',
  'Storage Table Delegator': '965033a5-c8eb-4f35-b82f-fef460a3606d',
  'Monitoring Metrics Publisher': '3913510d-42f4-4e42-8a64-420c390055eb',
  'Key Vault Crypto Service Encryption User': 'e147488a-f6f5-4113-8e2d-b22465e65bf6',
};

/** Every allowed assignment. */
const ASSIGNMENTS = [
  'Key Vault Crypto Service Encryption User on Microsoft.KeyVault/vaults/keys',
  'Monitoring Metrics Publisher on Microsoft.Insights/components',
  'Storage Blob Data Owner on Microsoft.Storage/storageAccounts',
  'Storage Queue Data Contributor on Microsoft.Storage/storageAccounts',
  'Storage Table Data Contributor on Microsoft.Storage/storageAccounts',
  'Storage Table Delegator on Microsoft.Storage/storageAccounts',
];

/** Every setting of the app. None is a secret: the connection string is useless without the role. */
const SETTINGS = [
  'AGREED_MODEL_CHANGES',
  'APPLICATIONINSIGHTS_AUTHENTICATION_STRING',
  'APPLICATIONINSIGHTS_CONNECTION_STRING',
  'AzureWebJobsDisableHomepage',
  'AzureWebJobsStorage__blobServiceUri',
  'AzureWebJobsStorage__clientId',
  'AzureWebJobsStorage__credential',
  'AzureWebJobsStorage__queueServiceUri',
  'AzureWebJobsStorage__tableServiceUri',
  'BackupStorage__blobServiceUri',
  'CONSOLE_CLIENT_ID',
  'CONSOLE_SCOPE',
  'KEY_ENCRYPTION_KEY_URI',
  'STORAGE_ACCOUNTS',
  'TOKEN_AUDIENCE',
  'TOKEN_ISSUER',
  'TOKEN_JWKS_URI',
  'TRUSTED_PROXIES',
];

const templates: Templates = { sources, declarations: readDeclarations(sources) };

const rules: readonly Rule[] = [
  ...REQUIRED.map(requiredValue),
  {
    title: 'the key vault has no access policies',
    check: ({ declarations }) =>
      expect(valueAt(theResource('Microsoft.KeyVault/vaults', declarations), 'properties.accessPolicies')).toBe(
        undefined,
      ),
    violations: [
      {
        file: 'modules/key-vault.bicep',
        text: '    enableRbacAuthorization: true',
        replacement: '    enableRbacAuthorization: true\n    accessPolicies: []',
      },
    ],
  },
  {
    title: 'the key rotates and no version expires',
    check: ({ declarations }) => {
      const { text } = theResource('Microsoft.KeyVault/vaults/keys', declarations);
      expect(text).toMatch(/type: 'rotate'[\s\S]*timeAfterCreate: 'P1Y'/);
      expect(text).not.toMatch(/expiryTime|\bexp:/);
    },
    violations: [
      { file: 'modules/key-vault.bicep', text: "'rotate'", replacement: "'notify'" },
      { file: 'modules/key-vault.bicep', text: 'keySize: 3072', replacement: 'keySize: 3072\n    exp: 1' },
    ],
  },
  {
    title: 'publishing with a password is off for FTP and for SCM',
    check: ({ declarations }) =>
      expect(
        resources('Microsoft.Web/sites/basicPublishingCredentialsPolicies', declarations)
          .map((policy) => valueAt(policy, 'name'))
          .toSorted(),
      ).toEqual(["'ftp'", "'scm'"]),
    violations: [{ file: 'modules/app.bicep', text: "name: 'scm'", replacement: "name: 'ftp'" }],
  },
  {
    title: 'the app has the known settings and no others',
    check: ({ declarations }) => {
      const settings = valueAt(siteConfig("'appsettings'", declarations), 'properties') ?? '';
      const names = [...settings.matchAll(/(?:^ +|\{ )(\w+): /gm)].map(([, name]) => name);
      expect(names.toSorted()).toEqual(SETTINGS);
    },
    violations: [{ file: 'modules/app.bicep', text: 'TOKEN_ISSUER: t', replacement: "KEY: ''\n      TOKEN_ISSUER: t" }],
  },
  {
    title: 'an empty client id switches platform authentication off',
    check: ({ declarations }) => {
      const authentication = siteConfig("'authsettingsV2'", declarations);
      // A deployment leaves a resource unchanged while the condition of the resource is false.
      expect(authentication.value).toMatch(/^\{/);
      expect(theDeclaration('var', 'isAuthenticationOn', declarations).value).toBe('!empty(authentication.clientId)');
      for (const path of ['platform.enabled', 'globalValidation.requireAuthentication'])
        expect(valueAt(authentication, `properties.${path}`)).toBe('isAuthenticationOn');
    },
    violations: [
      {
        file: 'modules/app.bicep',
        text: "config@2025-03-01' = {",
        replacement: "config@2025-03-01' = if (isAuthenticationOn) {",
        after: 'resource platformAuthentication',
      },
      { file: 'modules/app.bicep', text: '!empty(authentication.clientId)', replacement: 'true' },
      { file: 'modules/app.bicep', text: 'enabled: isAuthenticationOn', replacement: 'enabled: true' },
    ],
  },
  {
    title: 'platform authentication leaves the routes open that need no token',
    check: ({ declarations }) => {
      const authentication = siteConfig("'authsettingsV2'", declarations);
      const excluded = valueAt(authentication, 'properties.globalValidation.excludedPaths') ?? '';
      const open = httpDoor.createRoutes(model).filter(({ roles, path }) => !roles && !path.includes('{'));
      expect(open.length).toBeGreaterThan(3);
      expect(open.map(({ path }) => `'/api/${path}'`).filter((path) => !excluded.includes(path))).toEqual([]);
    },
    violations: [{ file: 'modules/app.bicep', text: "        '/api/model'\n", replacement: '' }],
  },
  {
    title: 'deletes of rows and blobs and every use of the key are logged',
    check: ({ declarations }) => {
      const logs = resources('Microsoft.Insights/diagnosticSettings', declarations).map(
        (setting) =>
          `${valueAt(setting, 'scope')}: ${/category: '(\w+)'/.exec(valueAt(setting, 'properties.logs') ?? '')?.[1]}`,
      );
      expect(logs.toSorted()).toEqual([
        'blobService: StorageDelete',
        'blobService: StorageDelete',
        'queueService: undefined',
        'tableService: StorageDelete',
        'vault: AuditEvent',
      ]);
    },
    violations: [{ file: 'modules/key-vault.bicep', text: "'AuditEvent'", replacement: "'Policy'" }],
  },
  {
    title: 'roles have the ids of the built-in roles',
    check: ({ declarations }) => {
      const roles = propertiesOf(theDeclaration('var', 'roles', declarations).value);
      expect(Object.fromEntries([...roles].map(([name, id]) => [name, id.slice(1, -1)]))).toEqual(ROLES);
    },
    violations: [
      {
        file: 'modules/roles.bicep',
        text: ROLES['Storage Table Delegator'],
        replacement: ROLES['Storage Table Data Contributor'],
      },
    ],
  },
  {
    title: 'only the allowed roles are assigned, each on one resource and under a name of its own',
    check: ({ declarations }) => {
      const assignments = resources('Microsoft.Authorization/roleAssignments', ofApp(declarations));
      expect(assignments.map((one) => `${roleOf(one)} on ${scopeOf(one, declarations)}`).toSorted()).toEqual(
        ASSIGNMENTS,
      );
      for (const one of assignments)
        expect(valueAt(one, 'name')).toBe(`guid(${valueAt(one, 'scope')}.id, principalId, roleId('${roleOf(one)}'))`);
    },
    violations: [
      {
        file: 'modules/access.bicep',
        text: 'resource telemetry ',
        replacement: `resource extra 'microsoft.authorization/roleassignments@2022-04-01' = {\n}\n\nresource telemetry `,
      },
      { file: 'modules/access.bicep', text: 'scope: key', replacement: 'scope: vault' },
      {
        file: 'modules/storage-access.bicep',
        text: "roleDefinitionId: roleId('Storage Table Delegator')",
        replacement: "roleDefinitionId: 'x'",
      },
      { file: 'modules/access.bicep', text: 'guid(key.id, principalId', replacement: 'guid(key.id, keyName' },
    ],
  },
  {
    title: 'a protected environment locks its data against deletion',
    check: ({ sources, declarations }) => {
      const locks = resources('Microsoft.Authorization/locks', declarations);
      for (const lock of locks) {
        expect(lock.value).toMatch(/^if \(isProtected\) \{/);
        expect(valueAt(lock, 'properties.level')).toBe("'CanNotDelete'");
      }
      expect(locks.map((lock) => scopeOf(lock, declarations)).toSorted()).toEqual([
        'Microsoft.KeyVault/vaults',
        'Microsoft.Storage/storageAccounts',
        'Microsoft.Storage/storageAccounts',
      ]);
      expect(sources.get('prod.bicepparam')).toMatch(/^param isProtected = true$/m);
    },
    violations: [
      { file: 'modules/key-vault.bicep', text: "'CanNotDelete'", replacement: "'ReadOnly'" },
      { file: 'modules/storage.bicep', text: 'if (isProtected) {', replacement: '{' },
      { file: 'prod.bicepparam', text: 'isProtected = true', replacement: 'isProtected = false' },
    ],
  },
  {
    title:
      'the app can append to the audit log of a protected environment, and nobody can change it before a lifecycle rule deletes it',
    check: ({ declarations }) => {
      const policy = theResource(
        'Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies',
        ofApp(declarations),
      );
      // The service rejects a deployment of a locked policy.
      expect(policy.value).toMatch(/^if \(isProtected && !isAuditLogLocked\) \{/);
      expect(valueAt(policy, 'parent')).toBe('auditContainer');
      expect(valueAt(theDeclaration('resource', 'auditContainer', declarations), 'name')).toBe('model.auditContainer');
      expect(valueAt(policy, 'properties.allowProtectedAppendWrites')).toBe('true');
      expect(valueAt(policy, 'properties.immutabilityPeriodSinceCreationInDays')).toBe('auditKeptDays');
    },
    violations: [
      { file: 'modules/storage.bicep', text: 'allowProtectedAppendWrites: true', replacement: 'x: true' },
      { file: 'modules/storage.bicep', text: 'name: model.auditContainer', replacement: 'name: packageContainer' },
    ],
  },
  {
    title: 'the app adds to the backup and deletes none of it, and nobody changes it before the retention has passed',
    check: ({ declarations: all }) => {
      const declarations = all.filter(({ file }) => file === 'modules/backup.bicep');
      const role = theResource('Microsoft.Authorization/roleDefinitions', all);
      const actions = [...role.text.matchAll(/'Microsoft\.Storage\/storageAccounts\/blobServices\/containers\/(.*)'/g)];
      expect(actions.map(([, action]) => action)).toEqual(['read', 'blobs/read', 'blobs/write', 'blobs/add/action']);
      const assignment = theResource('Microsoft.Authorization/roleAssignments', declarations);
      expect(valueAt(assignment, 'scope')).toBe('account');
      expect(valueAt(assignment, 'properties.roleDefinitionId')).toBe('backupRoleId()');
      const policy = theResource(
        'Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies',
        declarations,
      );
      expect(policy.value).toMatch(/^if \(isProtected && !isBackupLocked\) \{/);
      expect(valueAt(policy, 'parent')).toBe('container');
      expect(valueAt(policy, 'properties.allowProtectedAppendWrites')).toBe('true');
      expect(valueAt(policy, 'properties.immutabilityPeriodSinceCreationInDays')).toBe('days');
      // A part of a snapshot is used again for as long as the retention.
      expect(theDeclaration('var', 'journalKeptDays', declarations).value).toBe('days + 2');
      expect(theDeclaration('var', 'partsKeptDays', declarations).value).toBe('2 * days + 2');
      const expiries = theDeclaration('var', 'expiries', declarations).value.matchAll(
        /folders: \[(.*)\]\n +days: (\w+)$/gm,
      );
      expect([...expiries].map(([, ...expiry]) => expiry)).toEqual([
        ["'journal', 'manifests', 'progress'", 'journalKeptDays'],
        ["'parts', 'blobs'", 'partsKeptDays'],
      ]);
      const module = theDeclaration('module', 'backup', all);
      expect(module.value).toMatch(/^if \(model\.backupDays > 0\) \{/);
    },
    violations: [
      { file: 'backup-role.bicep', text: 'blobs/add/action', replacement: 'blobs/delete' },
      { file: 'modules/backup.bicep', text: 'allowProtectedAppendWrites: true', replacement: 'x: true' },
      { file: 'modules/backup.bicep', text: '2 * days + 2', replacement: 'days + 2' },
      { file: 'modules/backup.bicep', text: "['parts', 'blobs']", replacement: "['parts', 'journal']" },
      { file: 'main.bicep', text: 'if (model.backupDays > 0) {', replacement: '{' },
    ],
  },
  {
    title: 'roles go to the identity of the app, before the app is deployed',
    check: ({ declarations }) => {
      for (const module of ['access', 'storageAccess', 'backup']) {
        const access = theDeclaration('module', module, declarations);
        expect(valueAt(access, 'params.principalId')).toBe('identity.outputs.principalId');
      }
      expect(theDeclaration('module', 'storageAccess', declarations).list).toBe('storageAccountNames');
      expect(valueAt(theDeclaration('module', 'app', declarations), 'dependsOn')).toBe(
        '[access, storageAccess, backup]',
      );
    },
    violations: [
      { file: 'main.bicep', text: 'identity.outputs.principalId', replacement: 'tokenIssuer' },
      { file: 'main.bicep', text: 'dependsOn: [access, storageAccess, backup]', replacement: 'dependsOn: [storage]' },
      { file: 'main.bicep', text: 'for account in storageAccountNames', replacement: 'for account in furtherAccounts' },
    ],
  },
  {
    title: 'no file holds a key or reads one',
    check: ({ sources }) => {
      for (const [path, text] of sources) {
        expect(text, path).not.toMatch(/\blist(Keys|Secrets|AccountSas|ServiceSas|Credentials)?\(|\.list\w*\(/i);
        expect(text, path).not.toMatch(
          /AccountKey|SharedAccessSignature|InstrumentationKey|DefaultEndpointsProtocol|@secure/i,
        );
      }
    },
    violations: [
      { file: 'modules/app.bicep', text: 'key.properties.keyUri', replacement: 'account.listKeys().keys[0].value' },
      { file: 'dev.bicepparam', text: "'dev'", replacement: "'AccountKey=a'" },
    ],
  },
  {
    title: 'the only connection string is the one of Application Insights',
    check: ({ declarations }) => {
      const lines = declarations
        .flatMap(({ text }) => text.split('\n'))
        .filter((line) => /connection_?string/i.test(line));
      expect(lines.map((line) => line.trim())).toEqual([
        'APPLICATIONINSIGHTS_CONNECTION_STRING: applicationInsights.properties.ConnectionString',
      ]);
    },
    violations: [
      {
        file: 'modules/app.bicep',
        text: 'TOKEN_ISSUER: t',
        replacement: 'ConnectionString: name\n      TOKEN_ISSUER: t',
      },
    ],
  },
];

describe('the templates', () => {
  test.each(rules)('$title', ({ check }) => check(templates));
});

describe('a rule fails for its violation', () => {
  const violations = rules.flatMap(({ title, check, violations }) => violations.map((one) => ({ title, check, one })));
  test('every rule has a violation', () =>
    expect(rules.filter(({ violations }) => violations.length === 0).map(({ title }) => title)).toEqual([]));
  test.each(violations)('$title: $one.replacement', ({ check, one }) => {
    const changed = withViolation(one);
    expect(() => check({ sources: changed, declarations: readDeclarations(changed) })).toThrow();
  });
});

function requiredValue([type, path, value]: (typeof REQUIRED)[number]): Rule {
  const [first] = resources(type);
  const key = path.split('.').at(-1);
  return {
    title: `every ${type} has ${path}: ${value}`,
    check: ({ declarations }) => {
      const found = resources(type, declarations).map((resource) => [resource.name, valueAt(resource, path)]);
      expect(found).not.toEqual([]);
      expect(found).toEqual(found.map(([name]) => [name, value]));
    },
    violations: [
      {
        file: first?.file ?? '',
        text: `${key}: ${value}`,
        replacement: `${key}: changed`,
        after: `resource ${first?.name} `,
      },
    ],
  };
}

function withViolation({ file, text, replacement, after = '' }: Violation): Sources {
  const source = sources.get(file) ?? '';
  const start = source.indexOf(text, source.indexOf(after));
  if (start < 0) throw new Error(`"${text}" not found in ${file}.`);
  return new Map(sources).set(file, source.slice(0, start) + replacement + source.slice(start + text.length));
}

function siteConfig(name: string, declarations: readonly Declaration[]): Declaration {
  const found = resources('Microsoft.Web/sites/config', declarations).find((one) => valueAt(one, 'name') === name);
  if (!found) throw new Error(`Site configuration ${name} not found.`);
  return found;
}

function roleOf(assignment: Declaration): string | undefined {
  return /^roleId\('([^']+)'\)$/.exec(valueAt(assignment, 'properties.roleDefinitionId') ?? '')?.[1];
}

function scopeOf(assignment: Declaration, declarations: readonly Declaration[]): string | undefined {
  return declarations.find(({ file, name }) => file === assignment.file && name === valueAt(assignment, 'scope'))?.type;
}
