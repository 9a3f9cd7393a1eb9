import {
  HttpRequest,
  type HttpRequestInit,
  type HttpResponseInit,
  InvocationContext,
  type InvocationContextInit,
} from '@azure/functions';
import { createRowkey, type FunctionsApp, registerFunctions } from '../../../lib/index.ts';
import { decodePath, encodePath } from '../../../local/host/route.ts';
import type { LinkedModel } from '../../kit/define.ts';
import { type Chance, createChance } from './chance.ts';
import type { Network } from './network.ts';
import { startQueueTrigger } from './queue-trigger.ts';
import { PROVIDER } from './tokens.ts';
import { runIn, type VirtualProcess } from './virtual-world.ts';

/** A process of the app: what `registerFunctions` registers, called as the Functions host calls it. */

type Handler = (input: unknown, context: InvocationContext) => unknown;

interface Registered {
  readonly http: { readonly name: string; readonly handler: Handler };
  readonly queues: {
    readonly name: string;
    readonly queue: string;
    readonly setting: string;
    readonly handler: Handler;
  }[];
  readonly timers: { readonly name: string; readonly schedule: string; readonly handler: Handler }[];
  readonly starts: (() => unknown)[];
}

interface ProcessOptions {
  readonly seed: number;
  readonly model: LinkedModel;
  readonly network: Network;
  /** How many of the accounts the process knows. */
  readonly accounts: number;
  readonly keyFile: string;
  readonly idlePollMs?: number | undefined;
  /** True if processes have died at each attempt to handle the message that has come. */
  readonly spoils?: (queue: string) => boolean;
  /** Called with each line that a function logs as an error. */
  readonly log: (line: string) => void;
}

export interface AppProcess {
  readonly process: VirtualProcess;
  readonly timers: Registered['timers'];
  /** Throws if the process dies. */
  request(method: string, path: string, init: RequestParts): Promise<Response>;
  runTimer(name: string): Promise<void>;
  /** Ends the process. What waits for it fails. */
  kill(): void;
}

interface Response {
  readonly response: HttpResponseInit;
  /** The requests to storage that were sent for it. */
  readonly storageRequests: number;
  /** Names the operation in the requests to storage. */
  readonly operation: Chance;
}

interface RequestParts {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Called when the process has the request: it may never respond. */
  readonly onBegun?: (operation: Chance) => void;
}

/** Starts a process of the app, and its queue triggers. */
export async function startProcess(process: VirtualProcess, options: ProcessOptions): Promise<AppProcess> {
  const { seed, model, network, accounts, keyFile, idlePollMs, spoils, log } = options;
  const chanceOf = (...names: readonly (string | number)[]) => createChance(seed, process.name, ...names);
  const known = network.accountsFor(process).slice(0, accounts);
  const [only] = known;
  if (!only) throw new Error('An app has an account.');
  const storage = known.length === 1 ? only : { accounts: known };
  const backup = network.backupFor(process);
  const given = { model, storage, ...(backup && { backup }), auth: PROVIDER, keys: { file: keyFile }, operations: {} };
  const rowkey = createRowkey(given as never);
  const { app, registered } = createRecordingApp();
  registerFunctions(app, rowkey);
  let count = 0;
  const invoke = (
    of: { readonly name: string; readonly handler: Handler },
    input: unknown,
    more: InvocationContextInit = {},
  ) => {
    count += 1;
    const context = new InvocationContext({
      functionName: of.name,
      invocationId: `${process.name}-${count}`,
      logHandler: (level, ...lines) => {
        if (level === 'error') log(`${of.name}: ${lines.join(' ')}`);
      },
      ...more,
    });
    const chance = chanceOf(of.name, count);
    return { chance, result: runIn(process, chance, async () => of.handler(input, context)) };
  };
  await runIn(process, chanceOf('start'), async () => {
    for (const start of registered.starts) await start();
  });
  for (const queue of registered.queues) {
    const account = known.find(({ name }) => name === queue.setting) ?? only;
    runIn(process, chanceOf('poll', queue.name), () =>
      startQueueTrigger(queue, {
        account,
        idlePollMs,
        spoils,
        canReceive: async () => (await network.look(account.name, queue.queue)).isOneVisible,
        invoke: (input, triggerMetadata) => invoke(queue, input, { triggerMetadata }).result,
      }),
    );
  }
  const { promise: death, reject: die } = Promise.withResolvers<never>();
  death.catch(() => undefined);
  const untilDeath = <Result>(work: Promise<Result>) => Promise.race([death, work]);
  return {
    process,
    timers: registered.timers,
    async request(method, path, { headers, body, onBegun }) {
      const [place = '', query] = path.split('?');
      const decoded = decodePath(place.replace(/^\/api\//, ''));
      const url = `http://localhost${encodePath(decodePath(place))}${query === undefined ? '' : `?${query}`}`;
      const sent = body === undefined ? {} : { body: typeof body === 'string' ? { string: body } : { bytes: body } };
      // `fetch` sends the length also of no body, but for methods that usually have none.
      const hasLength = body !== undefined || ['POST', 'PUT'].includes(method);
      const length = hasLength ? { 'content-length': String(Buffer.byteLength(body ?? '')) } : {};
      const init = { method, url, params: { path: decoded }, headers: { ...headers, ...length }, ...sent };
      const invoked = invoke(registered.http, new HttpRequest(init as HttpRequestInit));
      onBegun?.(invoked.chance);
      const response = (await untilDeath(invoked.result)) as HttpResponseInit;
      return { response, storageRequests: network.requestsOf(invoked.chance), operation: invoked.chance };
    },
    async runTimer(name) {
      const timer = registered.timers.find((one) => one.name === name);
      if (timer) await untilDeath(invoke(timer, {}).result);
    },
    kill() {
      process.isDead = true;
      die(new TypeError('fetch failed'));
    },
  };
}

/** Takes the place of `app` of `@azure/functions`. */
function createRecordingApp(): { readonly app: FunctionsApp; readonly registered: Registered } {
  const http: Registered['http'][] = [];
  const registered: Omit<Registered, 'http'> = { queues: [], timers: [], starts: [] };
  const app = {
    http: (name: string, { handler }: { handler: Handler }) => void http.push({ name, handler }),
    storageQueue: (name: string, { queueName: queue, connection: setting, handler }: QueueOptions) =>
      void registered.queues.push({ name, queue, setting, handler }),
    timer: (name: string, { schedule, handler }: { schedule: string; handler: Handler }) =>
      void registered.timers.push({ name, schedule, handler }),
    hook: {
      appStart: (start: () => unknown) => void registered.starts.push(start),
      appTerminate: () => undefined,
      preInvocation: () => undefined,
    },
  };
  return {
    app: app as unknown as FunctionsApp,
    registered: {
      ...registered,
      get http() {
        const [first] = http;
        if (!first) throw new Error('Nothing is registered.');
        return first;
      },
    },
  };
}

interface QueueOptions {
  readonly queueName: string;
  readonly connection: string;
  readonly handler: Handler;
}
