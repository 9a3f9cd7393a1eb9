import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { children, files, written } from './bicep.ts';
import { evaluateVariable, type Scope } from './evaluate.ts';

const fileOf = (path: string) => {
  const found = files.find((file) => file.path === path);
  if (!found) throw new Error(`There is no ${path}.`);
  return found;
};
const main = fileOf('main.bicep');
const inMain = (name: string, scope: Scope) => evaluateVariable(name, main, scope);
const PARAMETER_FILES = ['dev.bicepparam', 'main.bicepparam', 'prod.bicepparam'];
const CLIENT = '11111111-1111-1111-1111-111111111111';
const TENANT = '22222222-2222-2222-2222-222222222222';

describe('the name of the environment', () => {
  const label = (environmentName: string) => inMain('environmentLabel', { environmentName });

  test.each(['dev', 'prod', 'azd', 'Trial-2', 'a', '0'])('%s is accepted', (name) => expect(label(name)).toBe(name));

  // A site name, as the service documents it: alphanumerics and hyphens, which cannot be first or last.
  const usable = /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$/;
  test('is rejected with a sentence unless every name made of it is valid', () => {
    const anyName = fc.oneof(
      fc.string({ minLength: 1, maxLength: 12, unit: 'binary' }),
      fc.string({
        minLength: 1,
        maxLength: 12,
        unit: fc.constantFrom('a', 'Z', '9', '-', '_', '.', ' ', 'é', '\u212a'),
      }),
    );
    fc.assert(
      fc.property(anyName, (name) => {
        if (usable.test(name)) expect(label(name)).toBe(name);
        else expect(() => label(name)).toThrow(`environmentName "${name}" is not usable. It takes letters`);
      }),
      { numRuns: 2_000 },
    );
  });
  test('reaches no name unchecked', () => {
    const uses = main.root.text.match(/\benvironmentName\b/g) ?? [];
    const checks = ['wrongNameCharacters', 'isNameUsable', 'environmentLabel'];
    const checked = main.declarations
      .filter(({ kind, name }) => (kind === 'var' && checks.includes(name)) || name === 'environmentName')
      .flatMap(({ node }) => node.text.match(/\benvironmentName\b/g) ?? []);
    expect(uses).toEqual(checked);
  });
});

describe('platform authentication', () => {
  const checked = (clientId: string, tenantId: string) =>
    inMain('checkedAuthentication', { authentication: { clientId, tenantId } });

  test('takes a client id with a tenant, or neither', () => {
    expect(checked(CLIENT, TENANT)).toEqual({ clientId: CLIENT, tenantId: TENANT });
    expect(checked('', '')).toEqual({ clientId: '', tenantId: '' });
  });
  test('rejects a client id without a tenant, and a tenant without a client id', () => {
    const sentence = 'authentication needs both clientId and tenantId';
    expect(() => checked(CLIENT, '')).toThrow(sentence);
    expect(() => checked('', TENANT)).toThrow(sentence);
  });
  test('reaches the app checked', () => {
    const app = main.declarations.find(({ kind, name }) => kind === 'module' && name === 'app');
    expect(app && written(app, 'params.authentication')).toBe('checkedAuthentication');
  });
});

describe('lists that are separated by commas', () => {
  test.each(PARAMETER_FILES)('of %s have no empty element for a trailing comma', (path) => {
    for (const [variable, parameter, checked] of [
      ['ALERT_EMAILS', 'alertEmails', 'receivers'],
      ['ALLOWED_ORIGINS', 'allowedOrigins', 'origins'],
    ] as const)
      for (const [text, list] of [
        ['', []],
        [',', []],
        ['a, b', ['a', 'b']],
        [', a,,b ,', ['a', 'b']],
      ] as const) {
        const given = evaluateVariable(parameter, fileOf(path), { [variable]: text });
        expect(inMain(checked, { [parameter]: given })).toEqual(list);
      }
  });
  test.each(PARAMETER_FILES)('of %s name an address once that is given twice, in whatever case', (path) => {
    const text = 'Ann@contoso.com,bob@contoso.com, ann@Contoso.com,bob@contoso.com';
    const alertEmails = evaluateVariable('alertEmails', fileOf(path), { ALERT_EMAILS: text });
    expect(inMain('receivers', { alertEmails })).toEqual(['ann@contoso.com', 'bob@contoso.com']);
  });
  test.each([
    ['alerts', 'emails', 'receivers'],
    ['budget', 'emails', 'receivers'],
    ['app', 'allowedOrigins', 'origins'],
    ['storage', 'allowedOrigins', 'origins'],
  ])('reach the module %s without empty elements', (name, parameter, value) => {
    const module = main.declarations.find((one) => one.kind === 'module' && one.name === name);
    expect(module && written(module, `params.${parameter}`)).toBe(value);
  });
});

describe('a variable that has to be set', () => {
  const required = [
    ['tokenIssuer', 'TOKEN_ISSUER'],
    ['tokenAudience', 'TOKEN_AUDIENCE'],
    ['tokenJwksUri', 'TOKEN_JWKS_URI'],
  ] as const;
  test.each(PARAMETER_FILES)('is named by %s when it is missing', (path) => {
    for (const [parameter, variable] of required)
      expect(() => evaluateVariable(parameter, fileOf(path), {})).toThrow(`"${variable}"`);
  });
  test.each(PARAMETER_FILES)('has no empty default in %s where the template rejects an empty text', (path) => {
    const nonEmpty = main.declarations
      .filter(({ kind, decorators }) => kind === 'param' && decorators.includes('minLength(1)'))
      .map(({ name }) => name);
    const emptied = fileOf(path).declarations.filter(
      ({ name, node }) => nonEmpty.includes(name) && /, ''\)$/.test(children(node)[1]?.text ?? ''),
    );
    expect(emptied.map(({ name }) => name)).toEqual([]);
  });
});

describe('redundancy of storage', () => {
  test('is chosen from what keeps copies in one region, or in two', () => {
    const choices = "'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'";
    for (const [path, name] of [
      ['main.bicep', 'storageSku'],
      ['modules/storage.bicep', 'sku'],
    ] as const) {
      const parameter = fileOf(path).declarations.find((one) => one.kind === 'param' && one.name === name);
      expect(parameter && children(parameter.node)[1]?.text).toBe(choices);
    }
  });
  test('of prod is three zones of one region, and the file says why not two regions', () => {
    const prod = fileOf('prod.bicepparam');
    expect(evaluateVariable('storageSku', prod, {})).toBe('Standard_ZRS');
    expect(prod.root.text).toMatch(/GZRS[\s\S]*asynchronous[\s\S]*docs\/infrastructure\.md/);
  });
});
