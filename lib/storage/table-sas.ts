import { createHmac } from 'node:crypto';
import {
  createDefaultHttpClient,
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient,
  RestError,
} from '@azure/core-rest-pipeline';
import { AzureNamedKeyCredential, generateTableSas, type TableServiceClient } from '@azure/data-tables';
import { z } from 'zod';
import { RowkeyError, unavailable } from '../base/errors.ts';
import { HOUR_MS, isoSeconds } from '../base/time.ts';
import { boundWaits } from './bound-waits.ts';
import { countTransactions } from './cost.ts';
import { storageCall } from './errors.ts';
import type { Address } from './rows.ts';
import { ownerOf, ownerOfPlace } from './slot-map.ts';
import { placeOf } from './slots.ts';
import { type Storage, through } from './storage.ts';

/** Permissions for the rows of one partition, all or from `firstRow` to `lastRow` inclusive, for a while. */
export interface TableSasRequest {
  readonly table: string;
  readonly partition: string;
  readonly firstRow?: string;
  readonly lastRow?: string;
  /** A subset of `raud`, in this order. */
  readonly permissions: string;
  readonly startsAt: Date;
  readonly expiresAt: Date;
}

export interface TableSasSigner {
  /** The shared access signature as the query of a URL, without the question mark. */
  sign(request: TableSasRequest): Promise<string>;
}

/**
 * Signs with the account key if there is one (the emulator), else with a key delegated to the app's identity: those of the account of the
 * partition. The signer throws `storage-unavailable` for a signature to write to a partition that is being moved.
 */
export function tableSasSigner(storage: Storage): TableSasSigner {
  const { accounts } = storage;
  if (!accounts) return signerOf(storage);
  const signers = new Map<Storage, TableSasSigner>(accounts.list.map((account) => [account, signerOf(account)]));
  return {
    async sign(request) {
      const { account, phase } = await ownerOfPlace(accounts, placeOf(request.table, request.partition));
      // The holder of a signature passes no fence.
      if (phase !== 'at rest' && request.permissions !== 'r')
        throw unavailable('Storage is unavailable: the partition is moved to another account.', undefined);
      return (signers.get(account) ?? signerOf(account)).sign(request);
    },
  };
}

function signerOf({ connectionString, tables, table }: Storage): TableSasSigner {
  const signer = connectionString
    ? accountKeySigner({ connectionString, endpoint: tables.url })
    : userDelegationSigner({ tables });
  return { sign: (request) => signer.sign({ ...request, table: table(request.table).tableName }) };
}

/** Where rows are: the SDKs of storage take the table service of the account and the name of the table, and plain HTTP the URL. */
export interface RowLocation {
  readonly url: string;
  readonly endpoint: string;
  readonly table: string;
}

/** The location of a row, or of a table to read or add rows, in the account of the partition. The signature and a filter go into the query of the URL. */
export async function locateRow(
  storage: Storage,
  { table, partition, row }: Omit<Address, 'row'> & { readonly row?: string | undefined },
): Promise<RowLocation> {
  const account = await ownerOf(storage, partition, table);
  const endpoint = account.tables.url.replace(/\/$/, '');
  const { tableName } = account.table(table);
  const url = `${endpoint}/${tableName}`;
  const key = row === undefined ? '' : `(PartitionKey='${quote(partition)}',RowKey='${quote(row)}')`;
  return { url: url + key, endpoint, table: tableName };
}

function quote(key: string): string {
  return encodeURIComponent(key.replaceAll("'", "''"));
}

/** The account that `UseDevelopmentStorage=true` means. Microsoft publishes its key, so the key is not a secret. */
const EMULATOR =
  'AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

interface AccountKeyOptions {
  readonly connectionString: string;
  /** The endpoint of the table service. A signature allows plain HTTP only if the account uses it, as the emulator does. */
  readonly endpoint: string;
}

/** Signs service shared access signatures with the account key of a connection string. */
export function accountKeySigner({ connectionString, endpoint }: AccountKeyOptions): TableSasSigner {
  const parts = /UseDevelopmentStorage=true/i.test(connectionString) ? EMULATOR : connectionString;
  const credential = new AzureNamedKeyCredential(partOf(parts, 'AccountName'), partOf(parts, 'AccountKey'));
  const protocol = endpoint.startsWith('http:') ? 'https,http' : 'https';
  return {
    sign: async ({ table, partition, firstRow, lastRow, permissions, startsAt, expiresAt }) =>
      generateTableSas(table, credential, {
        permissions: {
          query: permissions.includes('r'),
          add: permissions.includes('a'),
          update: permissions.includes('u'),
          delete: permissions.includes('d'),
        },
        protocol,
        startsOn: startsAt,
        expiresOn: expiresAt,
        startPartitionKey: partition,
        ...(firstRow === undefined ? {} : { startRowKey: firstRow }),
        endPartitionKey: partition,
        ...(lastRow === undefined ? {} : { endRowKey: lastRow }),
      }),
  };
}

function partOf(connectionString: string, name: string): string {
  const value = new RegExp(`(?:^|;)\\s*${name}=([^;]+)`, 'i').exec(connectionString)?.[1];
  if (!value) throw new RowkeyError('wrong-setting', `Cannot sign a grant: the connection string has no ${name}.`);
  return value;
}

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

interface UserDelegationOptions {
  /** Opened with an identity. Its pipeline requests the key, with the usual retries. */
  readonly tables: TableServiceClient;
  readonly httpClient?: HttpClient;
}

/**
 * Signs user delegation shared access signatures with a key that storage gives to the app's identity, which needs the role
 * Storage Table Delegator. The key is kept until it would expire before the signature.
 */
export function userDelegationSigner({ tables, httpClient = overNetwork(tables) }: UserDelegationOptions) {
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

function overNetwork({ url }: TableServiceClient): HttpClient {
  return through(
    [countTransactions({ service: 'table', endpoint: () => url, insecure: false }), boundWaits],
    createDefaultHttpClient(),
  );
}

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
