import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { HttpClient, PipelineRequest, PipelineResponse } from '@azure/core-rest-pipeline';
import { createMemoryBlobs } from './memory-blobs.ts';
import { createMemoryQueues } from './memory-queues.ts';
import { createMemoryTables } from './memory-tables.ts';
import {
  type Clock,
  element,
  StorageRejection,
  type StorageReply,
  type StorageRequest,
  toDocument,
  toHttpHeaders,
  toStorageRequest,
} from './storage-request.ts';
import { toTableError } from './table-transaction.ts';

export interface MemoryStorageOptions {
  /** The clock of storage, in milliseconds: for ETags, time stamps, hidden and expired messages, and signatures. Default: `Date.now`. */
  readonly now?: Clock;
  /** The name of the account. Default: memory. */
  readonly account?: string;
  /** Where the services seem to be. Default: addresses of this machine at which nothing listens. */
  readonly origins?: Readonly<Record<Service, string>>;
}

type Service = 'table' | 'queue' | 'blob';

/** A storage account in the memory of this process. */
export interface MemoryStorage {
  /** The connection string of an account that only `httpClient` reaches. */
  readonly connectionString: string;
  /** Sends the requests of the storage SDKs to the account. */
  readonly httpClient: HttpClient;
  /**
   * Set it to inject faults: it runs instead of each request, and `send` executes the request. It may throw before `send` (the request is
   * lost), throw after it (the reply is lost), return another response, or wait.
   */
  intercept: Intercept | undefined;
}

export type Intercept = (request: PipelineRequest, send: () => Promise<PipelineResponse>) => Promise<PipelineResponse>;

/** No server has these ports, so a client without `httpClient` reaches nothing. */
const NOWHERE = { table: 'http://127.0.0.1:1', queue: 'http://127.0.0.1:2', blob: 'http://127.0.0.1:3' };
const SERVICES = ['table', 'queue', 'blob'] as const;
const VERSION = '2025-11-05';

/**
 * Creates an empty storage account in memory, with the Table, Queue and Blob services. It takes the place of the network: the storage
 * SDKs, with their retries and serialization, stay in use.
 */
export function createMemoryStorage({
  now = Date.now,
  account = 'memory',
  origins = NOWHERE,
}: MemoryStorageOptions = {}): MemoryStorage {
  const key = randomBytes(64).toString('base64');
  const options = { account, key, now };
  const services = {
    table: createMemoryTables(options),
    queue: createMemoryQueues(options),
    blob: createMemoryBlobs(options),
  };

  async function execute(request: PipelineRequest): Promise<PipelineResponse> {
    const { origin } = new URL(request.url);
    const service = SERVICES.find((name) => origins[name] === origin);
    if (!service) throw new Error(`The storage in memory has no service at ${origin}.`);
    const received = await toStorageRequest(request, account);
    // Other work goes on while a request is on its way.
    await setImmediate();
    if (request.abortSignal?.aborted)
      throw Object.assign(new Error('The request was aborted.'), { name: 'AbortError' });
    const reply = answer(service, received);
    const headers = {
      date: new Date(now()).toUTCString(),
      'x-ms-version': VERSION,
      'x-ms-request-id': randomUUID(),
      'x-ms-client-request-id': request.headers.get('x-ms-client-request-id'),
      ...(service === 'table' ? { 'content-type': 'application/json' } : {}),
      ...reply.headers,
    };
    return toResponse(request, { ...reply, headers });
  }

  function answer(service: Service, request: StorageRequest): StorageReply {
    // The rules for web pages of other origins: no browser reaches this account directly.
    if (request.method === 'PUT' && request.path === '' && request.query.get('comp') === 'properties')
      return { status: 202 };
    try {
      return services[service].handle(request);
    } catch (error) {
      if (!(error instanceof StorageRejection)) throw error;
      return service === 'table' ? toTableError(error) : toXmlError(request, error);
    }
  }

  const [tables, queues, blobs] = SERVICES.map((service) => `${origins[service]}/${account}`);
  const endpoints = `TableEndpoint=${tables};QueueEndpoint=${queues};BlobEndpoint=${blobs}`;
  const storage: MemoryStorage = {
    connectionString: `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};${endpoints}`,
    intercept: undefined,
    httpClient: {
      sendRequest: (request) =>
        storage.intercept ? storage.intercept(request, () => execute(request)) : execute(request),
    },
  };
  return storage;
}

function toXmlError({ method }: StorageRequest, { status, code, message }: StorageRejection): StorageReply {
  const body = toDocument(element('Error', element('Code', code), element('Message', message)));
  const headers = { 'x-ms-error-code': code, 'content-type': 'application/xml' };
  // No response to HEAD has a body, nor has a 304.
  return method === 'HEAD' || status === 304 ? { status, headers } : { status, headers, body };
}

function toResponse(request: PipelineRequest, { status, headers, body }: StorageReply): PipelineResponse {
  const response = { request, status, headers: toHttpHeaders(headers) };
  const streamed = request.streamResponseStatusCodes;
  // The HTTP client of the SDKs decides in this way.
  if (streamed?.has(status) || streamed?.has(Number.POSITIVE_INFINITY))
    return {
      ...response,
      readableStreamBody: Readable.from(body === undefined || body.length === 0 ? [] : [Buffer.from(body)]),
    };
  return { ...response, bodyAsText: body?.toString() ?? '' };
}
