import {
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient,
  type PipelineRequest,
  type PipelineResponse,
  RestError,
} from '@azure/core-rest-pipeline';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { baseValues } from '../../kit/base.ts';
import type { Chance } from './chance.ts';
import {
  currentChance,
  elapsed,
  listenToAbort,
  runIn,
  trueTime,
  type VirtualProcess,
  VirtualTimer,
  wait,
} from './virtual-world.ts';

/** The network between the processes of an app and storage accounts in memory, with faults. */

/** How often each fault befalls a request: probabilities from 0 to 1. */
export interface NetworkFaults {
  /** The request does not arrive. */
  readonly lost: number;
  /** The request is executed, and the reply does not arrive. */
  readonly replyLost: number;
  /** The sender loses the connection, and the request is executed later. */
  readonly late: number;
  /** The request takes long to arrive. */
  readonly held: number;
  /** The reply takes long. */
  readonly slow: number;
  /** Storage is too busy to execute the request. */
  readonly throttled: number;
  /** Storage fails before or after it executed the request. */
  readonly failed: number;
}
export const NO_FAULTS: NetworkFaults = { lost: 0, replyLost: 0, late: 0, held: 0, slow: 0, throttled: 0, failed: 0 };

/** Kinds of requests of the app, beside the entity of a trap: to its table, to another table, to a queue, or to the audit log. */
export const TRAP_REQUESTS = [
  ...(['read entity', 'write entity', 'read other', 'insert other', 'change other'] as const),
  ...(['send message', 'receive message', 'hide message', 'delete message', 'append record'] as const),
];
/** What happens to the process that sends the request, or to the request. */
export const TRAP_ENDS = [
  ...(['dies before', 'dies after', 'pauses before', 'pauses after', 'late', 'held', 'replyLost'] as const),
];
const NETWORK_ENDS = ['late', 'held', 'replyLost', 'lost', 'slow'] as const;
/** Closes at a request of a kind, whichever process of the app sends it. */
export interface Trap {
  readonly scene: number;
  readonly request: (typeof TRAP_REQUESTS)[number];
  /** Which of the requests. */
  readonly nth: number;
  /** Of a scene one of `TRAP_ENDS`. */
  readonly end: (typeof TRAP_ENDS)[number] | 'lost' | 'slow';
  readonly forMs: number;
  /** Is set at the same operation when this trap has closed. A function is another operation than the receipt of its message. */
  readonly then?: Trap;
}

interface SetTrap extends Trap {
  readonly table: string;
  /** True for the requests at which it may close. */
  readonly isOf: (process: VirtualProcess, chance: Chance) => boolean;
  /** True if an earlier one has set it. */
  readonly isAnother?: boolean;
  left: number;
  readonly until: number;
  readonly close: () => void;
}

interface NetworkOptions {
  readonly accounts: readonly string[];
  /** By how much the clock of each account is ahead, in milliseconds. */
  readonly clocksMs?: readonly number[] | undefined;
  /** True if there is one more account, for the backup. */
  readonly hasBackup?: boolean;
  /** Called when storage has executed a request, and returns what gets the news that the process has the reply. */
  readonly onExecuted?: (
    by: { readonly process: VirtualProcess; readonly operation: Chance; readonly storageNow: number },
    request: PipelineRequest,
    response: PipelineResponse,
  ) => { isLearnt: boolean } | undefined;
  /** Called when a process sends a request. */
  readonly onSent?: (process: VirtualProcess, operation: Chance, request: PipelineRequest) => void;
  /** Called with each line of the log of requests. */
  readonly log: (line: string) => void;
  /** Called with each situation that the network brings about. */
  readonly notice: (situation: string) => void;
  /** False for a process that starts, or that is none of the app. */
  readonly canStop: (process: VirtualProcess) => boolean;
  /** Ends a process of the app. */
  readonly kill: (process: VirtualProcess) => void;
}

/** A request that has not arrived yet. */
interface Kept {
  isBehind(place: string, process: VirtualProcess): boolean;
  arrive(): void;
}

interface Account {
  readonly name: string;
  readonly connectionString: string;
  readonly httpClient: HttpClient;
}

export interface Network {
  /** The options of each account, for a process. */
  accountsFor(process: VirtualProcess): Account[];
  /** The options of the account of the backup, for a process or for the world itself. */
  backupFor(process: VirtualProcess | undefined): Account | undefined;
  /** The options of an account that is not of the app, and begins empty. */
  furtherFor(process: VirtualProcess | undefined, name: string): Account;
  /** A process dies at one of its next requests. Resolves then. */
  killAt(process: VirtualProcess, nth: number): Promise<void>;
  /** The options of each account for the world itself: without a network, so that nothing of its requests is logged or fails. */
  readonly direct: readonly Account[];
  /** How many messages a queue of an account has, and if one of them is visible. It costs no request. */
  look(account: string, queue: string): Promise<{ readonly messages: number; readonly isOneVisible: boolean }>;
  /** Resolves right after an operator's next request to a table, or when the time is over. */
  passOperator(table: string, mostMs: number): Promise<void>;
  /** Sets a trap at requests beside the entities of a table, and resolves when it has closed. */
  setTrap(trap: Trap, table: string): Promise<void>;
  faults: NetworkFaults;
  /** The accounts that do not respond, and until when. */
  readonly away: Map<string, number>;
  readonly requests: number;
  /** The requests of an operation, which its random numbers name. */
  requestsOf(chance: Chance): number;
}

/** Storage works on a request for so long. */
const WORKS_MS = 15_000;
/** Storage works on a request for at most 15 seconds, and a request may take ten to arrive. */
export const MOST_LATE_MS = 24_000;
const USUAL_MS = 12;
/** Times that the protocol counts with. */
const LATENESS_MS = [500, 2_000, 8_000, 14_000, 15_500, MOST_LATE_MS];
/** The sender still waits then. */
export const MOST_HELD_MS = 8_000;
/** The work of a write has ended by then. */
const TRAP_FOR_MS = 90_000;
const SLOWNESS_MS = [1_000, 4_000, 9_000, 16_000, 26_000];

/** The row that says which slots an account owns. */
const OWNED = `system(PartitionKey='${baseValues.SYSTEM_PARTITIONS.slots}',RowKey='${baseValues.SYSTEM_ROWS.owned}')`;
/** After a mover that failed, a writer lets a slot stay where it is: what was copied of it stays too. */
export const OPENED_AGAIN = 'slot opened by a writer';

/** The name of the account of a backup. */
export const BACKUP_ACCOUNT = 'backup';

export function createNetwork(options: NetworkOptions): Network {
  const { accounts, clocksMs = [], hasBackup = false, log, notice, canStop, kill, onExecuted, onSent } = options;
  const create = (account: string, index: number) => {
    const origins = { table: originOf(index, 1), queue: originOf(index, 2), blob: originOf(index, 3) };
    const now = () => trueTime() + (clocksMs[index] ?? 0);
    return { account, now, memory: createMemoryStorage({ now, account, origins }) };
  };
  const created = [...accounts, ...(hasBackup ? [BACKUP_ACCOUNT] : [])].map(create);
  const further = new Map<string, ReturnType<typeof create>>();
  const memories = created.slice(0, accounts.length);
  const ofBackup = created[accounts.length];
  /** How many requests the processes have left that die at one. */
  const dying = new Map<VirtualProcess, { left: number; readonly die: () => void }>();
  const state = { requests: 0 };
  const requestsOf = new WeakMap<Chance, number>();
  const learn = new WeakMap<PipelineResponse, { isLearnt: boolean }>();
  /** Late requests, each of which arrives right after another one to the same table or queue. */
  const kept: Kept[] = [];
  let traps: SetTrap[] = [];
  const network: Network = {
    faults: NO_FAULTS,
    away: new Map(),
    get requests() {
      return state.requests;
    },
    requestsOf: (chance) => requestsOf.get(chance) ?? 0,
    direct: memories.map((one) => optionsOf(one, undefined)),
    backupFor: (process) => ofBackup && optionsOf(ofBackup, process),
    furtherFor(process, name) {
      const found = further.get(name) ?? create(name, created.length + further.size);
      further.set(name, found);
      return optionsOf(found, process);
    },
    killAt: (process, nth) => new Promise((die) => void dying.set(process, { left: nth, die })),
    async look(account, queue) {
      const memory = memories.find((one) => one.account === account)?.memory;
      const ask = async (what: string) => {
        const url = `${originOf(accounts.indexOf(account), 2)}/${account}/${queue}${what}`;
        const headers = createHttpHeaders({ authorization: 'none' });
        return memory?.httpClient.sendRequest(createPipelineRequest({ url, headers, allowInsecureConnection: true }));
      };
      const messages = Number((await ask('?comp=metadata'))?.headers.get('x-ms-approximate-messages-count') ?? 0);
      if (messages === 0) return { messages, isOneVisible: false };
      const peeked = await ask('/messages?peekonly=true');
      return { messages, isOneVisible: peeked?.bodyAsText?.includes('<QueueMessage>') === true };
    },
    passOperator: (table, mostMs) =>
      keep((place, process) => isOperator(process) && place.endsWith(`/${table}`), mostMs),
    setTrap: (trap, table) =>
      new Promise((close) => {
        traps = [...traps, { ...open(trap, table), isOf: () => true, close }];
      }),
    accountsFor: (process) => memories.map((one) => optionsOf(one, process)),
  };

  function optionsOf(
    { account, now, memory }: ReturnType<typeof create>,
    process: VirtualProcess | undefined,
  ): Account {
    const { connectionString, httpClient } = memory;
    if (!process) return { name: account, connectionString, httpClient };
    return {
      name: account,
      connectionString,
      httpClient: { sendRequest: (request) => send(process, request, { account, now, httpClient }) },
    };
  }

  function send(
    process: VirtualProcess,
    request: PipelineRequest,
    {
      account,
      now,
      httpClient,
    }: { readonly account: string; readonly now: () => number; readonly httpClient: HttpClient },
  ): Promise<PipelineResponse> {
    // Work that waited for another process of the world, as for the keys of tokens, goes on although its own is dead.
    if (process.isDead) return new Promise(() => undefined);
    state.requests += 1;
    const id = state.requests;
    const chance = currentChance();
    onSent?.(process, chance, request);
    const end = dying.get(process);
    if (end) end.left -= 1;
    const diesAfter = end?.left === 0 && chance.isTrue(0.5);
    if (end?.left === 0 && !diesAfter) {
      process.isDead = true;
      end.die();
      return new Promise(() => undefined);
    }
    requestsOf.set(chance, network.requestsOf(chance) + 1);
    const chosen = chooseFate(chance.next(), network.faults);
    const trap = closeTrap(process, chance, request);
    const fate = NETWORK_ENDS.find((end) => end === trap?.end) ?? chosen;
    const [there, back] = [chance.between(1, USUAL_MS), chance.between(1, USUAL_MS)];
    const lateness = trap?.forMs ?? chance.pick(LATENESS_MS);
    const slowness = chance.pick(SLOWNESS_MS);
    const isBehindOther = !trap && chance.isTrue(0.7);
    const executesFirst = chance.isTrue(0.5);
    const behind = isBehindOther ? (chance.isTrue(0.5) ? 'operator' : 'any') : undefined;
    const say = (what: string) => log(`${elapsed().toFixed(3)} ${process.name} #${id} ${what}`);
    say(`${request.method} ${request.url} ${describe(request)}${fate ? ` (${fate})` : ''}`);
    if (request.method === 'PUT' && request.url.includes(OWNED) && !isOperator(process)) notice(OPENED_AGAIN);
    if (trap?.end === 'dies before') {
      kill(process);
      return new Promise(() => undefined);
    }
    if (trap?.end === 'pauses before') process.asleepUntil = elapsed() + trap.forMs;
    // Storage does not notice that its client has given up.
    const { abortSignal, ...sent } = request;
    const execute = async () => {
      const response = await httpClient.sendRequest(sent);
      say(`${response.status} ${response.headers.get('etag') ?? ''} ${response.bodyAsText ?? '(stream)'}`);
      const executed = onExecuted?.({ process, operation: chance, storageNow: now() }, request, response);
      if (executed) learn.set(response, executed);
      arriveBehind(placeOf(request), process);
      if (trap?.end === 'dies after') kill(process);
      if (diesAfter && end) {
        process.isDead = true;
        end.die();
      }
      if (trap?.end === 'pauses after') process.asleepUntil = elapsed() + trap.forMs;
      trap?.close();
      return response;
    };
    return new Promise((resolve, reject) => {
      const fail = (code: string) => reject(new RestError(`The network failed: ${code}`, { code, request }));
      /** What arrives at a process that is dead vanishes, as its timers do. */
      const inProcess = (run: () => void, afterMs: number) => {
        new VirtualTimer(run, afterMs, false, false);
      };
      let isOver = false;
      const abort = () => {
        isOver = true;
        reject(Object.assign(new Error('The request was aborted.'), { name: 'AbortError', code: 'REQUEST_ABORTED' }));
      };
      if (abortSignal?.aborted) return abort();
      const stopListening = listenToAbort(abortSignal as AbortSignal | undefined, abort);
      // As the HTTP client of the SDKs does.
      const limit = sent.timeout > 0 ? new VirtualTimer(abort, sent.timeout, false, false) : undefined;
      const deliver = (result: PipelineResponse | string, afterMs: number) =>
        process.isDead
          ? undefined
          : runIn(process, chance, () =>
              inProcess(() => {
                stopListening();
                limit?.close();
                if (typeof result === 'string') return fail(result);
                const executed = learn.get(result);
                if (executed && !isOver) executed.isLearnt = true;
                resolve({ ...result, request });
              }, afterMs),
            );
      const reply = (status: number, code: string): PipelineResponse => ({
        request,
        status,
        headers: createHttpHeaders({ 'x-ms-error-code': code }),
        bodyAsText: '',
      });
      const travel = async () => {
        await wait(trap?.end === 'pauses before' ? trap.forMs : there);
        if ((network.away.get(account) ?? 0) > elapsed()) {
          notice('account away');
          return deliver('ECONNREFUSED', back);
        }
        if (fate) notice(`request ${fate}`);
        switch (fate) {
          case 'lost':
            return deliver('ECONNRESET', back);
          case 'throttled':
            return deliver(reply(503, 'ServerBusy'), back);
          case 'failed':
            if (executesFirst) await execute();
            return deliver(reply(500, 'InternalError'), back);
          case 'late':
            deliver('ECONNRESET', back);
            await keepBehind(behind, { place: placeOf(request), process, mostMs: lateness });
            await execute();
            return;
          case 'held':
            await keepBehind(behind, {
              place: placeOf(request),
              process,
              mostMs: Math.min(lateness, MOST_HELD_MS),
            });
            return deliver(await execute(), back);
          case 'replyLost':
            await execute();
            return deliver('ECONNRESET', back);
          case 'slow': {
            const response = await execute();
            const forMs = trap?.forMs ?? slowness;
            // Storage may have executed a request long before it responds, and dates the response.
            if (hasBackup) response.headers.set('date', new Date(now() + Math.min(forMs, WORKS_MS)).toUTCString());
            return deliver(response, forMs);
          }
          default:
            return deliver(await execute(), back);
        }
      };
      runIn(undefined, chance, travel).catch((error) => deliver(String(error), 0));
    });
  }

  /** Returns the trap that closes at a request of the app. */
  function closeTrap(process: VirtualProcess, chance: Chance, request: PipelineRequest): SetTrap | undefined {
    if (traps.length === 0 || !canStop(process)) return undefined;
    traps = traps.filter(({ until }) => until > elapsed());
    for (const trap of traps) {
      if (!trap.isOf(process, chance) || !isAt(trap, request)) continue;
      trap.left -= 1;
      if (trap.left > 0) continue;
      traps = traps.filter((one) => one !== trap);
      if (trap.then) {
        const isOf = (by: VirtualProcess, operation: Chance) =>
          trap.request === 'receive message' ? by === process : operation === chance;
        traps.push({ ...open(trap.then, trap.table, trap.forMs), isOf, isAnother: true, close: () => undefined });
      }
      notice(`trap at: ${trap.request}`);
      notice(`trap: ${trap.end}`);
      if (trap.isAnother) notice('trap after another');
      // What others do then begins when the process has stopped.
      if (!trap.end.endsWith('after')) trap.close();
      return trap;
    }
    return undefined;
  }

  /** Resolves right after the request of another process to the same place, or later. */
  function keepBehind(
    behind: 'any' | 'operator' | undefined,
    { place, process, mostMs }: { readonly place: string; readonly process: VirtualProcess; readonly mostMs: number },
  ): Promise<void> {
    if (!behind) return wait(mostMs);
    return keep((other, by) => other === place && by !== process && (behind === 'any' || isOperator(by)), mostMs);
  }

  function keep(isBehind: Kept['isBehind'], mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const one = {
        isBehind,
        arrive() {
          const index = kept.indexOf(one);
          if (index >= 0) kept.splice(index, 1);
          resolve();
        },
      };
      kept.push(one);
      new VirtualTimer(() => one.arrive(), mostMs);
    });
  }

  function arriveBehind(place: string, process: VirtualProcess): void {
    for (const one of kept.filter(({ isBehind }) => isBehind(place, process))) {
      notice(`request right behind ${isOperator(process) ? 'an operator' : 'another'}`);
      one.arrive();
    }
  }

  return network;
}

const open = (trap: Trap, table: string, afterMs = 0) => ({
  ...trap,
  table,
  left: trap.nth,
  until: elapsed() + afterMs + TRAP_FOR_MS,
});
const isOperator = ({ name }: VirtualProcess) => name.startsWith('operator') || name.startsWith('successor');
const originOf = (account: number, service: number) => `http://127.0.0.1:${3 * account + service}`;

function isAt({ request: kind, table }: SetTrap, request: PipelineRequest): boolean {
  const place = placeOf(request);
  const method = methodOf(request);
  const isQueue = request.url.includes('/messages');
  const isTable = !isQueue && /^http:\/\/127\.0\.0\.1:\d*[147]\//.test(place);
  switch (kind) {
    case 'send message':
      return isQueue && method === 'POST';
    // A poll that would receive nothing is left out.
    case 'receive message':
      return isQueue && method === 'GET';
    case 'hide message':
      return isQueue && method === 'PUT';
    case 'append record':
      return request.url.includes('comp=appendblock');
    case 'delete message':
      return isQueue && method === 'DELETE';
    default: {
      const [what, where] = kind.split(' ');
      if (!isTable || (where === 'entity') !== place.endsWith(`/${table}`)) return false;
      if (what === 'read') return method === 'GET';
      if (what === 'insert') return method === 'POST';
      return method !== 'GET' && (what === 'write' || method !== 'POST');
    }
  }
}

/** Of the first action of a transaction. */
function methodOf({ method, url, body }: PipelineRequest): string {
  if (typeof body !== 'string' || !url.includes('/$batch')) return method;
  return /\n([A-Z]+) https?:/.exec(body)?.[1] ?? method;
}

/** The table, queue or container of a request. A transaction names its table in its body. */
function placeOf({ url, body }: PipelineRequest): string {
  const [inBody] = (typeof body === 'string' && url.includes('/$batch') && /https?:\/\/\S+/.exec(body)) || [];
  const { origin, pathname } = new URL(inBody ?? url);
  return origin + (/^\/[^/]*\/[^/(?]*/.exec(pathname)?.[0] ?? '');
}

function chooseFate(dice: number, faults: NetworkFaults): keyof NetworkFaults | undefined {
  let left = dice;
  for (const [name, probability] of Object.entries(faults)) {
    left -= probability;
    if (left < 0) return name as keyof NetworkFaults;
  }
  return undefined;
}

/** Of the headers only the condition: the others follow from the request, or are not the same in another run, as a signature. */
function describe({ headers, body }: PipelineRequest): string {
  return `${headers.get('if-match') ?? ''} ${typeof body === 'string' ? body : body ? '(bytes)' : ''}`;
}
