import { createHmac } from 'node:crypto';
import {
  createDefaultHttpClient,
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient,
  RestError,
} from '@azure/core-rest-pipeline';
import type { TableServiceClient } from '@azure/data-tables';
import { z } from 'zod';
import { RowkeyError } from '../base/errors.ts';
import { HOUR_MS, isoSeconds } from '../base/time.ts';
import { countCost } from './cost.ts';
import { storageCall } from './errors.ts';
import type { TableSasRequest, TableSasSigner } from './table-sas.ts';
import { through } from './through.ts';

/** The first service version with user delegation for tables. The tables SDK has no method for it. */
const VERSION = '2025-07-05';
/** The service allows 7 days; a key with a shorter life does less harm if it leaks. */
const KEY_VALID_FOR_MS = 6 * HOUR_MS;

/** The times stay texts as the service wrote them, because the signature covers them. */
const UserDelegationKey = z.object({
  SignedOid: z.string(),
  SignedTid: z.string(),
  SignedStart: z.string(),
  SignedExpiry: z.string(),
  SignedService: z.string(),
  SignedVersion: z.string(),
  Value: z.string(),
});
type UserDelegationKey = z.infer<typeof UserDelegationKey>;

export interface UserDelegationOptions {
  /** Opened with an identity. Its pipeline requests the key, with the usual retries. */
  readonly tables: TableServiceClient;
  readonly httpClient?: HttpClient;
}

/**
 * Signs user delegation shared access signatures with a key that storage gives to the app's identity, which needs the role
 * Storage Table Delegator. The key is kept until it would expire before the signature.
 */
export function userDelegationSigner({ tables, httpClient = overNetwork() }: UserDelegationOptions) {
  const account = new URL(tables.url).hostname.split('.')[0] ?? '';
  let kept: UserDelegationKey | undefined;
  let asked: Promise<UserDelegationKey> | undefined;

  async function keyFor(request: TableSasRequest): Promise<UserDelegationKey> {
    if (kept && isValidFor(kept, request)) return kept;
    asked ??= storageCall(askForKey(tables, httpClient, request.startsAt)).finally(() => {
      asked = undefined;
    });
    kept = await asked;
    return kept;
  }

  const signer: TableSasSigner = {
    sign: async (request) => signWith(await keyFor(request), account, request),
  };
  return signer;
}

const overNetwork = () => through([countCost(false)], createDefaultHttpClient());

function isValidFor(key: UserDelegationKey, { startsAt, expiresAt }: TableSasRequest): boolean {
  return Date.parse(key.SignedStart) <= startsAt.getTime() && expiresAt.getTime() <= Date.parse(key.SignedExpiry);
}

async function askForKey(tables: TableServiceClient, httpClient: HttpClient, from: Date): Promise<UserDelegationKey> {
  const until = new Date(from.getTime() + KEY_VALID_FOR_MS);
  const response = await tables.pipeline.sendRequest(
    httpClient,
    createPipelineRequest({
      url: `${tables.url.replace(/\/$/, '')}/?restype=service&comp=userdelegationkey`,
      method: 'POST',
      headers: createHttpHeaders({ 'x-ms-version': VERSION, 'content-type': 'application/xml' }),
      body: `<KeyInfo><Start>${isoSeconds(from)}</Start><Expiry>${isoSeconds(until)}</Expiry></KeyInfo>`,
    }),
  );
  const { status } = response;
  if (status === 401 || status === 403)
    throw new RowkeyError(
      'wrong-setting',
      'Cannot sign a grant: the identity of the app needs the role Storage Table Delegator.',
    );
  if (status !== 200)
    throw new RestError(`Storage rejected the request for a user delegation key: ${status}.`, { statusCode: status });
  // The pipeline of the SDK client parses XML.
  return z.object({ parsedBody: UserDelegationKey }).parse(response).parsedBody;
}

function signWith(key: UserDelegationKey, account: string, request: TableSasRequest): string {
  const { table, partition, firstRow, lastRow, permissions } = request;
  const fields = {
    sp: permissions,
    st: isoSeconds(request.startsAt),
    se: isoSeconds(request.expiresAt),
    resource: `/table/${account}/${table.toLowerCase()}`,
    skoid: key.SignedOid,
    sktid: key.SignedTid,
    skt: key.SignedStart,
    ske: key.SignedExpiry,
    sks: key.SignedService,
    skv: key.SignedVersion,
    skdutid: '',
    sduoid: '',
    sip: '',
    spr: 'https',
    sv: VERSION,
    spk: partition,
    srk: firstRow ?? '',
    epk: partition,
    erk: lastRow ?? '',
  };
  // The service defines the order of the lines. An empty field has a line and is omitted from the URL.
  const signature = createHmac('sha256', Buffer.from(key.Value, 'base64'))
    .update(Object.values(fields).join('\n'))
    .digest('base64');
  const { resource: _, ...shown } = fields;
  return Object.entries({ ...shown, tn: table, sig: signature })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
}
