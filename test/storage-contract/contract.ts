import {
  createDefaultHttpClient,
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient,
  type PipelineRequest,
  type PipelineResponse,
} from '@azure/core-rest-pipeline';
import { TableClient, TableServiceClient } from '@azure/data-tables';
import { BlobServiceClient, type ContainerClient } from '@azure/storage-blob';
import { type QueueClient, QueueServiceClient } from '@azure/storage-queue';
import { afterAll, expect, test } from 'vitest';
import { createMemoryStorage } from '../../lib/testing/index.ts';
import { storageAccounts } from '../kit/storage.ts';
import { testStorage } from '../storage.ts';

/** A storage account, Azurite's or the one in memory, as a case sees it. */
export interface Account {
  readonly connectionString: string;
  readonly tables: TableServiceClient;
  /** The same name in each account; a case has its own resources. */
  table(name: string): TableClient;
  createTable(name: string): Promise<TableClient>;
  createQueue(name: string): Promise<QueueClient>;
  createContainer(name: string): Promise<ContainerClient>;
  readonly queues: QueueServiceClient;
  readonly blobs: BlobServiceClient;
  /** Sends a request without the SDKs, as a browser does with a signature. */
  send: Send;
  /** The same with the account key, for the Table service. */
  sendWithKey: Send;
}

type Send = (
  method: string,
  url: string,
  options?: { readonly body?: string; readonly headers?: Readonly<Record<string, string>> },
) => Promise<PipelineResponse>;

/** Returns what the caller observes. ETags, times and ids are compared only by their form. */
export type Case = (account: Account) => Promise<unknown>;

/** A case in which Azurite and the storage in memory differ, and why the latter is right. */
export interface Difference {
  readonly why: string;
  readonly azurite: unknown;
  readonly memory: unknown;
}

/** Returns `ok`, or the status and the code of the error. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error) => {
      if (error.statusCode === undefined) throw error;
      const { odataError, errorCode } = error.details ?? {};
      return `${error.statusCode} ${odataError?.code ?? errorCode ?? error.code ?? ''}`;
    },
  );
}

/** Runs each case on Azurite first and then on the storage in memory: both must show the same, but for the known differences. */
export function compareWithAzurite(
  url: string,
  cases: Readonly<Record<string, Case>>,
  differences: Readonly<Record<string, Difference>>,
): void {
  const azurite = testStorage(url);
  const found: string[] = [];
  const names = Object.keys(cases);
  test.each(names)('%s', async (title) => {
    const run = cases[title] as Case;
    const known = differences[title];
    const memory = createMemoryStorage();
    const expected = await observe(run, azurite, createDefaultHttpClient());
    const actual = await observe(run, memory.connectionString, memory.httpClient);
    if (!known) return expect(actual).toEqual(expected);
    expect({ azurite: expected.result, memory: actual.result }).toEqual({
      azurite: known.azurite,
      memory: known.memory,
    });
    found.push(`${title}: ${known.why}`);
  });
  test('knows no difference of a case that does not exist', () => {
    expect(Object.keys(differences).filter((title) => !names.includes(title))).toEqual([]);
  });
  afterAll(() => {
    if (found.length > 0)
      console.log(`Azurite differs from the storage in memory:\n${found.map((line) => `  ${line}`).join('\n')}`);
  });
}

async function observe(run: Case, connectionString: string, inner: HttpClient) {
  const exchanges: unknown[] = [];
  const httpClient: HttpClient = {
    async sendRequest(request) {
      request.allowInsecureConnection = true;
      const response = await inner.sendRequest(request);
      exchanges.push({
        sent: request.method,
        status: response.status,
        headers: pickHeaders(response),
        body: bodyOf(response),
      });
      return response;
    },
  };
  const account = openAccount(connectionString, httpClient);
  const result = await run(account);
  const hosts = [account.tables.url, account.queues.url, account.blobs.url].map((url) => url.replace(/\/$/, ''));
  return normalizer(hosts)({ result, exchanges }) as { result: unknown; exchanges: unknown };
}

function openAccount(connectionString: string, httpClient: HttpClient): Account {
  const ofTables = { httpClient, allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
  const ofOthers = { httpClient: storageAccounts.toLegacyHttpClient(httpClient), retryOptions: { maxTries: 1 } };
  const tables = TableServiceClient.fromConnectionString(connectionString, ofTables);
  const queues = QueueServiceClient.fromConnectionString(connectionString, ofOthers);
  const blobs = BlobServiceClient.fromConnectionString(connectionString, ofOthers);
  const table = (name: string) => TableClient.fromConnectionString(connectionString, name, ofTables);
  return {
    connectionString,
    tables,
    queues,
    blobs,
    table,
    async createTable(name) {
      await table(name).createTable();
      return table(name);
    },
    async createQueue(name) {
      await queues.createQueue(name);
      return queues.getQueueClient(name);
    },
    async createContainer(name) {
      await blobs.createContainer(name);
      return blobs.getContainerClient(name);
    },
    send: (...request) => httpClient.sendRequest(toRequest(...request)),
    sendWithKey: (...request) => tables.pipeline.sendRequest(httpClient, toRequest(...request)),
  };
}

function toRequest(...[method, url, { body, headers } = {}]: Parameters<Send>): PipelineRequest {
  return createPipelineRequest({
    url,
    method: method as 'GET',
    headers: createHttpHeaders({ accept: 'application/json;odata=minimalmetadata', ...headers }),
    allowInsecureConnection: true,
    ...(body !== undefined && { body }),
  });
}

/** The headers that a caller may use. */
const HEADERS =
  /^(etag|last-modified|date|content-(range|disposition|language|encoding)|cache-control|accept-ranges|preference-applied|x-ms-(continuation-.*|approximate-messages-count|popreceipt|time-next-visible|blob-(type|append-offset|committed-block-count)|meta-.*|access-tier))$/;

function pickHeaders({ headers, status }: PipelineResponse): unknown {
  if (status >= 300) return headers.get('x-ms-error-code');
  return Object.fromEntries([...headers].filter(([name]) => HEADERS.test(name)).sort());
}

/** The messages of errors, and the links of an entity, are of no use to a program. XML is compared as the SDK reads it. */
function bodyOf({ bodyAsText, status }: PipelineResponse): unknown {
  if (!bodyAsText?.startsWith('{') || status >= 400) return undefined;
  return JSON.parse(bodyAsText);
}

const ETAG = /^(W\/)?"?(datetime'[^']+'|0x[\dA-F]+)"?$/;
const TIME = /^(\d{4}-\d\d-\d\dT\S+Z|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT)$/;
/** A message lives for a week. */
const SOON_MS = 8 * 86_400_000;
/** Made by storage, or different in each run. */
const RANDOM =
  /^(messageId|popReceipt|x-ms-popreceipt|requestId|clientRequestId|version|date|copyId|x-ms-continuation-.*)$/;

/** Replaces what differs in each run by its name: Azurite has one ETag for all writes of a millisecond. */
function normalizer(hosts: readonly string[]) {
  const normalize = (value: unknown, name = ''): unknown => {
    if (/^(_response|requestId|clientRequestId|version|odata\.metadata)$/.test(name)) return undefined;
    if (RANDOM.test(name) && value !== undefined) return name;
    if (typeof value === 'bigint') return `${value}n`;
    if (value instanceof Date) return Math.abs(value.getTime() - Date.now()) < SOON_MS ? 'a time' : value.toISOString();
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    if (Array.isArray(value)) return value.map((item) => normalize(item));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(
        Object.entries(value).flatMap(([key, item]) =>
          typeof item === 'function' ? [] : [[key, normalize(item, key)]],
        ),
      );
    if (typeof value !== 'string') return value;
    if (ETAG.test(value)) return 'an ETag';
    if (TIME.test(value) && Math.abs(Date.parse(value) - Date.now()) < SOON_MS) return 'a time';
    return hosts.reduce((text, host) => text.replaceAll(host, 'host'), value);
  };
  return normalize;
}
