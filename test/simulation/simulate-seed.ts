import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createPipelineRequest, RestError } from '@azure/core-rest-pipeline';
import { compareAll } from '../../local/walk/compare-answers.ts';
import { openWorld } from '../../local/walk/walk-world.ts';
import { injectionsInto } from '../injecting/injections-into.ts';
import { readRows, restore } from '../injecting/stored-rows.ts';
import { relatedTo, tryInjection } from '../injecting/try-injection.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import { engineConsume, engineCore, engineReconcile } from '../kit/engine.ts';
import type { Internal } from '../kit/internal.ts';
import { operationsBackup, operationsCheck, operationsModel, operationsMove } from '../kit/operations.ts';
import { storageKeys, storageTables } from '../kit/storage.ts';
import { createAuditOracle } from './audit-oracle.ts';
import { writesBesideRekey } from './backup-drills.ts';
import { type Cuts, createBackupOracle } from './backup-oracle.ts';
import { createBulkImport } from './bulk-import.ts';
import { createCaller } from './caller.ts';
import { createClientEvents, entityOf, isLimited, nameOf } from './client-events.ts';
import { CLIENTS, type Event, STEWARD_CLIENT, type Stops } from './event.ts';
import { placeForeignRows, takeForeignRows } from './foreign-rows.ts';
import { createHistory } from './history.ts';
import { LIMITED } from './models.ts';
import { requestPages } from './operator-requests.ts';
import { workOnAccounts } from './operators.ts';
import type { Plan } from './plan.ts';
import { createRulesOracle } from './rules-oracle.ts';
import { BUILT, STEWARD } from './small-model.ts';
import { type AppProcess, startProcess } from './world/app-process.ts';
import { type Chance, createChance } from './world/chance.ts';
import { withDamagedBlock } from './world/damaged-block.ts';
import { createKeyFile } from './world/key-file.ts';
import { BACKUP_ACCOUNT, createNetwork, MOST_HELD_MS, MOST_LATE_MS, NO_FAULTS, OPENED_AGAIN } from './world/network.ts';
import { startTimerTriggers } from './world/timer-triggers.ts';
import { createToken, KEYS } from './world/tokens.ts';
import {
  countSteps,
  createProcess,
  driveWorld,
  ENDLESS,
  elapsed,
  processorTime,
  resetWorld,
  runIn,
  type VirtualProcess,
  VirtualTimer,
  wait,
} from './world/virtual-world.ts';
import { createWorldBackup, openAccounts } from './world-backup.ts';

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
  /** The moments that were restored, and how many changes have no line in the journal. */
  readonly cuts: Pick<Cuts, 'cuts' | 'withoutLine'>;
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
const HOUR_MS = 60 * baseValues.MINUTE_MS;
const REKEY_WRITES = 8;
/** A move to another key takes about so long. */
const REKEY_DIES_MS = 72_000;
/** Longer than a model keeps anything. */
const RETENTION_MS = 800 * 24 * HOUR_MS;
const QUIET_POLL_MS = 10_000;
/** The lease of a mover that has died lasts for less. */
const RESUME_AFTER_MS = 60_000;
const RESUMES = 5;
/** The process dies that replays a message, right before it sends it. */
const DIES_AT_REPLAY = { scene: -1, request: 'send message', nth: 1, end: 'dies before', forMs: 0 } as const;
/** An operator asks so often for what fails. */
const MOST_ATTEMPTS = 40;
/** What others wait for if no request closes a trap. */
const TRAP_WITHIN_MS = 15_000;
/** What a writer waits for if no operator comes. */
const MOVE_WITHIN_MS = 130_000;
/** A message of a host that died returns after ten minutes, and the work after it takes moments. */
const AT_REST_WITHIN_MS = 25 * 60_000;

/** Each request for the delete of a large family has an operation of its own. */
const isOfEntities = (table: string) => !/^operations\d/.test(table);

/** Operators move rows, and change none. */
const isWriter = ({ name }: VirtualProcess) => name.startsWith('p');

/** Lets a world happen. */
export async function simulateSeed(plan: Plan, options: Options): Promise<Report> {
  resetWorld();
  const begun = processorTime();
  const world = createWorldOf(plan, options);
  const outside = createProcess('operator');
  const driven = runIn(outside, createChance(plan.seed, 'main'), () => driveWorld(() => world.run(outside)));
  const problems = await driven.catch((error: Error) => {
    if (error.message !== ENDLESS) throw error;
    return [ENDLESS];
  });
  return { ...world.report(), problems, processorMs: processorTime() - begun };
}

function createWorldOf(plan: Plan, { keyFile: givenKeys, without, logFile }: Options) {
  const { seed, modelName } = plan;
  let model = plan.former ?? plan.model;
  const keyFile = createKeyFile(givenKeys);
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
  const backedUp =
    plan.backup &&
    createBackupOracle(operationsBackup.tablesInBackup(model.list), () => notice('backup: row of a dropped table'));
  let cuts: Report['cuts'] = { cuts: 0, withoutLine: 0 };
  const network = createNetwork({
    accounts: names,
    clocksMs: plan.backup?.clocksMs,
    hasBackup: plan.backup !== undefined,
    ...(backedUp && {
      onExecuted: (by, request, response) =>
        isWriter(by.process) ? backedUp.noteExecuted(by, request, response) : undefined,
      onSent: (_, operation, request) => {
        if (request.method === 'DELETE' && request.url.includes('/messages/'))
          backedUp.rely(operation, 'the end of a message');
        if (request.method === 'POST' && request.url.includes('/messages'))
          backedUp.noteMessage(operation, String(request.body));
      },
    }),
    log,
    notice,
    canStop: (process) => running.some((one) => one.process === process && !process.isDead),
    kill: (process) => void runIn(undefined, createChance(seed, 'trapped', process.name), () => replace(process)),
  });
  /** When the first trap of each scene has closed. */
  const scenes = new Map<number, Promise<void>>();
  const history = createHistory();
  const running: AppProcess[] = [];
  const logged: string[] = [];
  let appRequests = 0;
  const miscounted: string[] = [];
  const violations: string[] = [];
  const rules = plan.user === undefined ? undefined : createRulesOracle(plan.user);
  const audit = createAuditOracle();
  const grows = plan.events.some(({ nth, event }) => event.do === 'grow' && !without?.has(nth));
  /** How many accounts the app knows: all of them, unless one is added. */
  let known = grows ? plan.accountsAtFirst : plan.accounts;
  const operatorToken = createToken({ sub: 'operator', roles: model.roles });
  const resources = () => operationsModel.resourcesOf(model.list, Date.now(), model);
  let generation = 0;
  /** Copies of rows are where they do not belong: of an abort that failed, or of slots whose last rows could not be copied in time. */
  let hasLeftCopies = false;
  const noteLeft = (report: Internal['MoveReport'] | undefined) => {
    if (report && report.left.length > 0) hasLeftCopies = true;
  };

  const open = (process: VirtualProcess) => {
    return openAccounts(network.accountsFor(process));
  };

  const { openBackup, workOnBackup, takeSnapshot, restoreCuts, restorePlaces } = createWorldBackup({
    ...{ seed, network, backedUp, log, notice },
    model: () => model,
    known: () => known,
    keyFile: keyFile.file,
  });

  async function start(index: number): Promise<void> {
    generation += 1;
    const process = createProcess(`p${index}.${generation}`, plan.aheadMs[index]);
    running[index] = await startProcess(process, {
      ...{ seed, model, network, keyFile: keyFile.file, accounts: known, idlePollMs: plan.idlePollMs, spoils },
      log: (line) => {
        log(`${elapsed().toFixed(3)} ${process.name} logged ${line}`);
        logged.push(line);
      },
    });
  }

  /** How many messages of indexes are still to spoil. */
  let toSpoil = 0;
  const spoils = (queue: string) => {
    if (toSpoil === 0 || !queue.startsWith(engineReconcile.INDEX_CHANGES_QUEUE)) return false;
    toSpoil -= 1;
    notice('message that cannot succeed');
    return true;
  };

  /** Requests what an operator asks for, page by page. */
  async function operate(path: string, nth: number): Promise<boolean> {
    const [what = ''] = path.split('/');
    const isDone = await requestPages(path, {
      send: fetchFrom(createProcess('verifier'), nth),
      token: operatorToken,
      onPage: () => notice(`page of ${what}`),
    });
    if (!isDone) notice(`${what} fails`);
    return isDone;
  }

  /** Requests all pages of what an operator needs, and each again that fails. Throws if one fails too often. */
  async function operateUntilDone(path: string): Promise<void> {
    const [what = ''] = path.split('/');
    let failures = 0;
    await requestPages(path, {
      // Another process answers after a failure.
      send: (...given) => fetchFrom(createProcess('operator'), failures)(...given),
      token: operatorToken,
      onPage: () => notice(`page of ${what}`),
      again: async (response) => {
        failures += 1;
        if (failures > MOST_ATTEMPTS) throw new Error(`${path} fails too often: ${await response?.text()}`);
        await wait(QUIET_POLL_MS);
        return true;
      },
    });
  }

  /** Kills a process, and starts another one. */
  async function replace(process: VirtualProcess | undefined): Promise<void> {
    const index = running.findIndex((one) => one.process === process);
    if (index < 0) return;
    log(`${elapsed().toFixed(3)} killed ${process?.name}`);
    notice('process killed');
    running[index]?.kill();
    await start(index);
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
      const request = JSON.stringify([index, headers['idempotency-key'] ?? [method, path, String(sent)]]);
      const onBegun = (by: Chance) => backedUp?.begin(by, request);
      const { response, storageRequests, operation } = await target.request(method, path, {
        ...{ headers, body: sent, onBegun },
      });
      const { status = 200, headers: replied, body: content } = response;
      // Whatever storage and the network do, it is no mistake of the app.
      if (status === 500) violations.push(`request ${id}, ${method} ${path}, is answered by ${status}`);
      if (status < 300) {
        backedUp?.rely(operation, `the response to request ${id}, ${method} ${path}`);
        const found = `request ${id}, ${method} ${path},`;
        if (method === 'DELETE') backedUp?.relyOnFound(operation, found, isOfEntities);
        else if (method !== 'GET') backedUp?.relyOnFound(operation, found);
      }
      const received = new Headers(replied as Record<string, string>);
      const said = /desc="(\d+) transaction/.exec(received.get('server-timing') ?? '')?.[1];
      // What rules hide is not in the cost either.
      if (said !== undefined && !isLimited(plan, index) && Number(said) !== storageRequests)
        miscounted.push(
          `request ${id}, ${method} ${path}, cost ${storageRequests} storage requests, and its response says ${said}`,
        );
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
      case 'write':
      case 'read':
      case 'grant':
      case 'list':
      case 'transact':
      case 'continue':
        return happenToClient(event, nth);
      case 'kill': {
        await replace(running[event.process]?.process);
        return;
      }
      case 'pause': {
        const sleeper = running[event.process]?.process;
        notice('process paused');
        if (sleeper) sleeper.asleepUntil = elapsed() + event.forMs;
        return;
      }
      case 'away':
        network.away.set(names[event.account] ?? BACKUP_ACCOUNT, elapsed() + event.forMs);
        return;
      case 'snapshot':
        return takeSnapshot(`snapshot${nth}`, event);
      case 'carry':
        await workOnBackup(`carry${nth}`, event.diesAt, async ({ engine }) => {
          if ((await operationsBackup.carryLines(engine)).carried > 0) notice('backup: lines that wait');
          return true;
        });
        return;
      case 'import':
        return bulkImport(event, nth);
      case 'grow': {
        notice('account added');
        known = plan.accounts;
        for (const [index, former] of running.entries()) {
          former.kill();
          await start(index);
        }
        return;
      }
      case 'deploy': {
        model = plan.model;
        for (const [index, former] of running.entries()) {
          former.kill();
          await start(index);
          await wait(event.apartMs);
        }
        notice('release beside an earlier one');
        // What the earlier release has sent may arrive until then.
        await wait(MOST_LATE_MS + MOST_HELD_MS);
        for (const path of BUILT) await operateUntilDone(`reindex/${path}?top=5`);
        return;
      }
      case 'operate': {
        const process = createProcess(`operator${nth}`);
        if (event.diesAfterMs !== undefined)
          new VirtualTimer(() => {
            notice(`operator killed during ${event.work}`);
            process.isDead = true;
            void runIn(undefined, createChance(seed, 'succeeds', nth), () => resumeLater(nth));
          }, event.diesAfterMs);
        const given = { storage: open(process), to: names[event.to] ?? '', options: { resources: resources() } };
        const work = workOnAccounts(event.work, { ...given, chance: createChance(seed, 'operate', nth) });
        // It does not end if its process dies.
        void runIn(process, createChance(seed, 'operator', nth), () => work).then(
          (report) => {
            noteLeft(report);
            notice(`operator: ${event.work}`);
          },
          (error: unknown) => {
            log(`${elapsed().toFixed(3)} event ${nth} ${event.work}: ${error}`);
            // A mover whose last copies waited for a clock may have opened slots again before it failed.
            if (event.work === 'abort' || plan.backup) hasLeftCopies = true;
            void runIn(undefined, createChance(seed, 'succeeds', nth), () => resumeLater(nth));
          },
        );
        return;
      }
      case 'verify': {
        await stop(entityOf(plan, event.of), event);
        await operate(`verify/${event.of}?top=50&repair=true`, nth);
        return;
      }
      case 'upkeep':
        await stop(entityOf(plan, event.of), event);
        await operate(`${event.work}/${[event.of, event.index].filter(Boolean).join('/')}?top=5`, nth);
        return;
      case 'rotate':
        keyFile.rotate(createChance(seed, 'rotate', nth));
        notice('operator: rotate');
        return;
      case 'spoil':
        toSpoil += 1;
        return;
      case 'replay':
        await operate('poison/replays?top=2', nth);
        return;
    }
  }

  async function happenAll(events: Plan['events'], from: number): Promise<void> {
    const ended: Promise<void>[] = [];
    for (const { nth, at, event } of events) {
      if (without?.has(nth)) continue;
      await wait(from + at - elapsed());
      ended.push(runIn(undefined, createChance(seed, 'event', nth), () => happen(event, nth)));
    }
    await Promise.all(ended);
  }

  /** Waits until an event is to begin, and sets its traps. */
  async function stop(entity: Entity | undefined, { afterOperatorMs, after, traps = [] }: Stops): Promise<void> {
    if (entity && afterOperatorMs !== undefined) {
      await network.passOperator(entity.table, MOVE_WITHIN_MS);
      await wait(afterOperatorMs);
    }
    if (after) {
      await Promise.race([scenes.get(after.scene), wait(TRAP_WITHIN_MS)]);
      await wait(after.ms);
    }
    for (const trap of entity ? traps : []) {
      const closed = network.setTrap(trap, entity?.table ?? '');
      if (!after && !scenes.has(trap.scene)) scenes.set(trap.scene, closed);
    }
  }

  const happenToClient = createClientEvents({
    ...{ plan, history, audit, rules, log, notice, stop },
    callers: () => callers,
    count: (outcome) => void count(outcomes, outcome),
    violate: (problem) => void violations.push(problem),
  });

  const bulkImport = createBulkImport({
    ...{ plan, network, history, rules, log, notice },
    ...{ model: () => model, known: () => known, keyFile: keyFile.file, backedUp: backedUp || undefined },
    violate: (problem) => void violations.push(problem),
  });

  /** Operations wait for a slot that is closed, until somebody ends its move. */
  async function resumeLater(nth: number): Promise<void> {
    for (let attempt = 1; attempt <= RESUMES; attempt += 1) {
      await wait(RESUME_AFTER_MS);
      const process = createProcess(`successor${nth}.${attempt}`);
      const chance = createChance(seed, 'successor', nth, attempt);
      const work = runIn(process, chance, () => operationsMove.resumeMoves(open(process), { resources: resources() }));
      const isDone = await work.then(
        (report) => {
          noteLeft(report);
          return true;
        },
        () => false,
      );
      if (isDone) return notice('successor of an operator');
    }
  }

  const rolesOf = (index: number) =>
    index === STEWARD_CLIENT ? [STEWARD] : model.roles.filter((role) => role !== LIMITED.role && role !== STEWARD);
  const callers = Array.from({ length: STEWARD_CLIENT + 1 }, (_, index) =>
    createCaller(
      createToken({ sub: nameOf(plan, index), roles: isLimited(plan, index) ? [LIMITED.role] : rolesOf(index) }),
      fetchFrom(createProcess(nameOf(plan, index)), index),
    ),
  );

  /** Waits until the queues are empty. Throws if they are not in time. */
  async function comeToRest(): Promise<void> {
    const storage = openAccounts(network.direct);
    const queues = engineReconcile.listParts(engineCore.createEngine(storage, { queueParts: model.queueParts }));
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

  /** Sends the messages again that could not succeed, and waits for their work. Throws if another message is poison. */
  async function replayAll(): Promise<void> {
    toSpoil = 0;
    const engine = engineCore.createEngine(openAccounts(network.direct));
    const other = logged.find((line) => / is poison: (?!The process stopped at every attempt)/.test(line));
    if (other) throw new Error(other);
    for (let attempt = 1; (await engineConsume.listPoison(engine, { limit: 1 })).items.length > 0; attempt += 1) {
      if (attempt > RESUMES) throw new Error('Messages are poison after they were replayed.');
      if (attempt === 1 && createChance(seed, 'dies').isTrue(0.5)) void network.setTrap(DIES_AT_REPLAY, '');
      await operate('poison/replays', attempt);
      await comeToRest();
    }
  }

  /** Ends what operators have left, and deletes what slots have left at their former accounts. */
  async function endMoves(process: VirtualProcess): Promise<void> {
    noteLeft(await operationsMove.resumeMoves(open(process), { resources: resources() }));
    await wait(operationsMove.MOVE_TIMING.leaseMs + operationsMove.MOVE_TIMING.lateMs);
    await operationsMove.cleanUp(open(process), {
      resources: resources(),
      timing: { ...operationsMove.MOVE_TIMING, keepMs: 0 },
    });
  }

  /** Changes a row of each kind by hand. Each injury has to be found, and repaired or left to a person, and no answer may get worse. */
  async function injure(world: ReturnType<typeof openWorld>): Promise<string[]> {
    const rows = await readRows(world, model.list);
    const wrong: string[] = [];
    // Other values of an entity are no injury, unless they break its schema.
    const possible = injectionsInto(model.list, rows).filter(({ what }) => what !== 'entity');
    const chance = createChance(seed, 'injuries');
    for (const some of Map.groupBy(possible, ({ title }) => title.split(':')[0]).values()) {
      const injection = chance.pick(some);
      try {
        const outcome = await tryInjection(world, relatedTo(model.list, injection.entity), injection);
        if (outcome) notice('row changed by hand');
        wrong.push(...(outcome?.violations ?? []).map((text) => `${injection.title}: ${text}`));
      } catch (error) {
        // Another row has the key that the copy would have.
        if (!(error instanceof RestError && error.statusCode === 409)) throw error;
      }
      await restore(world, model.list, rows);
    }
    return wrong;
  }

  /** Deploys a release in which an entity has another key, and moves its entities, while clients write and processes die. */
  async function changeKey(rekeyed: Plan['model']): Promise<void> {
    const chance = createChance(seed, 'rekey');
    model = rekeyed;
    for (const [index, former] of running.entries()) {
      former.kill();
      await start(index);
    }
    const apart = (ms: number, work: () => Promise<unknown>) =>
      runIn(undefined, chance, () => wait(ms).then(work)).catch(() => undefined);
    const beside = [
      ...writesBesideRekey(chance, REKEY_WRITES).map(({ ms, step }) =>
        apart(ms, async () => {
          const entity = model.list.find(({ name }) => name === step.of);
          if (entity) await callers[chance.below(CLIENTS)]?.write(entity, step);
        }),
      ),
      apart(chance.between(0, REKEY_DIES_MS), () => takeSnapshot('snapshot9000', { diesAt: [], forMs: HOUR_MS })),
      apart(chance.between(REKEY_DIES_MS / 2, REKEY_DIES_MS), () => replace(running[0]?.process)),
    ];
    for (const { name } of model.list.filter(({ formerKey }) => formerKey))
      await operateUntilDone(`rekey/${name}?top=5`);
    await Promise.all(beside);
    notice('backup: another key');
    await comeToRest();
  }

  /** Lets a process whose clock is far ahead delete what has expired, and drop tables. */
  async function passRetention(): Promise<void> {
    const late = createProcess('p.late', RETENTION_MS);
    const log = (line: string) => logged.push(line);
    const app = await startProcess(late, { seed, model, network, keyFile: keyFile.file, accounts: known, log });
    for (const name of ['expire', 'roll-periods']) await app.runTimer(name);
    app.kill();
    notice('backup: retention is over');
    await comeToRest();
  }

  /** Compares moments with the histories, and restores some of them. */
  async function checkBackup({ cuts: most, restores, rekeyed }: NonNullable<Plan['backup']>): Promise<string[]> {
    try {
      if (rekeyed) await changeKey(rekeyed);
      await passRetention();
    } catch (error) {
      return [`At the end: ${error}`];
    }
    const { storage, backup } = openBackup(undefined);
    const restored = await restoreCuts(storage, backup, most);
    if (!restored) return [];
    cuts = restored;
    for (let nth = 0; nth < cuts.withoutLine; nth += 1) notice('backup: change without a line');
    return restored.problems.length > 0 ? [...restored.problems] : restorePlaces(restored, restores);
  }

  async function run(operator: VirtualProcess): Promise<string[]> {
    globalThis.fetch = async () => {
      await wait(3);
      return new Response(KEYS, { headers: { 'content-type': 'application/json' } });
    };
    const all = openAccounts(network.direct);
    const needed = operationsModel.resourcesOf(plan.model.list, Date.now(), plan.model);
    await storageTables.provision(plan.backup ? { ...all, backup: openBackup(undefined).backup } : all, needed);
    if (plan.hasForeignRows) await placeForeignRows(network.direct);
    // A cut is of the time after the first snapshot.
    if (plan.backup) await takeSnapshot('snapshot0', { diesAt: [], forMs: HOUR_MS });
    for (let index = 0; index < plan.processes; index += 1) await start(index);
    startTimerTriggers(() => running.filter(({ process }) => !process.isDead), createChance(seed, 'timers'));
    network.faults = plan.faults;
    const {
      first = [],
      then = [],
      atRest = [],
    } = Object.groupBy(plan.events, ({ event, isAtRest }) => {
      if (isAtRest) return 'atRest';
      return event.do === 'import' ? 'first' : 'then';
    });
    await happenAll(first, 0);
    await happenAll(then, first.length > 0 ? elapsed() : 0);
    network.faults = NO_FAULTS;
    network.away.clear();
    const problems: string[] = [];
    try {
      for (const events of atRest.length > 0 ? [atRest, []] : [[]]) {
        if (plan.accounts > 1) await endMoves(operator);
        await comeToRest();
        await replayAll();
        await happenAll(events, elapsed());
      }
    } catch (error) {
      return [String(error)];
    }
    if (plan.hasForeignRows) {
      notice('rows of another program');
      problems.push(...(await takeForeignRows(network.direct)));
    }
    const keys = storageKeys.createLocalKeyRing(keyFile.file);
    const accounts = withDamagedBlock(network.direct, () => notice('block of an archive damaged'));
    const engine = engineCore.createEngine(openAccounts(accounts), { keys, queueParts: model.queueParts });
    const reader = openWorld(model, engine);
    for (const { entity, key } of history.keys()) {
      const begun = elapsed();
      const found = await callers[0]?.read(entity, key);
      if (found) history.addRead(entity, key, { nth: 0, begun, ended: elapsed(), outcome: found });
    }
    const { problems: unexplained, undecided } = history.check();
    const now = Date.now();
    const changes = { from: now - elapsed() - HOUR_MS, to: now + HOUR_MS, limit: Number.MAX_SAFE_INTEGER };
    const { items } = await operationsCheck.readChanges(engine, changes);
    problems.push(...unexplained, ...miscounted, ...violations, ...audit.check(items));
    for (let nth = 0; nth < undecided; nth += 1) notice('history undecided');
    const compare = () => compareAll(reader, model.list, { steps: history.steps, isInOrder: false });
    const compared = await compare().catch((error: Error) => {
      // The table is kept then, and archived again.
      if (!/^The archive .* differs from its table/.test(error.message)) throw error;
      return compare();
    });
    problems.push(...compared);
    if (problems.length === 0 && plan.isInjured) problems.push(...(await injure(reader)));
    if (plan.backup) problems.push(...(await checkBackup(plan.backup)));
    return hasLeftCopies || situations.has(OPENED_AGAIN)
      ? problems.filter((problem) => !/ has a row of /.test(problem))
      : problems;
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
        cuts: { cuts: cuts.cuts, withoutLine: cuts.withoutLine },
        virtualMs: elapsed(),
        outcomes,
        situations,
      };
    },
  };
}
