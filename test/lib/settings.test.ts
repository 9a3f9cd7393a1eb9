import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { parseSettings, SETTING_NAMES } from '../../lib/settings.ts';

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
  test.each([
    ['of one machine', local],
    ['of Azure', inAzure],
  ])('%s are taken as they are', (_, settings) => expect(parseSettings(settings)).toEqual(settings));

  test('are told of, each, in the documentation, and so are those that the template sets', async () => {
    const documentation = await readFile(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
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
    ['nothing', { ...local, TOKEN_AUDIENCE: undefined }, 'TOKEN_AUDIENCE: it is not set'],
    ['an empty word', { ...local, TOKEN_AUDIENCE: '' }, 'TOKEN_AUDIENCE: it is not set'],
    ['an issuer that is no URL', { ...local, TOKEN_ISSUER: secret }, 'TOKEN_ISSUER: a URL that begins with https'],
    [
      'keys that anyone on the way may change',
      { ...local, TOKEN_JWKS_URI: `http://a.b/${secret}` },
      'TOKEN_JWKS_URI: https',
    ],
    [
      'another machine behind the name of this one',
      { ...local, TOKEN_JWKS_URI: `http://localhost:${secret}@a.b/keys` },
      'TOKEN_JWKS_URI: https',
    ],
    [
      'no storage',
      { ...local, AzureWebJobsStorage: undefined },
      'AzureWebJobsStorage: set this to a connection string',
    ],
    [
      'a part of the storage',
      { ...inAzure, AzureWebJobsStorage__queueServiceUri: undefined },
      'AzureWebJobsStorage: set this to a connection string',
    ],
    ['two storages', { ...inAzure, AzureWebJobsStorage: `AccountKey=${secret}` }, 'AzureWebJobsStorage: set this or'],
    [
      'a storage that is told tokens in plain',
      { ...inAzure, AzureWebJobsStorage__blobServiceUri: 'http://a.b' },
      '__blobServiceUri: https',
    ],
    ['an identity that is none', { ...inAzure, AzureWebJobsStorage__clientId: secret }, '__clientId: the client id'],
    ['two keys', { ...inAzure, KEY_ENCRYPTION_KEY_FILE: secret }, 'KEY_ENCRYPTION_KEY_FILE: set this or'],
    [
      'one version of a key, which would never be rotated',
      { ...inAzure, KEY_ENCRYPTION_KEY_URI: `https://v.vault.azure.net/keys/rowkey/${secret}` },
      'KEY_ENCRYPTION_KEY_URI: the https:// id of a key in Key Vault, without a version',
    ],
    ['a key that is no URL', { ...inAzure, KEY_ENCRYPTION_KEY_URI: secret }, 'KEY_ENCRYPTION_KEY_URI: the https:// id'],
    [
      'a version of a key',
      { ...inAzure, KEY_ENCRYPTION_KEY_URI: `https://v.vault.azure.net/keys/rowkey/${secret}` },
      'KEY_ENCRYPTION_KEY_URI: the https:// id',
    ],
    ['telemetry to nowhere', { ...local, TELEMETRY: secret }, 'TELEMETRY: set it to console'],
    [
      'Application Insights with a key that is none',
      { ...inAzure, APPLICATIONINSIGHTS_CONNECTION_STRING: `InstrumentationKey=${secret}` },
      'APPLICATIONINSIGHTS_CONNECTION_STRING: this is no',
    ],
    [
      'no Application Insights',
      { ...local, APPLICATIONINSIGHTS_CONNECTION_STRING: secret },
      'APPLICATIONINSIGHTS_CONNECTION_STRING: this is no',
    ],
  ])('that name %s are refused, without what was set', (_, settings, why) => {
    const refused = () => parseSettings(settings);
    expect(refused).toThrow(expect.objectContaining({ code: 'wrong-setting', message: expect.stringContaining(why) }));
    expect(refused).not.toThrow(secret);
  });
});
