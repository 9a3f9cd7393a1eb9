import { setImmediate } from 'node:timers/promises';
import { toCompatResponse, type WebResourceLike } from '@azure/core-http-compat';
import {
  createDefaultHttpClient,
  createEmptyPipeline,
  createHttpHeaders,
  createPipelineRequest,
  defaultRetryPolicy,
  type HttpClient,
  type PipelinePolicy,
  retryPolicy,
} from '@azure/core-rest-pipeline';
import { TableClient, TableServiceClient } from '@azure/data-tables';
import type { TokenCredential } from '@azure/identity';
import { BlobServiceClient, type ContainerClient } from '@azure/storage-blob';
import { type QueueClient, QueueServiceClient } from '@azure/storage-queue';
import { RowkeyError } from '../base/errors.ts';
import { createPace, type Pace } from '../base/pace.ts';
import { boundWaits, failAfterSilence } from './bound-waits.ts';
import { conditionalDelete } from './conditional-delete.ts';
import { countTransactions } from './cost.ts';
import { isUnsent, noteOutcome } from './errors.ts';
import { createHeat, type Heat } from './heat.ts';
import { adaptToLoad, failIfSilent } from './load.ts';
import { managedIdentity } from './managed-identity.ts';
import { prefixTable, prefixWithHyphen } from './resource-names.ts';
import { noteAttempt, type RowJournal } from './row-journal.ts';
import type { TableShapes } from './table-shape.ts';

/**
 * The clients of one app in one storage account, each created once to keep its connections open. `table`, `queue` and
 * `container` accept declared names and add the prefix; the clients of the services know no prefix.
 */
export interface Storage {
  /** The prefix of the app's resources in the account; empty for none. */
  readonly prefix: string;
  /** The client of a table. */
  table(name: string): TableClient;
  /** The client of a table that repeats a request only if storage has certainly not executed it. */
  tableSentOnce(name: string): TableClient;
  /** The client of a queue of the first account, or of one whose name begins with its account, as `queueIn` writes it. */
  queue(name: string): QueueClient;
  /** The client of a queue that repeats a request only if storage has certainly not executed it. */
  queueSentOnce(name: string): QueueClient;
  container(name: string): ContainerClient;
  /** The clock of the queues, which all processes have in common. */
  readonly clock: Pick<ReturnType<typeof createServiceClock>, 'earliestTime' | 'latestTime'>;
  /** What this process uses of the account, by partition. */
  readonly heat: Pick<Heat, 'top' | 'total'>;
  readonly tables: TableServiceClient;
  readonly queues: QueueServiceClient;
  readonly blobs: BlobServiceClient;
  /** Set with an account key (the emulator); undefined with an identity. */
  readonly connectionString: string | undefined;
  /** Set with an identity; undefined with an account key. */
  readonly credential: TokenCredential | undefined;
  /** The name of the account, if the app has several. */
  readonly name?: string;
  /** Set if the app has a backup: its account, of which it uses the blobs alone. */
  readonly backup?: Storage;
  /** Set if the app has a backup: gets each transaction that changes rows. */
  readonly journal?: RowJournal;
  /** The tables that another program fills. An app with one has a single account. */
  readonly shapes?: TableShapes;
  /** Set if the rows and blobs of the app are in several accounts. The other members are then those of the first account. */
  readonly accounts?: Accounts;
}

/** One of several accounts. Its name is that of its connection. */
export interface Account extends Storage {
  readonly name: string;
}

/** Several accounts of one app: slot-map.ts says which of them owns a partition. */
export interface Accounts {
  readonly list: readonly [Account, ...Account[]];
  /** The accounts of the containers that the model places. */
  readonly containers: ReadonlyMap<string, Account>;
}

/** All accounts of the app: those of `storage.accounts`, or the only one. */
export function accountsOf(storage: Storage): readonly Storage[] {
  return storage.accounts?.list ?? [storage];
}

export type StorageOptions = AccountOptions | SeveralOptions;

interface SeveralOptions {
  readonly accounts: readonly NamedOptions[];
  /** The name of the account of each container that is placed as a whole. */
  readonly containers?: Readonly<Record<string, string>>;
}

/** The name of the first account, whose connection every app has. */
export const FIRST_ACCOUNT = 'first';

/** The name of the account of the backup, in errors and in names of blobs. */
export const BACKUP_ACCOUNT = 'backup';

/** The options of one of several accounts. The order is the same in all processes. */
export type NamedOptions = AccountOptions & { readonly name: string };

export type AccountOptions =
  | { readonly connectionString: string; readonly httpClient?: HttpClient }
  | {
      readonly tables: string;
      readonly queues: string;
      readonly blobs: string;
      readonly clientId?: string | undefined;
      /** In place of the managed identity. */
      readonly credential?: TokenCredential | undefined;
    };

/** At most 30, the limit of the service. */
const WRITE_WITHIN_SECONDS = 15;
const RETRIES = 3;
const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 2_000;

/** The emulator uses plain HTTP. */
const INSECURE = /DefaultEndpointsProtocol=http(;|$)|UseDevelopmentStorage=true/;

/** True for the emulator. */
export function isOnThisMachine({ tables }: Pick<Storage, 'tables'>): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(tables.url).hostname);
}

/**
 * Opens the account or accounts of the app whose resources have the prefix. Each account has a pace of its own: one that is slow or busy
 * delays no work on the others.
 */
export function openStorage(options: StorageOptions, prefix = '', paceOf: () => Pace = createPace): Storage {
  // All accounts have one clock: a process may have had a response from one of them only.
  const clock = createServiceClock();
  const shared = { prefix, paceOf, clock };
  if (!('accounts' in options)) return openAccount(options, shared);
  const several = options.accounts.length > 1;
  const [first, ...others] = options.accounts.map(({ name, ...account }) => ({
    ...openAccount(account, { ...shared, name: several ? name : undefined }),
    name,
  }));
  if (!first) throw new RowkeyError('wrong-setting', 'Invalid settings: no storage account is given.');
  if (others.length === 0) return first;
  const openQueue = (open: 'queue' | 'queueSentOnce') => (queue: string) => {
    const [account, name] = splitQueue([first, ...others], queue);
    return account[open](name);
  };
  const queues = { queue: openQueue('queue'), queueSentOnce: openQueue('queueSentOnce') };
  const containers = new Map(
    Object.entries(options.containers ?? {}).map(([container, name]) => {
      const account = [first, ...others].find((each) => each.name === name);
      if (account) return [container, account];
      throw new RowkeyError(
        'wrong-setting',
        `Invalid settings: the model places the container ${container} in the storage account ${name}, which STORAGE_ACCOUNTS does not name.`,
      );
    }),
  );
  const container = (name: string) => (containers.get(name) ?? first).container(name);
  return { ...first, ...queues, container, accounts: { list: [first, ...others], containers } };
}

/** The name of a queue in one of several accounts, such as `second/transfers`. A queue of the first account has its declared name. */
export function queueIn({ name }: Pick<Storage, 'name'>, queue: string): string {
  return name === undefined || name === FIRST_ACCOUNT ? queue : `${name}/${queue}`;
}

/** The account of a queue, by its name as `queueIn` writes it. */
export function accountOfQueue(storage: Storage, queue: string): Storage {
  return storage.accounts ? splitQueue(storage.accounts.list, queue)[0] : storage;
}

function splitQueue([first, ...others]: readonly [Account, ...Account[]], queue: string): [Account, string] {
  const [name, rest] = queue.includes('/') ? queue.split('/', 2) : [first.name, queue];
  const account = [first, ...others].find((each) => each.name === name);
  if (account && rest !== undefined) return [account, rest];
  throw new RowkeyError('wrong-setting', `The app has no storage account ${name}, which the name of a queue has.`);
}

interface Opening {
  readonly prefix: string;
  readonly paceOf: () => Pace;
  readonly clock: ServiceClock;
  /** The name of the account, if there are several. */
  readonly name?: string | undefined;
}

/** Opens an account by connection string (the emulator) or with a managed identity (Azure). */
function openAccount(account: AccountOptions, { prefix, paceOf, clock, name }: Opening): Storage {
  const pace = paceOf();
  const insecure = 'connectionString' in account && INSECURE.test(account.connectionString);
  const transport = 'httpClient' in account && account.httpClient ? account.httpClient : createDefaultHttpClient();
  const heat = createHeat();
  // The bytes of a blob may take long. With one account, nothing else can be done meanwhile.
  const unlessSilent = name === undefined ? [] : [failIfSilent()];
  // Between the retries of an SDK and the network, from the outside to the inside.
  const ofAll = (service: 'table' | 'queue' | 'blob'): PipelinePolicy[] => [
    adaptToLoad(pace),
    ...(service === 'blob' ? [failAfterSilence()] : []),
    noteOutcome,
    ...(service === 'blob' ? [] : unlessSilent),
    countTransactions({ service, endpoint: () => clients[`${service}s`].url, insecure, heat, account: name }),
    boundWaits,
  ];
  const table = through(
    [conditionalDelete, ...(insecure ? [asciiJson] : []), boundWrites, noteAttempt, ...ofAll('table')],
    transport,
  );
  const queue = [clock.policy, ...ofAll('queue')];
  const retryOptions = { maxRetries: RETRIES, retryDelayInMs: FIRST_RETRY_MS, maxRetryDelayInMs: LAST_RETRY_MS };
  const otherOptions = (policies: readonly PipelinePolicy[], maxTries = RETRIES + 1) => ({
    httpClient: toLegacyHttpClient(through(policies, transport)),
    retryOptions: { ...retryOptions, maxTries },
  });
  const options = {
    table: { httpClient: table, retryOptions, allowInsecureConnection: insecure },
    queue: otherOptions(queue),
    // The retries of the queue SDK can only be turned off.
    queueSentOnce: otherOptions([retryUnlessExecuted(), ...queue], 1),
    blob: otherOptions(ofAll('blob')),
  };
  const clients =
    'connectionString' in account
      ? byConnectionString(account.connectionString, options)
      : byIdentity(account, options);
  return {
    ...clients,
    prefix,
    table: onceByName((name) => clients.openTable(prefixTable(prefix, name))),
    tableSentOnce: onceByName((name) => withoutRetries(clients.openTable(prefixTable(prefix, name)))),
    queue: onceByName((name) => clients.queues.getQueueClient(prefixWithHyphen(prefix, name))),
    queueSentOnce: onceByName((name) => clients.queuesSentOnce.getQueueClient(prefixWithHyphen(prefix, name))),
    container: (name) => clients.blobs.getContainerClient(prefixWithHyphen(prefix, name)),
    clock,
    heat,
  };
}

/** Opens the storage. Throws `wrong-setting` without the SDK's reason, which may quote the connection string. */
export function openUsableStorage(
  options: StorageOptions,
  { prefix, connection, paceOf }: { readonly prefix: string; readonly connection: string; readonly paceOf: () => Pace },
): Storage {
  try {
    return openStorage(options, prefix, paceOf);
  } catch (error) {
    if (error instanceof RowkeyError) throw error;
    const further = 'accounts' in options ? options.accounts.slice(1) : [];
    const wrong = further.find((account) => !isUsable(account))?.name ?? connection;
    throw new RowkeyError(
      'wrong-setting',
      `Invalid settings: ${wrong} must be a connection string of a storage account.`,
    );
  }
}

function isUsable(account: AccountOptions): boolean {
  try {
    openStorage(account);
    return true;
  } catch {
    return false;
  }
}

/** The options of the clients, by service. */
type ClientOptions = Readonly<Record<'table' | 'queue' | 'queueSentOnce' | 'blob', object>>;

function byConnectionString(connectionString: string, options: ClientOptions) {
  return {
    connectionString,
    credential: undefined,
    openTable: (name: string) => TableClient.fromConnectionString(connectionString, name, options.table),
    tables: TableServiceClient.fromConnectionString(connectionString, options.table),
    queues: QueueServiceClient.fromConnectionString(connectionString, options.queue),
    queuesSentOnce: QueueServiceClient.fromConnectionString(connectionString, options.queueSentOnce),
    blobs: BlobServiceClient.fromConnectionString(connectionString, options.blob),
  };
}

function byIdentity(uris: Exclude<AccountOptions, { connectionString: string }>, options: ClientOptions) {
  const credential = uris.credential ?? managedIdentity(uris.clientId);
  return {
    connectionString: undefined,
    credential,
    openTable: (name: string) => new TableClient(uris.tables, name, credential, options.table),
    tables: new TableServiceClient(uris.tables, credential, options.table),
    queues: new QueueServiceClient(uris.queues, credential, options.queue),
    queuesSentOnce: new QueueServiceClient(uris.queues, credential, options.queueSentOnce),
    blobs: new BlobServiceClient(uris.blobs, credential, options.blob),
  };
}

function onceByName<Client>(open: (name: string) => Client): (name: string) => Client {
  const clients = new Map<string, Client>();
  return (name) => {
    const known = clients.get(name) ?? open(name);
    clients.set(name, known);
    return known;
  };
}

/** The client whose requests pass the policies, the first one first, on their way to the network. */
export function through(policies: readonly PipelinePolicy[], network: HttpClient): HttpClient {
  const pipeline = createEmptyPipeline();
  for (const policy of policies) pipeline.addPolicy(policy);
  return { sendRequest: (request) => pipeline.sendRequest(network, request) };
}

/** Repeats only requests that were not sent, or that storage rejected with 503 (Server Busy), which has executed nothing. */
function retryUnlessExecuted(): PipelinePolicy {
  const unlessExecuted: Parameters<typeof retryPolicy>[0][number] = {
    name: 'unlessExecuted',
    retry: ({ retryCount, response, responseError }) =>
      response?.status === 503 || isUnsent(responseError)
        ? { retryAfterInMs: Math.min(FIRST_RETRY_MS * 2 ** retryCount, LAST_RETRY_MS) }
        : { skipStrategy: true },
  };
  return retryPolicy([unlessExecuted], { maxRetries: RETRIES });
}

/** The client with these retries in place of those of its SDK. */
function withoutRetries(client: TableClient): TableClient {
  client.pipeline.removePolicy({ name: defaultRetryPolicy().name });
  client.pipeline.addPolicy(retryUnlessExecuted(), { phase: 'Retry' });
  return client;
}

/**
 * Limits how long the service works on a write, also after the caller has given up:
 * https://learn.microsoft.com/rest/api/storageservices/setting-timeouts-for-table-service-operations
 */
const boundWrites: PipelinePolicy = {
  name: 'boundWrites',
  async sendRequest(request, next) {
    // The SDK repeats the same object.
    const isRepeated = /[?&]timeout=/.test(request.url);
    // A process that was paused while it waited runs the timer of the repetition before the timer that aborts the request.
    if (isRepeated) await setImmediate();
    else if (request.method !== 'GET')
      request.url += `${request.url.includes('?') ? '&' : '?'}timeout=${WRITE_WITHIN_SECONDS}`;
    return next(request);
  },
};

/**
 * Writes JSON bodies in ASCII with escapes, for the emulator only: Azurite decodes a request in chunks of 64 KiB and
 * corrupts a character that spans two chunks. The service does not.
 */
const asciiJson: PipelinePolicy = {
  name: 'asciiJson',
  sendRequest(request, next) {
    if (typeof request.body === 'string') {
      request.body = request.body.replace(/[\u0080-\uffff]/g, escapeUnit);
      if (request.headers.has('content-length')) request.headers.set('content-length', request.body.length);
    }
    return next(request);
  },
};

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Adapts an HTTP client to the older interface that the queue and blob SDKs accept; the table SDK accepts the newer one. */
export function toLegacyHttpClient(client: HttpClient) {
  return {
    async sendRequest(given: WebResourceLike) {
      const { headers, keepAlive, ...defined } = given;
      for (const [name, value] of Object.entries(defined))
        if (value === undefined) Reflect.deleteProperty(defined, name);
      const request = createPipelineRequest({
        ...defined,
        headers: createHttpHeaders(headers.toJson({ preserveCase: true })),
        // Microsoft's own conversion copies `keepAlive` to `disableKeepAlive`, its opposite.
        disableKeepAlive: keepAlive === true,
      });
      // The blob SDK looks up the operation by the request object. With another object it treats an error as a result.
      return { ...toCompatResponse(await client.sendRequest(request)), request: given };
    },
  };
}

/** `Date` headers have whole seconds, rounded down. */
const RESOLUTION_MS = 1_000;

/** The clock of a service, known from the `Date` of its responses. */
interface ServiceClock {
  /** Learns from each response. */
  readonly policy: PipelinePolicy;
  /** The earliest time, in milliseconds, that the clock can show now. Undefined before the first response. */
  earliestTime(): number | undefined;
  /** The latest time, as `earliestTime`. */
  latestTime(): number | undefined;
}

/** Creates a clock that needs a local one only for the time since the last request, so a wrong local time does no harm. */
export function createServiceClock(now: () => number = Date.now): ServiceClock {
  let ahead: { readonly least: number; readonly most: number } | undefined;
  return {
    policy: {
      name: 'serviceClock',
      async sendRequest(request, next) {
        const sentAt = now();
        const response = await next(request);
        const date = Date.parse(response.headers.get('date') ?? '');
        // The service read its clock between the two.
        if (!Number.isNaN(date)) ahead = { least: date - now(), most: date + RESOLUTION_MS - sentAt };
        return response;
      },
    },
    earliestTime: () => ahead && now() + ahead.least,
    latestTime: () => ahead && now() + ahead.most,
  };
}
