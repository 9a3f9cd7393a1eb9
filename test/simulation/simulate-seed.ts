import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createPipelineRequest } from '@azure/core-rest-pipeline';
import { createEngine } from '../../lib/engine/engine.ts';
import { listParts } from '../../lib/engine/reconcile/queues.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { createLocalKeyRing } from '../../lib/storage/local-key-ring.ts';
import { provision } from '../../lib/storage/provision.ts';
import { openStorage } from '../../lib/storage/storage.ts';
import { compareAll } from '../../local/walk/compare-answers.ts';
import { openWorld } from '../../local/walk/walk-world.ts';
import { type AppProcess, startProcess } from '../kit/app-process.ts';
import { createChance } from '../kit/chance.ts';
import { createNetwork, NO_FAULTS } from '../kit/network.ts';
import { startTimerTriggers } from '../kit/timer-triggers.ts';
import { createToken, KEYS } from '../kit/tokens.ts';
import {
  countSteps,
  createProcess,
  driveWorld,
  elapsed,
  processorTime,
  resetWorld,
  runIn,
  type VirtualProcess,
  wait,
} from '../kit/virtual-world.ts';
import { createCaller } from './caller.ts';
import { createHistory } from './history.ts';
import { CLIENTS, type Event, type Plan } from './plan.ts';

/** What a world was like. */
export interface Report {
  readonly seed: number;
  readonly modelName: string;
  /** What does not agree, or was not kept. */
  readonly problems: readonly string[];
  /** Of all storage requests and replies, and of all requests to the app and their responses. */
  readonly hash: string;
  readonly storageRequests: number;
  readonly appRequests: number;
  readonly steps: number;
  readonly virtualMs: number;
  readonly processorMs: number;
  /** How often each operation ended so. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly situations: ReadonlyMap<string, number>;
}

interface Options {
  readonly keyFile: string;
  /** The events that do not happen. */
  readonly without?: ReadonlySet<number>;
  /** The file that gets the log. */
  readonly logFile?: string | undefined;
}

const FIRST = ['first', 'second', 'third'];
const QUIET_POLL_MS = 10_000;
/** A message of a host that died returns after ten minutes, and the work after it takes moments. */
const AT_REST_WITHIN_MS = 25 * 60_000;

/** Lets a world happen. */
export async function simulateSeed(plan: Plan, options: Options): Promise<Report> {
  resetWorld();
  const begun = processorTime();
  const world = createWorldOf(plan, options);
  const outside = createProcess('operator');
  const problems = await runIn(outside, createChance(plan.seed, 'main'), () => driveWorld(() => world.run(outside)));
  return { ...world.report(), problems, processorMs: processorTime() - begun };
}

function createWorldOf(plan: Plan, { keyFile, without, logFile }: Options) {
  const { seed, model, modelName } = plan;
  const hash = createHash('sha256');
  const lines: string[] = [];
  const outcomes = new Map<string, number>();
  const situations = new Map<string, number>();
  const count = (map: Map<string, number>, what: string) => map.set(what, (map.get(what) ?? 0) + 1);
  const log = (line: string) => {
    hash.update(`${line}\n`);
    if (logFile) lines.push(line);
  };
  const notice = (situation: string) => void count(situations, situation);
  const names = FIRST.slice(0, plan.accounts);
  const network = createNetwork({ accounts: names, log, notice });
  const history = createHistory();
  const running: AppProcess[] = [];
  const logged: string[] = [];
  let appRequests = 0;
  let generation = 0;

  const open = (process: VirtualProcess) => {
    const accounts = network.accountsFor(process);
    const [only] = accounts;
    return openStorage(accounts.length === 1 && only ? only : { accounts });
  };

  async function start(index: number): Promise<void> {
    generation += 1;
    const process = createProcess(`p${index}.${generation}`, plan.aheadMs[index]);
    running[index] = await startProcess(process, {
      ...{ seed, model, network, keyFile, accounts: plan.accounts },
      log: (line) => {
        log(`${elapsed().toFixed(3)} ${process.name} logged ${line}`);
        logged.push(line);
      },
    });
  }

  /** Sends a request to a process that lives, or to storage. */
  const fetchFrom =
    (client: VirtualProcess, index: number): typeof fetch =>
    async (input, init = {}) => {
      const url = String(input);
      const headers = Object.fromEntries(new Headers(init.headers));
      const { method = 'GET', body } = init;
      const sent = body instanceof Blob ? new Uint8Array(await body.arrayBuffer()) : (body as string | undefined);
      if (!url.startsWith('http://localhost/')) return sendToStorage(client, url, { method, headers, body: sent });
      appRequests += 1;
      const id = appRequests;
      const target = running[index % running.length];
      if (!target) throw new TypeError('fetch failed');
      const path = url.slice('http://localhost'.length);
      const { authorization: _, ...shown } = headers;
      log(`${elapsed().toFixed(3)} c${index} @${id} ${method} ${path} ${JSON.stringify(shown)} ${String(sent ?? '')}`);
      await wait(1);
      const response = await target.request(method, path, { headers, body: sent });
      const { status = 200, headers: replied, body: content } = response;
      const received = new Headers(replied as Record<string, string>);
      const text = content === undefined || content === null ? '' : await new Response(content as string).text();
      log(`${elapsed().toFixed(3)} c${index} @${id} ${status} ${JSON.stringify([...received])} ${text}`);
      await wait(1);
      const isEmpty = [204, 304].includes(status);
      return new Response(isEmpty ? null : text, { status, headers: received });
    };

  async function sendToStorage(
    client: VirtualProcess,
    url: string,
    {
      method,
      headers,
      body,
    }: { method: string; headers: Record<string, string>; body: string | Uint8Array | undefined },
  ): Promise<Response> {
    const account = network
      .accountsFor(client)
      .find(({ connectionString }) => connectionString.includes(new URL(url).origin));
    if (!account) throw new TypeError('fetch failed');
    const request = createPipelineRequest({ url, method: method as 'GET', allowInsecureConnection: true });
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    if (body !== undefined) request.body = body;
    const reply = await account.httpClient.sendRequest(request);
    return new Response(reply.bodyAsText || null, { status: reply.status, headers: reply.headers.toJSON() });
  }

  async function happen(event: Event, nth: number): Promise<void> {
    switch (event.do) {
      case 'write': {
        const { step, client } = event;
        const entity = model.list.find(({ name }) => name === step.of);
        if (!entity) return;
        const begun = elapsed();
        const outcome = await callers[client]?.write(entity, step);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} ${step.do} ${outcome.code} ${outcome.message ?? ''}`);
        count(outcomes, `${step.do} ${outcome.code}`);
        history.addWrite(entity, step, { nth, begun, ended: elapsed(), outcome });
        return;
      }
      case 'read': {
        const entity = model.list.find(({ name }) => name === event.of);
        if (!entity) return;
        const begun = elapsed();
        const outcome = await callers[event.client]?.read(entity, event.key);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} read ${outcome.code}`);
        count(outcomes, `read ${outcome.code}`);
        history.addRead(entity, event.key, { nth, begun, ended: elapsed(), outcome });
        return;
      }
      case 'kill': {
        const victim = running[event.process];
        if (!victim) return;
        log(`${elapsed().toFixed(3)} killed ${victim.process.name}`);
        notice('process killed');
        victim.kill();
        await start(event.process);
        return;
      }
      case 'pause': {
        const sleeper = running[event.process]?.process;
        notice('process paused');
        if (sleeper) sleeper.asleepUntil = elapsed() + event.forMs;
        return;
      }
      case 'away':
        network.away.set(names[event.account] ?? '', elapsed() + event.forMs);
    }
  }

  const callers = Array.from({ length: CLIENTS }, (_, index) =>
    createCaller(
      createToken({ sub: `client${index}`, roles: model.roles }),
      fetchFrom(createProcess(`client${index}`), index),
    ),
  );

  /** Waits until the queues are empty. Throws if they are not in time. */
  async function comeToRest(process: VirtualProcess): Promise<void> {
    const storage = open(process);
    const queues = listParts(createEngine(storage, { queueParts: model.queueParts }));
    const end = elapsed() + AT_REST_WITHIN_MS;
    for (let quiet = 0; quiet < 2; ) {
      await wait(QUIET_POLL_MS);
      let left = 0;
      for (const queue of queues.flatMap((name) => [name, `${name}-poison`]))
        left += (await storage.queue(queue).getProperties()).approximateMessagesCount ?? 0;
      quiet = left === 0 ? quiet + 1 : 0;
      if (elapsed() > end)
        throw new Error(
          `${left} messages are left ${AT_REST_WITHIN_MS / 60_000} minutes after the last fault: ${logged.slice(-3).join(' | ')}`,
        );
    }
  }

  async function run(operator: VirtualProcess): Promise<string[]> {
    globalThis.fetch = async () => {
      await wait(3);
      return new Response(KEYS, { headers: { 'content-type': 'application/json' } });
    };
    const storage = open(operator);
    await provision(storage, resourcesOf(model.list, Date.now(), model));
    for (let index = 0; index < plan.processes; index += 1) await start(index);
    startTimerTriggers(() => running.filter(({ process }) => !process.isDead), createChance(seed, 'timers'));
    network.faults = plan.faults;
    const ended: Promise<void>[] = [];
    for (const { nth, at, event } of plan.events) {
      if (without?.has(nth)) continue;
      await wait(at - elapsed());
      ended.push(runIn(undefined, createChance(seed, 'event', nth), () => happen(event, nth)));
    }
    await Promise.all(ended);
    network.faults = NO_FAULTS;
    network.away.clear();
    const problems: string[] = [];
    try {
      await comeToRest(operator);
    } catch (error) {
      return [String(error)];
    }
    const keys = createLocalKeyRing(keyFile);
    const engine = createEngine(open(operator), { keys, queueParts: model.queueParts });
    const reader = openWorld(model, engine);
    for (const { entity, key } of history.keys()) {
      const begun = elapsed();
      const found = await callers[0]?.read(entity, key);
      if (found) history.addRead(entity, key, { nth: 0, begun, ended: elapsed(), outcome: found });
    }
    const { problems: unexplained, undecided } = history.check();
    problems.push(...unexplained);
    for (let nth = 0; nth < undecided; nth += 1) notice('history undecided');
    problems.push(...(await compareAll(reader, model.list, { steps: history.steps, isInOrder: false })));
    return problems;
  }

  return {
    run,
    report() {
      if (logFile) writeFileSync(logFile, `${lines.join('\n')}\n`);
      return {
        seed,
        modelName,
        hash: hash.digest('hex'),
        storageRequests: network.requests,
        appRequests,
        steps: countSteps(),
        virtualMs: elapsed(),
        outcomes,
        situations,
      };
    },
  };
}
