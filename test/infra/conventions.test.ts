import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { appFunctions } from '../kit/api.ts';
import { engineReconcile } from '../kit/engine.ts';
import { declarations, INFRA, propertiesOf, sources, theDeclaration, theResource, valueAt } from './bicep.ts';

/** Rules that neither the compiler nor security.test.ts checks. */

const deployed = declarations.filter(({ kind, isExisting }) => kind === 'resource' && !isExisting);

test('the tests read every resource and module with its name', () => {
  const heads = [...sources.values()].flatMap((text) => text.match(/^ *(resource|module) \w+ '/gm) ?? []);
  const read = declarations.filter(({ kind }) => kind === 'resource' || kind === 'module');
  expect(read.length).toBe(heads.length);
  expect(read.filter((one) => !valueAt(one, 'name')).map(({ name }) => name)).toEqual([]);
});

test('every parameter, output and type has a description', () => {
  const undescribed = declarations
    .filter(({ file, kind }) => file.endsWith('.bicep') && ['param', 'output', 'type'].includes(kind))
    .filter(({ decorators }) => !decorators.some((decorator) => /^description\('.{5,}'\)$/.test(decorator)));
  expect(undescribed.map(({ file, name }) => `${file} ${name}`)).toEqual([]);
});

test('every resource with a location has the tags of the environment', () => {
  const untagged = deployed
    .filter(({ type }) => type !== 'Microsoft.Web/sites/basicPublishingCredentialsPolicies')
    .filter((one) => valueAt(one, 'location') && !/^(union\()?tags\b/.test(valueAt(one, 'tags') ?? ''));
  expect(untagged.map(({ name }) => name)).toEqual([]);
});

test('every resource is in the region of the deployment', () => {
  const isGlobal = ({ type, name }: (typeof deployed)[number]) =>
    // Few regions have static web apps, whose files are served from everywhere.
    // The backup survives the loss of the region.
    ['page', 'backup'].includes(name) || /actionGroups|metricAlerts|^Microsoft\.Cdn/.test(type);
  const located = declarations.filter((one) => one.kind === 'module' || deployed.includes(one));
  const elsewhere = located.filter((one) => {
    const location = valueAt(one, one.kind === 'module' ? 'params.location' : 'location');
    return location !== undefined && location !== 'location' && !isGlobal(one);
  });
  expect(elsewhere.map(({ name }) => name)).toEqual([]);
});

test('every rule of the linter is an error', () => {
  const { rules }: { rules: Record<string, { level: string }> } = JSON.parse(
    readFileSync(join(INFRA, 'bicepconfig.json'), 'utf8'),
  ).analyzers.core;
  expect(Object.keys(rules).length).toBeGreaterThan(30);
  expect(Object.entries(rules).filter(([, { level }]) => level !== 'error')).toEqual([]);
});

describe('the function app', () => {
  test('sets nothing that Flex Consumption rejects or provides', () => {
    const rejected = /ftpsState|linuxFxVersion|alwaysOn|use32BitWorkerProcess|netFrameworkVersion|appSettings/;
    expect(theResource('Microsoft.Web/sites').text).not.toMatch(rejected);
  });

  // App Service returns 409 now and then for concurrent writes to one site.
  test('gets its site configuration one resource after the other', () => {
    const parts = deployed.filter((part) => part.file === 'modules/app.bicep' && valueAt(part, 'parent') === 'app');
    expect(parts.length).toBeGreaterThan(3);
    const before = parts.map((part) => valueAt(part, 'dependsOn'));
    expect(before).toEqual(parts.map((_, index) => parts[index - 1] && `[${parts[index - 1]?.name}]`));
  });

  // The service sometimes rejects these resources without a location, although their type does not require one.
  test('gives a location to its publishing credentials', () => {
    const policies = deployed.filter(({ type }) => type === 'Microsoft.Web/sites/basicPublishingCredentialsPolicies');
    expect(policies.map((policy) => valueAt(policy, 'location'))).toEqual(['location', 'location']);
  });
});

test('the tables of Application Insights keep rows as long as the workspace, and change one at a time', () => {
  const retention = valueAt(theResource('Microsoft.OperationalInsights/workspaces'), 'properties.retentionInDays');
  const tables = theResource('Microsoft.OperationalInsights/workspaces/tables');
  expect(retention).toBe('retentionDays');
  expect(valueAt(tables, 'properties.retentionInDays')).toBe(retention);
  expect(valueAt(tables, 'properties.totalRetentionInDays')).toBe(retention);
  expect(tables.decorators).toContain('batchSize(1)');
});

test('the documentation counts the instances that a zone-redundant app always has', () => {
  expect(valueAt(theResource('Microsoft.Web/serverfarms'), 'properties.zoneRedundant')).toBe('isZoneRedundant');
  // Two for HTTP, and two for each queue and each timer.
  const groups =
    1 +
    [engineReconcile.INDEX_CHANGES_QUEUE, engineReconcile.TRANSFERS_QUEUE].length +
    Object.values(appFunctions.TIMERS).filter(({ isUsed }) => !isUsed).length;
  const page = readFileSync(new URL('../../docs/reference/infrastructure.md', import.meta.url), 'utf8');
  expect(page).toContain(`${2 * groups} always-ready instances`);
});

// https://learn.microsoft.com/azure/frontdoor/front-door-caching
test('a content delivery network is an option, and keeps public files only, by their whole URL', () => {
  const main = declarations.filter(({ file }) => file === 'main.bicep');
  expect(theDeclaration('param', 'hasCdn', main).text).toContain('param hasCdn bool = false');
  expect(theDeclaration('module', 'cdn', main).value).toMatch(/^if \(hasCdn\) \{/);
  const routes = deployed.filter(({ type }) => type === 'Microsoft.Cdn/profiles/afdEndpoints/routes');
  const keeping = routes.filter((route) => route.text.includes('cacheConfiguration'));
  expect(keeping.map((route) => valueAt(route, 'properties.patternsToMatch'))).toEqual(['publicPaths']);
  expect(keeping[0]?.text).toContain("queryStringCachingBehavior: 'UseQueryString'");
});

test('prod keeps copies in three zones of one region', () => {
  const [, sku] = /^param storageSku = (.*)$/m.exec(sources.get('prod.bicepparam') ?? '') ?? [];
  expect(sku).toBe("'Standard_ZRS'");
  const choices = theDeclaration(
    'param',
    'storageSku',
    declarations.filter(({ file }) => file === 'main.bicep'),
  );
  expect(choices.value).toBe("'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'");
});

describe('further storage accounts', () => {
  const paramsOf = (module: string) => propertiesOf(valueAt(theDeclaration('module', module), 'params') ?? '');

  test('are like the first, but for their names', () => {
    const [first, further] = [paramsOf('storage'), paramsOf('furtherStorage')];
    expect(first.size).toBeGreaterThan(10);
    const own = ['name', 'isAuditLogLocked', 'sku', 'undeleteDays', 'isProtected', 'workspaceId'];
    const others = (params: typeof first) => [...params].filter(([name]) => !own.includes(name));
    expect(others(further)).toEqual(others(first));
    expect(theDeclaration('module', 'furtherStorage').list).toBe('furtherAccounts');
    for (const [name, list] of [
      ['sku', 'skus'],
      ['undeleteDays', 'undeletes'],
      ['isProtected', 'protections'],
    ] as const)
      expect([first.get(name), further.get(name)]).toEqual([`${list}[0]`, `${list}[index + 1]`]);
    const shared = 'monitoring.outputs.workspaceId';
    expect(first.get('workspaceId')).toBe(shared);
    expect(further.get('workspaceId')).toBe(`managements[index + 1].?workspaceId ?? ${shared}`);
  });

  test('have the settings of the first, with their own names', () => {
    const ending = /__\w+(?='?: )/g;
    const settings = theDeclaration('resource', 'settings').text.match(/AzureWebJobsStorage__\w+(?=: )/g) ?? [];
    const further = theDeclaration('var', 'furtherSettings').value.match(ending);
    expect(settings.length).toBe(5);
    expect(further?.toSorted()).toEqual(settings.map((name) => name.replace('AzureWebJobsStorage', '')).toSorted());
  });

  test('give an alert of an account to its own addresses as well', () => {
    const [group, alert] = ['accountOperators', 'accountsThrottled'].map((name) => theDeclaration('resource', name));
    expect(group?.value).toContain('if (!empty(accountEmails[index]))');
    expect(group && valueAt(group, 'properties.emailReceivers')).toContain('for email in accountEmails[index]');
    expect(alert && valueAt(alert, 'properties.actions')).toMatch(
      /operators\.id[^?]*\? \[\][^?]*accountOperators\[index\]\.id/,
    );
    expect(valueAt(theDeclaration('module', 'alerts'), 'params.accountEmails')).toBe('accountReceivers');
  });

  test('have the roles and the alert of the first', () => {
    for (const [kind, name] of [
      ['module', 'storageAccess'],
      ['resource', 'accountsThrottled'],
    ] as const)
      expect(theDeclaration(kind, name).list).toBe('storageAccountNames');
  });
});
