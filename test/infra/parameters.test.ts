import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '../any-text.ts';
import { declarations, sources, theDeclaration, theResource, valueAt } from './bicep.ts';
import { evaluate } from './evaluate.ts';

const PARAMETER_FILES = ['dev.bicepparam', 'main.bicepparam', 'prod.bicepparam'];
const CLIENT = '11111111-1111-1111-1111-111111111111';
const TENANT = '22222222-2222-2222-2222-222222222222';
const inMain = (name: string, given: Record<string, unknown>) => evaluate('main.bicep', name, given);

describe('environmentName', () => {
  const label = (environmentName: string) => inMain('environmentLabel', { environmentName });

  test.each(['dev', 'prod', 'azd', 'Trial-2', 'a', '0'])('accepts %s', (name) => expect(label(name)).toBe(name));

  test('rejects every name that App Service rejects', () => {
    const anyName = fc.oneof(
      anyText({ minLength: 1, maxLength: 12 }),
      fc.string({
        minLength: 1,
        maxLength: 12,
        unit: fc.constantFrom('a', 'Z', '9', '-', '_', '.', ' ', 'é', '\u212a'),
      }),
    );
    // Documented for site names: letters, digits and hyphens, with no hyphen first or last.
    const usable = /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$/;
    fc.assert(
      fc.property(anyName, (name) => {
        if (usable.test(name)) expect(label(name)).toBe(name);
        else expect(() => label(name)).toThrow(`environmentName "${name}" is not usable. Use letters`);
      }),
      { numRuns: 200 },
    );
  });

  test('is read by its checks only', () => {
    const readers = declarations.filter(
      ({ file, name, value }) =>
        file === 'main.bicep' && name !== 'environmentName' && /\benvironmentName\b/.test(value),
    );
    expect(readers.map(({ name }) => name)).toEqual(['wrongNameCharacters', 'isNameUsable', 'environmentLabel']);
  });
});

describe('authentication', () => {
  const check = (clientId: string, tenantId: string) =>
    inMain('checkedAuthentication', { authentication: { clientId, tenantId } });

  test('accepts a client id with a tenant, or neither', () => {
    expect(check(CLIENT, TENANT)).toEqual({ clientId: CLIENT, tenantId: TENANT });
    expect(check('', '')).toEqual({ clientId: '', tenantId: '' });
  });
  test('rejects a client id without a tenant, and a tenant without a client id', () => {
    const message = 'authentication needs both clientId and tenantId';
    expect(() => check(CLIENT, '')).toThrow(message);
    expect(() => check('', TENANT)).toThrow(message);
  });
});

describe('furtherStorageAccounts', () => {
  const check = (...names: string[]) => inMain('checkedAccounts', { furtherStorageAccounts: names });

  test('accepts the names that the app accepts', () => {
    expect(check()).toEqual([]);
    expect(check('second', 'Third3')).toEqual(['second', 'Third3']);
  });
  test.each([['first'], ['a', 'A'], ['3rd'], ['my-account'], ['a b'], ['']])('rejects %s %s', (...names) => {
    expect(() => check(...names)).toThrow('furtherStorageAccounts needs different names');
  });
  // Accounts whose names begin alike share partition servers.
  test('gives each account a name that begins with a hash', () => {
    expect(theDeclaration('var', 'names').value).toMatch(/ '\$\{suffix\}rowkey' :/);
    expect(theDeclaration('var', 'suffix').value).toMatch(/^uniqueString\(/);
    expect(theDeclaration('var', 'furtherAccounts').value).toMatch(
      / name: '\$\{uniqueString\([^)]*\)[^']*, name\)\}rowkey'/,
    );
  });
});

describe('accountManagement', () => {
  const given = {
    furtherStorageAccounts: ['second', 'third'],
    storageSku: 'Standard_ZRS',
    undeleteDays: 7,
    isProtected: false,
  };
  const valuesOf = (name: string, ...accountManagement: object[]) => inMain(name, { ...given, accountManagement });

  test('gives an account its own values, and the others those of all', () => {
    const second = { account: 'second', storageSku: 'Standard_GZRS', undeleteDays: 90, isProtected: true };
    const third = { account: 'third', alertEmails: ['Ann@contoso.com', 'ann@contoso.com '] };
    expect(valuesOf('skus', second, third)).toEqual(['Standard_ZRS', 'Standard_GZRS', 'Standard_ZRS']);
    expect(valuesOf('undeletes', second, third)).toEqual([7, 90, 7]);
    expect(valuesOf('protections', second, third)).toEqual([false, true, false]);
    expect(valuesOf('accountReceivers', second, third)).toEqual([[], [], ['ann@contoso.com']]);
    expect(valuesOf('undeletes', { account: 'first', undeleteDays: 30 })).toEqual([30, 7, 7]);
    expect(valuesOf('skus')).toEqual(['Standard_ZRS', 'Standard_ZRS', 'Standard_ZRS']);
  });

  test.each([
    ['an unknown account', [{ account: 'fourth' }]],
    ['an account named twice', [{ account: 'second' }, { account: 'second' }]],
    ['another workspace for the first account', [{ account: 'first', workspaceId: 'id' }]],
  ])('rejects %s', (_, management) => {
    expect(() => valuesOf('skus', ...management)).toThrow('accountManagement needs different names');
  });
});

describe('siteUpdateStrategy', () => {
  test('is that of the app', () => {
    const app = theResource('Microsoft.Web/sites');
    expect(valueAt(app, 'properties.functionAppConfig.siteUpdateStrategy.type')).toBe('siteUpdateStrategy');
    expect(valueAt(theDeclaration('module', 'app'), 'params.siteUpdateStrategy')).toBe('siteUpdateStrategy');
    expect(inMain('siteUpdateStrategy', {})).toBe('Recreate');
  });
});

describe('isZoneRedundant', () => {
  const check = (isZoneRedundant: boolean, storageSku: string, own?: string) =>
    inMain('checkedZoneRedundancy', {
      isZoneRedundant,
      storageSku,
      furtherStorageAccounts: ['second'],
      accountManagement: own ? [{ account: 'second', storageSku: own }] : [],
    });

  test('accepts storage in three zones', () => {
    for (const sku of ['Standard_ZRS', 'Standard_GZRS']) expect(check(true, sku)).toBe(true);
    expect(check(false, 'Standard_LRS')).toBe(false);
  });
  test('rejects storage in one data centre', () => {
    for (const sku of ['Standard_LRS', 'Standard_GRS'])
      for (const run of [() => check(true, sku), () => check(true, 'Standard_ZRS', sku)])
        expect(run).toThrow('isZoneRedundant needs storage in three zones');
  });
});

describe.each(PARAMETER_FILES)('the comma-separated lists of %s', (file) => {
  test.each([
    ['', []],
    [',', []],
    ['a, b', ['a', 'b']],
    [', a,,b ,', ['a', 'b']],
  ])('read "%s" without empty elements', (text, list) => {
    const alertEmails = evaluate(file, 'alertEmails', { ALERT_EMAILS: text });
    expect(inMain('receivers', { alertEmails })).toEqual(list);
    const allowedOrigins = evaluate(file, 'allowedOrigins', { ALLOWED_ORIGINS: text });
    expect(inMain('origins', { allowedOrigins })).toEqual(list);
  });

  test('name an address once, whatever its case', () => {
    const text = 'Ann@contoso.com,bob@contoso.com, ann@Contoso.com,bob@contoso.com';
    const alertEmails = evaluate(file, 'alertEmails', { ALERT_EMAILS: text });
    expect(inMain('receivers', { alertEmails })).toEqual(['ann@contoso.com', 'bob@contoso.com']);
  });
});

test.each([
  ['app', 'authentication', 'checkedAuthentication'],
  ['app', 'isZoneRedundant', 'checkedZoneRedundancy'],
  ['app', 'allowedOrigins', 'origins'],
  ['storage', 'allowedOrigins', 'origins'],
  ['alerts', 'emails', 'receivers'],
  ['budget', 'emails', 'receivers'],
])('the module %s gets the checked value of %s', (module, parameter, checked) => {
  expect(valueAt(theDeclaration('module', module), `params.${parameter}`)).toBe(checked);
});

// With an empty default the compiler reports the length of a text and names no variable.
test.each(PARAMETER_FILES)('%s has no empty default where main.bicep requires a text', (file) => {
  const required = declarations
    .filter((one) => one.file === 'main.bicep' && one.decorators.includes('minLength(1)'))
    .map(({ name }) => name);
  expect(required).toContain('tokenIssuer');
  for (const name of required) expect(sources.get(file)).not.toMatch(new RegExp(`^param ${name} = .*, ''\\)$`, 'm'));
});
