import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { needTool } from './need-tool.ts';
import { type Child, endChild, spawnScript } from './spawn-child.ts';

/** A start takes about a second, but far longer on a busy machine. */
const READY_WITHIN_MS = 120_000;
/** Gives the other services time to write their data after one has failed. */
const FAILED_STOP_MS = 2_000;
/**
 * Longer than clients keep an idle connection, so that they close it. After the default of 5 seconds, a busy machine sends
 * requests on connections that the emulator has just closed.
 */
const KEEP_ALIVE_SECONDS = '120';
const SERVICES = ['Blob', 'Queue', 'Table'] as const;
type Service = (typeof SERVICES)[number];

/** An account of the emulator: its name, and its key in base64. */
export interface Account {
  readonly name: string;
  readonly key: string;
}

/** Returns an account of the emulator with a private key; the first has the emulator's usual name. */
export function createEmulatorAccount(key: string, number = 0): Account {
  return { name: `devstoreaccount${number + 1}`, key };
}

export interface Azurite {
  readonly process: Child;
  readonly endpoints: Readonly<Record<Lowercase<Service>, string>>;
  connectionString(account?: string): string;
  /**
   * Asks Azurite to write its data and exit. SIGKILL would lose up to five seconds of acknowledged writes. Throws if the
   * data could not be written.
   */
  stop(): Promise<void>;
}

/** The port of each service; 0 for any free port. */
export type EmulatorPorts = Readonly<Record<Lowercase<Service>, number>>;

interface AzuriteOptions {
  /** The ports of the services. Default: free ports. */
  readonly ports?: EmulatorPorts;
  /** Undefined keeps the data in memory: the emulator stalls after thousands of deleted queue messages, but never to write the data. */
  readonly folder: string | undefined;
  /** The accounts to serve; the first is the default. None may have the published key, which any web page could use. */
  readonly accounts: readonly [Account, ...Account[]];
}

/** The addresses of an account's services. */
interface Endpoints {
  readonly tables: string;
  readonly queues: string;
  readonly blobs: string;
}

export function formatConnectionString({ name, key }: Account, { tables, queues, blobs }: Endpoints): string {
  const account = `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${key}`;
  return `${account};BlobEndpoint=${blobs};QueueEndpoint=${queues};TableEndpoint=${tables};`;
}

/** Starts Azurite as a child process and returns when all three services listen. */
export async function startAzurite({ folder, accounts, ports: at }: AzuriteOptions): Promise<Azurite> {
  const { resolve } = createRequire(import.meta.url);
  const script = await needTool('azurite', async () => resolve('azurite/dist/src/azurite.js'));
  const ports = SERVICES.flatMap((service) => [
    ...[`--${toLowerCase(service)}Port`, String(at?.[toLowerCase(service)] ?? 0)],
    ...[`--${toLowerCase(service)}KeepAliveTimeout`, KEEP_ALIVE_SECONDS],
  ]);
  // The blob SDK uses an API version that no release of the emulator knows.
  const options = ['--disableTelemetry', '--skipApiVersionCheck', '--silent'];
  const place = folder === undefined ? ['--inMemoryPersistence'] : ['--location', folder];
  const child = spawnScript(script, [...place, ...ports, ...options], {
    env: { AZURITE_ACCOUNTS: accounts.map(({ name, key }) => `${name}:${key}`).join(';') },
  });
  const complaints: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk.toString()));
  const { promise: closed, resolve: closes } = Promise.withResolvers<void>();
  child.once('close', () => closes());
  const found = await waitUntilListening(child, complaints);

  return {
    process: child,
    endpoints: found,
    connectionString(name = accounts[0].name) {
      const account = accounts.find((each) => each.name === name);
      if (!account) throw new Error(`The emulator has no account ${name}.`);
      const { table, queue, blob } = found;
      const [tables, queues, blobs] = [`${table}/${name}`, `${queue}/${name}`, `${blob}/${name}`];
      return formatConnectionString(account, { tables, queues, blobs });
    },
    async stop() {
      // A service that cannot write logs this failure and may keep Azurite running forever.
      const failure = () => /Shutdown close failed.*/.exec(complaints.join(''))?.[0];
      child.stderr.on('data', () => failure() && setTimeout(() => child.kill('SIGKILL'), FAILED_STOP_MS).unref());
      await endChild(child);
      await closed;
      // The write that Azurite makes every five seconds fails silently, for example when the folder is deleted.
      const why =
        failure() ?? (folder === undefined || existsSync(folder) ? undefined : `the folder ${folder} is gone`);
      if (why) throw new Error(`The storage emulator could not write its data out: ${why}`);
    },
  };
}

async function waitUntilListening(child: Child, complaints: readonly string[]): Promise<Azurite['endpoints']> {
  const found: Partial<Record<Lowercase<Service>, string>> = {};
  const { promise, resolve, reject } = Promise.withResolvers<Azurite['endpoints']>();
  const fail = (why: string) => reject(new Error(`Azurite did not start: ${why} ${complaints.join('').trim()}`.trim()));
  const timer = setTimeout(() => {
    child.kill('SIGKILL');
    fail(`not listening within ${READY_WITHIN_MS / 1000} s.`);
  }, READY_WITHIN_MS);
  child.once('error', (error) => fail(error.message));
  child.once('exit', (code) => fail(`the process exited with code ${code}.`));
  createInterface({ input: child.stdout }).on('line', (line) => {
    const match = /Azurite (Blob|Queue|Table) service is successfully listening at (http:\/\/\S+)/.exec(line);
    if (match?.[1] && match[2]) found[toLowerCase(match[1] as Service)] = match[2];
    const { blob, queue, table } = found;
    if (blob && queue && table) resolve({ blob, queue, table });
  });
  return promise.finally(() => clearTimeout(timer));
}

function toLowerCase(service: Service): Lowercase<Service> {
  return service.toLowerCase() as Lowercase<Service>;
}
