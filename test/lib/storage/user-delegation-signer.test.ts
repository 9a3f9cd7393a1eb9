import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { TableServiceClient } from '@azure/data-tables';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Internal } from '../../kit/internal.ts';
import { storageKeys, type TableSasRequest } from '../../kit/storage.ts';

/** A key endpoint as documented. The client resolves the address of the account to this server. */
const received: { url: string; headers: Record<string, unknown>; body: string }[] = [];
let statuses: number[] = [];
let server: Server;
let signer: Internal['TableSasSigner'];
const scopes: unknown[] = [];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const body = (await Array.fromAsync(request)).join('');
    received.push({ url: `${request.method} ${request.headers['x-address']}`, headers: request.headers, body });
    const [, start = '', expiry = ''] = /<Start>(.*)<\/Start><Expiry>(.*)<\/Expiry>/.exec(body) ?? [];
    response.writeHead(statuses.shift() ?? 200, { 'content-type': 'application/xml' }).end(
      `\ufeff<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>
        <SignedOid>00000000-0000-0000-0000-000000000001</SignedOid>
        <SignedTid>00000000-0000-0000-0000-000000000002</SignedTid>
        <SignedStart>${start}</SignedStart><SignedExpiry>${expiry}</SignedExpiry>
        <SignedService>t</SignedService><SignedVersion>2025-07-05</SignedVersion>
        <Value>${Buffer.from('a delegated key').toString('base64')}</Value></UserDelegationKey>`,
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(() => {
  received.length = 0;
  statuses = [];
  const inner = createDefaultHttpClient();
  const httpClient: HttpClient = {
    async sendRequest(request) {
      const { url } = request;
      request.headers.set('x-address', url);
      request.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      request.allowInsecureConnection = true;
      // A retry must start again at the address of the account.
      return inner.sendRequest(request).finally(() => {
        request.url = url;
      });
    },
  };
  const credential = {
    async getToken(scope: string | string[]) {
      scopes.push(scope);
      return { token: 'of-the-identity', expiresOnTimestamp: Date.now() + 3_600_000 };
    },
  };
  const retryOptions = { maxRetries: 1, retryDelayInMs: 1 };
  const tables = new TableServiceClient('https://contoso.table.core.windows.net/', credential, { retryOptions });
  signer = storageKeys.userDelegationSigner({ tables, httpClient });
});

const START = Date.parse('2026-11-20T09:45:00.900Z');
const HOUR = 3_600_000;

/** A request for a grant of half an hour that starts `after` the first one. */
function requestAfter(milliseconds: number): TableSasRequest {
  return {
    table: 'Employees',
    partition: "Sales & O'Neil",
    firstRow: 'empid_000123',
    lastRow: 'empid_000124',
    permissions: 'r',
    startsAt: new Date(START + milliseconds),
    expiresAt: new Date(START + milliseconds + HOUR / 2),
  };
}

// https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas, the layout for tables
const SIGNED = [
  'r', // sp
  '2026-11-20T09:45:00Z', // st
  '2026-11-20T10:15:00Z', // se
  '/table/contoso/employees',
  '00000000-0000-0000-0000-000000000001', // skoid
  '00000000-0000-0000-0000-000000000002', // sktid
  '2026-11-20T09:45:00Z', // skt
  '2026-11-20T15:45:00Z', // ske
  't', // sks
  '2025-07-05', // skv
  '', // skdutid
  '', // sduoid
  '', // sip
  'https', // spr
  '2025-07-05', // sv
  "Sales & O'Neil", // spk
  'empid_000123', // srk
  "Sales & O'Neil", // epk
  'empid_000124', // erk
].join('\n');

test('the signature equals the documented one', async () => {
  const query = await signer.sign(requestAfter(0));
  const signature = createHmac('sha256', 'a delegated key').update(SIGNED).digest('base64');
  expect(signature).toBe('ro5uTEJ7wP9uQyAcYjdS3PvlA/BYqO/wYZw8aM8GQPQ=');
  expect(Object.fromEntries(new URLSearchParams(query))).toEqual({
    sp: 'r',
    st: '2026-11-20T09:45:00Z',
    se: '2026-11-20T10:15:00Z',
    skoid: '00000000-0000-0000-0000-000000000001',
    sktid: '00000000-0000-0000-0000-000000000002',
    skt: '2026-11-20T09:45:00Z',
    ske: '2026-11-20T15:45:00Z',
    sks: 't',
    skv: '2025-07-05',
    spr: 'https',
    sv: '2025-07-05',
    spk: "Sales & O'Neil",
    srk: 'empid_000123',
    epk: "Sales & O'Neil",
    erk: 'empid_000124',
    tn: 'Employees',
    sig: signature,
  });
  expect(query).not.toMatch(/[+ \n]/);
});

test('requests the key as the identity, as documented', async () => {
  await signer.sign(requestAfter(0));
  expect(received).toEqual([
    {
      url: 'POST https://contoso.table.core.windows.net/?restype=service&comp=userdelegationkey',
      headers: expect.objectContaining({
        authorization: 'Bearer of-the-identity',
        'x-ms-version': '2025-07-05',
        'content-type': 'application/xml',
      }),
      body: '<KeyInfo><Start>2026-11-20T09:45:00Z</Start><Expiry>2026-11-20T15:45:00Z</Expiry></KeyInfo>',
    },
  ]);
  expect(scopes.flat()).toContain('https://storage.azure.com/.default');
});

test('requests the key once for concurrent callers and renews it before a signature would outlive it', async () => {
  const many = await Promise.all(Array.from({ length: 20 }, () => signer.sign(requestAfter(0))));
  expect(new Set(many).size).toBe(1);
  await signer.sign(requestAfter(5 * HOUR));
  expect(received.length).toBe(1);
  const [later, other] = await Promise.all([
    signer.sign(requestAfter(5.6 * HOUR)),
    signer.sign(requestAfter(5.7 * HOUR)),
  ]);
  expect(received.length).toBe(2);
  expect(new URLSearchParams(later).get('ske')).toBe('2026-11-20T21:21:00Z');
  expect(new URLSearchParams(other).get('ske')).toBe('2026-11-20T21:21:00Z');
});

test('returns a failure to get the key and does not cache it', async () => {
  statuses = [503, 503];
  await expect(signer.sign(requestAfter(0))).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(received.length).toBe(2);
  await expect(signer.sign(requestAfter(0))).resolves.toContain('sig=');
});

test('reports an identity without access to the key as a wrong setting that names the role', async () => {
  statuses = [403];
  await expect(signer.sign(requestAfter(0))).rejects.toMatchObject({
    code: 'wrong-setting',
    message: expect.stringContaining('Storage Table Delegator'),
  });
});
