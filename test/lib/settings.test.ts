import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createRowkey } from '../../lib/index.ts';
import { fromEnvironment, SETTING_NAMES } from '../../lib/settings.ts';
import { model } from '../fixtures/model.ts';

const local = {
  AzureWebJobsStorage: 'UseDevelopmentStorage=true',
  TOKEN_ISSUER: 'http://127.0.0.1:7080',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'http://127.0.0.1:7080/.well-known/jwks.json',
};
const inAzure = {
  AzureWebJobsStorage__tableServiceUri: 'https://a.table.core.windows.net',
  AzureWebJobsStorage__queueServiceUri: 'https://a.queue.core.windows.net',
  AzureWebJobsStorage__blobServiceUri: 'https://a.blob.core.windows.net',
  AzureWebJobsStorage__clientId: 'b3a1c1de-0000-4000-8000-000000000001',
  KEY_ENCRYPTION_KEY_URI: 'https://v.vault.azure.net/keys/rowkey',
  APPLICATIONINSIGHTS_CONNECTION_STRING:
    'InstrumentationKey=b3a1c1de-0000-4000-8000-000000000002;IngestionEndpoint=https://a/',
  TOKEN_ISSUER: 'https://login.microsoftonline.com/t/v2.0',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'https://login.microsoftonline.com/t/discovery/v2.0/keys',
};

describe('settings', () => {
  test('for a local machine contain a connection string and a key file', () => {
    expect(fromEnvironment({ ...local, KEY_ENCRYPTION_KEY_FILE: 'keys.json', TELEMETRY: 'console' })).toEqual({
      storage: { connectionString: 'UseDevelopmentStorage=true' },
      auth: {
        issuer: local.TOKEN_ISSUER,
        audience: local.TOKEN_AUDIENCE,
        jwksUri: local.TOKEN_JWKS_URI,
      },
      connection: 'AzureWebJobsStorage',
      keys: { file: 'keys.json' },
      telemetry: { console: true },
    });
  });

  test('for Azure contain addresses and one identity', () => {
    const clientId = inAzure.AzureWebJobsStorage__clientId;
    const { APPLICATIONINSIGHTS_CONNECTION_STRING: connectionString } = inAzure;
    const environment = { ...inAzure, WEBSITE_SITE_NAME: 'app', AGREED_MODEL_CHANGES: '0123456789ab' };
    expect(fromEnvironment(environment)).toEqual({
      storage: {
        tables: inAzure.AzureWebJobsStorage__tableServiceUri,
        queues: inAzure.AzureWebJobsStorage__queueServiceUri,
        blobs: inAzure.AzureWebJobsStorage__blobServiceUri,
        clientId,
      },
      auth: { issuer: inAzure.TOKEN_ISSUER, audience: inAzure.TOKEN_AUDIENCE, jwksUri: inAzure.TOKEN_JWKS_URI },
      connection: 'AzureWebJobsStorage',
      keys: { keyUri: inAzure.KEY_ENCRYPTION_KEY_URI, clientId },
      telemetry: { console: false, connectionString, clientId, serviceName: 'app' },
      agreedModelChanges: '0123456789ab',
    });
  });

  test('of another connection name another storage account', () => {
    const { AzureWebJobsStorage: connectionString, ...others } = local;
    const environment = { ...others, ShopStorage: connectionString, AzureWebJobsStorage__clientId: 'not read' };
    expect(fromEnvironment(environment, { connection: 'ShopStorage' })).toMatchObject({
      storage: { connectionString },
      connection: 'ShopStorage',
    });
    const { ShopStorage: _, ...without } = { ...environment, ShopStorage__blobServiceUri: 'https://s.example' };
    const invalid = fromEnvironment(
      { ...without, AzureWebJobsStorage: connectionString },
      { connection: 'ShopStorage' },
    );
    expect(invalid).toMatchObject({
      connection: 'ShopStorage',
      refusal: expect.objectContaining({
        message:
          'Invalid settings: ShopStorage must be a connection string, or all of ShopStorage__tableServiceUri, ShopStorage__queueServiceUri, ShopStorage__blobServiceUri must be set.',
      }),
    });
  });

  describe('of several storage accounts', () => {
    const connection = (name: string) =>
      `DefaultEndpointsProtocol=https;AccountName=${name};AccountKey=AA==;EndpointSuffix=core.windows.net`;
    const several = { ...local, STORAGE_ACCOUNTS: 'second third', second: connection('b'), third: connection('c') };
    const third = {
      third__tableServiceUri: 'https://c.table.core.windows.net',
      third__queueServiceUri: 'https://c.queue.core.windows.net',
      third__blobServiceUri: 'https://c.blob.core.windows.net',
      third__clientId: inAzure.AzureWebJobsStorage__clientId,
    };

    test('name each by its connection', () => {
      expect(fromEnvironment({ ...several, third: undefined, ...third })).toMatchObject({
        storage: {
          accounts: [
            { name: 'first', connectionString: local.AzureWebJobsStorage },
            { name: 'second', connectionString: several.second },
            { name: 'third', tables: third.third__tableServiceUri, clientId: third.third__clientId },
          ],
        },
      });
    });

    test.each<[string, Record<string, string | undefined>, string]>([
      ['without a connection', { second: undefined }, 'second must be a connection string, or all of second__table'],
      ['with both forms of a connection', third, 'third must not be set together with third__tableServiceUri'],
      [
        'over HTTP',
        { ...third, third: undefined, third__blobServiceUri: 'http://a.b' },
        'third__blobServiceUri must use',
      ],
      [
        'of the same storage account',
        { third: several.second },
        'third is a storage account that another setting names',
      ],
      ['of the same name', { STORAGE_ACCOUNTS: 'second Second' }, 'STORAGE_ACCOUNTS must be different names'],
      ['of the first name', { STORAGE_ACCOUNTS: 'first' }, 'STORAGE_ACCOUNTS must be different names'],
      ['without a name', { STORAGE_ACCOUNTS: 'second ' }, 'STORAGE_ACCOUNTS must be different names'],
    ])('reject one %s', (_, over, why) => {
      expect(fromEnvironment({ ...several, ...over })).toMatchObject({
        refusal: { code: 'wrong-setting', message: expect.stringContaining(why) },
      });
    });

    test('that the SDK cannot read are named', async () => {
      const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
      onTestFinished(() => log.mockRestore());
      const { runtime } = createRowkey({ model, ...fromEnvironment({ ...several, third: 'nonsense' }) });
      await runtime.start();
      expect(() => runtime.app()).toThrow('Invalid settings: third must be a connection string of a storage account.');
    });

    test('belong to the default connection', () => {
      const environment = { ...several, ShopStorage: connection('s') };
      const open = (accounts?: string[]) =>
        fromEnvironment(environment, { connection: 'ShopStorage', ...(accounts ? { accounts } : {}) });
      expect(open()).toMatchObject({ storage: { connectionString: connection('s') } });
      expect(open(['second'])).toMatchObject({ storage: { accounts: [{ name: 'first' }, { name: 'second' }] } });
    });
  });

  test('that are not valid keep the valid settings of telemetry, which reports the reason', () => {
    const environment = { TELEMETRY: 'file', WEBSITE_SITE_NAME: 'app', AzureWebJobsStorage__clientId: 'x' };
    expect(fromEnvironment(environment).telemetry).toEqual({ console: false, serviceName: 'app' });
  });

  test('are documented, and the template sets only documented ones', async () => {
    const documentation = await readFile(new URL('../../docs/reference/configuration.md', import.meta.url), 'utf8');
    const told = documentation
      .match(/`[\w.]+`/g)
      ?.map((name) => name.slice(1, -1).replace(/^__/, 'AzureWebJobsStorage__'));
    const template = await readFile(new URL('../../infra/modules/app.bicep', import.meta.url), 'utf8');
    const set = template.match(/\b[A-Z][A-Za-z]*_[\w]+(?=:)/g) ?? [];
    expect(set.length).toBeGreaterThan(8);
    expect(told).toEqual(expect.arrayContaining([...SETTING_NAMES, ...set]));
  });

  const secret = 's3cret';
  test.each([
    ['a missing value', { ...local, TOKEN_AUDIENCE: undefined }, 'TOKEN_AUDIENCE is required'],
    ['an empty value', { ...local, TOKEN_AUDIENCE: '' }, 'TOKEN_AUDIENCE is required'],
    [
      'an issuer that is not a URL',
      { ...local, TOKEN_ISSUER: secret },
      'TOKEN_ISSUER must be a URL that begins with https',
    ],
    ['signing keys over HTTP', { ...local, TOKEN_JWKS_URI: `http://a.b/${secret}` }, 'TOKEN_JWKS_URI must use https'],
    [
      'a host that begins like localhost over HTTP',
      { ...local, TOKEN_JWKS_URI: `http://localhost:${secret}@a.b/keys` },
      'TOKEN_JWKS_URI must use https',
    ],
    [
      'an issuer on this machine in Azure',
      { ...local, WEBSITE_SITE_NAME: 'app' },
      'TOKEN_ISSUER must use https in Azure; TOKEN_JWKS_URI must use https in Azure',
    ],
    ['no storage', { ...local, AzureWebJobsStorage: undefined }, 'AzureWebJobsStorage must be a connection string'],
    [
      'one of the storage addresses only',
      { ...inAzure, AzureWebJobsStorage__queueServiceUri: undefined },
      'AzureWebJobsStorage must be a connection string',
    ],
    [
      'two storage accounts',
      { ...inAzure, AzureWebJobsStorage: `AccountKey=${secret}` },
      'AzureWebJobsStorage must not be set together',
    ],
    [
      'a storage address over HTTP',
      { ...inAzure, AzureWebJobsStorage__blobServiceUri: 'http://a.b' },
      '__blobServiceUri must use https',
    ],
    [
      'an identity that is not valid',
      { ...inAzure, AzureWebJobsStorage__clientId: secret },
      '__clientId must be the client id',
    ],
    ['two keys', { ...inAzure, KEY_ENCRYPTION_KEY_FILE: secret }, 'KEY_ENCRYPTION_KEY_FILE must not be set together'],
    [
      'a key id with a version, which would prevent rotation',
      { ...inAzure, KEY_ENCRYPTION_KEY_URI: `https://v.vault.azure.net/keys/rowkey/${secret}` },
      'KEY_ENCRYPTION_KEY_URI must be the https:// id of a key in Key Vault, without a version',
    ],
    [
      'a key that is not a URL',
      { ...inAzure, KEY_ENCRYPTION_KEY_URI: secret },
      'KEY_ENCRYPTION_KEY_URI must be the https:// id',
    ],
    [
      'a version of a key',
      { ...inAzure, KEY_ENCRYPTION_KEY_URI: `https://v.vault.azure.net/keys/rowkey/${secret}` },
      'KEY_ENCRYPTION_KEY_URI must be the https:// id',
    ],
    ['an unknown telemetry exporter', { ...local, TELEMETRY: secret }, 'TELEMETRY must be console'],
    [
      'Application Insights with an instrumentation key that is not valid',
      { ...inAzure, APPLICATIONINSIGHTS_CONNECTION_STRING: `InstrumentationKey=${secret}` },
      'APPLICATIONINSIGHTS_CONNECTION_STRING must be',
    ],
    [
      'Application Insights with a text that is not a connection string',
      { ...local, APPLICATIONINSIGHTS_CONNECTION_STRING: secret },
      'APPLICATIONINSIGHTS_CONNECTION_STRING must be',
    ],
  ])('with %s are rejected without showing the values', (_, settings, why) => {
    const refused = fromEnvironment(settings);
    expect(refused).toMatchObject({ refusal: { code: 'wrong-setting', message: expect.stringContaining(why) } });
    expect(inspect(refused)).not.toContain(secret);
  });
});

test.each([
  ['an empty client id', { clientId: '' }, 'console.clientId must not be empty'],
  ['an issuer over HTTP', { clientId: 'c', issuer: 'http://a.example' }, 'console.issuer must use https'],
  [
    'an origin that is no URL',
    { clientId: 'c', connectTo: ['https://a.example', 'b'] },
    'console.connectTo.1 must be a',
  ],
  ['a setting with a typing error', { clientId: 'c', issuerUrl: 'https://a.example' }, 'console Unrecognized key'],
])('code that gives the console %s gets an app that reports it', async (_, settings, reason) => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => log.mockRestore());
  const auth = { issuer: 'https://a.example', audience: 'a', jwksUri: 'https://a.example/keys' };
  const keys = { keyUri: 'https://v.vault.azure.net/keys/rowkey' };
  const storage = {
    tables: 'https://a.table.core.windows.net',
    queues: 'https://a.queue.core.windows.net',
    blobs: 'https://a.blob.core.windows.net',
  };
  const { runtime } = createRowkey({ model, storage, auth, keys, console: settings });
  await runtime.start();
  expect(() => runtime.consoleApp()).toThrow(`Invalid settings: ${reason}`);
  expect(log.mock.calls).toEqual([[expect.stringContaining(reason)]]);
});
