import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { storageKeys, type TableSasRequest } from '../../kit/storage.ts';

const KEY = Buffer.from('the key of an account').toString('base64');
const REQUEST: TableSasRequest = {
  table: 'Employees',
  partition: "Sales & O'Neil",
  firstRow: 'empid_000123',
  lastRow: 'empid_000123',
  permissions: 'r',
  startsAt: new Date('2026-11-20T09:45:00.700Z'),
  expiresAt: new Date('2026-11-20T10:15:00Z'),
};

describe('a signature with an account key', () => {
  // Copied from https://learn.microsoft.com/rest/api/storageservices/create-service-sas
  const signed = [
    'r',
    '2026-11-20T09:45:00Z',
    '2026-11-20T10:15:00Z',
    '/table/contoso/employees',
    '',
    '',
    'https',
    '2019-02-02',
    "Sales & O'Neil",
    'empid_000123',
    "Sales & O'Neil",
    'empid_000123',
  ].join('\n');
  const azure = `DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=${KEY};EndpointSuffix=core.windows.net`;

  test('equals the documented one and allows only HTTPS in Azure', async () => {
    const endpoint = 'https://contoso.table.core.windows.net';
    const sas = new URLSearchParams(
      await storageKeys.accountKeySigner({ connectionString: azure, endpoint }).sign(REQUEST),
    );
    const signature = createHmac('sha256', 'the key of an account').update(signed).digest('base64');
    expect(signature).toBe('G7TZKW52qy/8yxzAqD79qz24dts2Y3/y+hfXGziskIw=');
    expect(Object.fromEntries(sas)).toEqual({
      sv: '2019-02-02',
      spr: 'https',
      st: '2026-11-20T09:45:00Z',
      se: '2026-11-20T10:15:00Z',
      sp: 'r',
      tn: 'Employees',
      spk: "Sales & O'Neil",
      srk: 'empid_000123',
      epk: "Sales & O'Neil",
      erk: 'empid_000123',
      sig: signature,
    });
  });

  test('grants only the requested permissions', async () => {
    const signer = storageKeys.accountKeySigner({
      connectionString: azure,
      endpoint: 'https://contoso.table.core.windows.net',
    });
    for (const permissions of ['a', 'u', 'd', 'raud'])
      expect(new URLSearchParams(await signer.sign({ ...REQUEST, permissions })).get('sp')).toBe(permissions);
  });

  test('requires a key in the connection string, which the error does not show', () => {
    const connectionString = 'AccountName=contoso;SharedAccessSignature=sv=1';
    const endpoint = 'https://contoso.table.core.windows.net';
    expect(() => storageKeys.accountKeySigner({ connectionString, endpoint })).toThrow(
      'Cannot sign a grant: the connection string has no AccountKey.',
    );
  });
});
