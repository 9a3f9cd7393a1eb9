import { hash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDefaultHttpClient } from '@azure/core-rest-pipeline';
import { Option } from 'commander';
import pMap from 'p-map';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex, type Values } from '../lib/index.ts';
import { createMemoryStorage } from '../lib/testing/index.ts';
import { describeReport } from '../local/cli/accounts-command.ts';
import { createCommand, run } from '../local/cli/command.ts';
import { type Azurite, createEmulatorAccount, startAzurite } from '../local/instance/azurite.ts';
import { createQueueWorker } from '../local/walk/queue-worker.ts';
import { apiCalls } from './kit/api.ts';
import { baseValues } from './kit/base.ts';
import { type Engine, engineCore, engineRead, type Position } from './kit/engine.ts';
import type { Internal } from './kit/internal.ts';
import { operationsCheck, operationsModel, operationsMove } from './kit/operations.ts';
import { type Storage, storageAccounts, storageSlots, storageTables } from './kit/storage.ts';

/**
 * Adds a storage account to several ones while traffic runs, moves a part of the slots with movers that are killed at random calls, beside
 * writers that are killed, and compares everything.
 */

const access = { read: ['operator'], write: ['operator'] };
const text = z.string().max(40);

const employees = defineEntity('employees', {
  schema: z.object({ department: text, employeeId: text, email: text, name: text, round: z.number() }),
  table: 'employees',
  key: { partition: '{department}', row: 'id_{employeeId}' },
  indexes: {
    name: intraPartitionIndex({ row: 'name_{name}_{employeeId}' }),
    email: interPartitionIndex({ table: 'employeesbyemail', partition: '{email}', row: 'email', unique: true }),
  },
  access,
});
const readings = defineEntity('readings', {
  schema: z.object({ sensor: text, at: text, value: z.number() }),
  table: 'readings',
  key: { partition: '{sensor}', row: '{at}' },
  access,
});
const notes = defineEntity('notes', {
  schema: z.object({ noteId: text, topic: text, body: text }),
  table: 'notes',
  key: { partition: '{noteId}', row: 'note' },
  indexes: { topic: interPartitionIndex({ table: 'notesbytopic', partition: '{topic}', row: '{noteId}' }) },
  access,
});
const model = defineModel({ roles: ['operator'], operatorRole: 'operator', entities: [employees, readings, notes] });
type Model = typeof model;

interface Options {
  readonly storage: 'memory' | 'azurite';
  readonly accounts: number;
  readonly entities: number;
  readonly share: number;
  readonly kills: number;
  readonly late: number;
}

const LOAD_CONCURRENCY = 8;
const LOAD_ACTIONS = 80;
const CALLERS = 8;
const WRITERS = 2;
const HANDLE_EVERY_MS = 200;
const PAUSE_MS = 5;
const WRITER_LIVES_MS = 5_000;
/** The entity that a writer was writing when it died is busy until its message is handled, which is hidden for 45 seconds at first. */
const REPEATED_MS = 120_000;

/** Sends the requests of a process, which is killed at some call: it sends no other one and gets no reply. */
interface Process {
  /** Called before each request. */
  mayCall(): boolean;
  isDead(): boolean;
}
const IMMORTAL: Process = { mayCall: () => true, isDead: () => false };

/**
 * Accounts in memory, or each of an emulator of its own. That one writes to a folder: with data in its memory, it stalls after thousands of
 * deleted queue messages.
 */
async function openAccounts(kind: Options['storage'], names: readonly string[]) {
  const emulators: Azurite[] = [];
  const folder = kind === 'azurite' ? await mkdtemp(join(tmpdir(), 'move-drill-')) : '';
  const network = createDefaultHttpClient();
  const openAccount = async (account: string, index: number) => {
    if (kind === 'memory') return createMemoryStorage({ account });
    const served = createEmulatorAccount(randomBytes(64).toString('base64'), index);
    const azurite = await startAzurite({ folder: join(folder, account), accounts: [served] });
    emulators.push(azurite);
    return { connectionString: azurite.connectionString(), httpClient: network };
  };
  const accounts = await Promise.all(names.map(openAccount));
  const open = (count: number, process = IMMORTAL) =>
    storageAccounts.openStorage({
      accounts: accounts.slice(0, count).map(({ connectionString, httpClient }, index) => ({
        name: names[index] ?? '',
        connectionString,
        httpClient: {
          sendRequest: async (request) => {
            if (!process.mayCall()) throw new Error('This process is dead.');
            const reply = await httpClient.sendRequest(request);
            if (process.isDead()) throw new Error('This process is dead.');
            return reply;
          },
        },
      })),
    });
  const stop = async () => {
    await Promise.all(emulators.map((azurite) => azurite.stop()));
    if (folder) await rm(folder, { recursive: true });
  };
  return { open, stop };
}

async function drill({ storage: kind, accounts: count, entities, share, kills, late }: Options): Promise<void> {
  const names = ['first', ...Array.from({ length: count }, (_, index) => `account${index + 2}`)];
  const { open, stop } = await openAccounts(kind, names);
  const resources = operationsModel.resourcesOf(model.list, Date.now(), model);
  await storageTables.provision(open(count), resources);
  const loading = openApp(open(count));
  const loadedSince = performance.now();
  await load(loading.store, entities);
  console.log(`${entities} entities in ${count} accounts, written in ${seconds(loadedSince)} s.`);

  await storageTables.provision(open(count + 1), resources);
  const app = openApp(open(count + 1));
  const before = await contentsOf(app.engine);
  const traffic = startTraffic((process) => openApp(open(count + 1, process)).store, entities, kills);
  let isOver = false;
  const handle = async () => {
    while (!isOver) if ((await app.worker.handleVisible()) === 0) await sleep(HANDLE_EVERY_MS);
  };
  const handling = handle();
  const placements = await operationsMove.readPlacement(operationsMove.severalAccounts(open(count + 1)));
  console.log(`Before: ${describe(placements)}.`);
  const slots = chooseSlots(placements, share);

  const timing = { ...operationsMove.MOVE_TIMING, lateMs: late * 1_000, holdMs: 4_000 };
  const options = { timing, resources };
  const since = performance.now();
  let last: Internal['MoveReport'] | undefined;
  for (let killed = 0; !last; killed += 1) {
    let calls = killed < kills ? Math.ceil(Math.random() * (killed + 1) * slots.length) : Number.POSITIVE_INFINITY;
    const mayCall = () => {
      calls -= 1;
      return calls > 0;
    };
    const storage = open(count + 1, { mayCall, isDead: () => calls <= 0 });
    const work =
      killed === 0
        ? operationsMove.moveSlots(storage, [{ slots, to: names.at(-1) ?? '' }], options)
        : operationsMove.resumeMoves(storage, options);
    last = await work.catch((error: unknown) => {
      console.log(
        `Mover ${killed + 1} is dead after ${seconds(since)} s${baseValues.hasCode(error, 'busy') ? ': busy' : ''}.`,
      );
      return undefined;
    });
  }
  const took = seconds(since);
  const done = await traffic.end();
  isOver = true;
  await handling;
  await app.worker.settle();
  const placed = await operationsMove.readPlacement(operationsMove.severalAccounts(open(count + 1)));
  console.log(`After: ${describe(placed)}, in ${took} s.`);
  for (const line of describeReport(last)) console.log(`The last mover: ${line}`);
  console.log(
    `Traffic: ${done.requests} requests, ${done.failed} failed, ${done.repeated} repeated; ${done.killed} writers killed; requests took ${describeTimes(done.times)}.`,
  );
  const checkedSince = performance.now();
  const after = await contentsOf(openApp(open(count + 1)).engine);
  console.log(
    `Contents: ${before.size} entities that nobody changes, SHA-256 ${hashOf(before)} before, ${hashOf(after)} after.`,
  );
  const wrong = await compare(openApp(open(count + 1)), [before, after], done.known);
  console.log(
    wrong.length === 0 ? `Everything agrees, checked in ${seconds(checkedSince)} s.` : wrong.slice(0, 10).join('\n'),
  );
  if (wrong.length > 0 || done.failed > 0) process.exitCode = 1;
  await stop();
}

const hashOf = (contents: ReadonlySet<string>) => hash('sha256', [...contents].sort().join('\n')).slice(0, 16);

function describeTimes(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number) => Math.round(sorted[Math.ceil(part * sorted.length) - 1] ?? 0);
  return `${at(0.5)} ms (median), ${at(0.99)} ms (99 %), ${at(1)} ms (longest)`;
}

const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(1);

const describe = (placements: readonly Internal['Placement'][]) =>
  placements
    .map((placement) => `${placement.account.name} ${operationsMove.slotsIn(placement, 'at rest').length}`)
    .join(', ');

/** An equal number of slots of each account. */
function chooseSlots(placements: readonly Internal['Placement'][], share: number): string[] {
  const each = Math.round((share * storageSlots.SLOTS) / (placements.length - 1));
  return placements.flatMap((placement) => operationsMove.slotsIn(placement, 'at rest').slice(-each));
}

function openApp(storage: Storage) {
  const engine = engineCore.createEngine(storage);
  const store = apiCalls.createStore<Model['entities']>(model.list, {
    engine: async () => engine,
    record: (_, write) => write(),
  });
  const log = { warn: () => undefined, error: console.error };
  return { engine, store, worker: createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' }) };
}
type Store = ReturnType<typeof openApp>['store'];

/** Of 20 entities, 4 are employees, 13 readings and 3 notes. */
const EMPLOYEES_OF_20 = 4;
const READINGS_OF_20 = 13;
const employeeAt = (number: number) => 20 * Math.floor(number / EMPLOYEES_OF_20) + (number % EMPLOYEES_OF_20);

const PER_PARTITION = 100;
const employee = (index: number, round: number) => ({
  department: `d${Math.floor(index / 20 / PER_PARTITION)}-${index % 20}`,
  employeeId: String(index),
  email: `e${index}-${round % 3}@example.com`,
  name: `n${round % 5}`,
  round,
});

/** Creates the entities in batches, as an import does. */
async function load(store: Store, entities: number): Promise<void> {
  const all = Array.from({ length: entities }, (_, index) => index);
  const inKinds = Map.groupBy(all, (index) => kindOf(index));
  const people = (inKinds.get('employees') ?? []).map((index) => employee(index, 0));
  const values = (inKinds.get('readings') ?? []).map((index) => ({
    sensor: `s${Math.floor(index / 20 / PER_PARTITION)}-${index % 20}`,
    at: String(index),
    value: index / 2,
  }));
  const texts = (inKinds.get('notes') ?? []).map((index) => ({
    noteId: `n${index}`,
    topic: `t${index % 50}`,
    body: 'first',
  }));
  const work = [
    ...toBatches(people, ({ department }) => department).map((some) => () => store.employees.batch(toCreates(some))),
    ...toBatches(values, ({ sensor }) => sensor).map((some) => () => store.readings.batch(toCreates(some))),
    ...toBatches(texts, () => '').map((some) => () => store.notes.batch(toCreates(some))),
  ];
  await pMap(
    work,
    async (write) => {
      for (const outcome of await write()) if (outcome instanceof Error) throw outcome;
    },
    { concurrency: LOAD_CONCURRENCY },
  );
}

function kindOf(index: number): keyof Model['entities'] {
  const of20 = index % 20;
  if (of20 < EMPLOYEES_OF_20) return 'employees';
  return of20 < EMPLOYEES_OF_20 + READINGS_OF_20 ? 'readings' : 'notes';
}

const toCreates = <Item>(items: readonly Item[]) => items.map((create) => ({ create }));

function toBatches<Item>(items: readonly Item[], partitionOf: (item: Item) => string): Item[][] {
  return [...Map.groupBy(items, partitionOf).values()].flatMap((some) =>
    Array.from({ length: Math.ceil(some.length / LOAD_ACTIONS) }, (_, at) =>
      some.slice(at * LOAD_ACTIONS, (at + 1) * LOAD_ACTIONS),
    ),
  );
}

/** Callers that change their own employees, and create and delete notes, until they are ended. Their processes are killed one after another. */
function startTraffic(openStore: (process: Process) => Store, entities: number, kills: number) {
  const known = new Map<string, number>();
  const done = { requests: 0, failed: 0, repeated: 0, killed: 0, times: [] as number[], known };
  let isOver = false;
  const startWriter = () => {
    let isDead = false;
    const store = openStore({ mayCall: () => !isDead, isDead: () => isDead });
    const kill = () => {
      isDead = true;
    };
    return { store, kill, isDead: () => isDead };
  };
  const writers = Array.from({ length: WRITERS }, startWriter);
  const killing = setInterval(() => {
    if (done.killed === kills) return;
    const at = done.killed % WRITERS;
    writers[at]?.kill();
    writers[at] = startWriter();
    done.killed += 1;
  }, WRITER_LIVES_MS);
  /** Repeats what says that it can be repeated, and what was sent to a process that has died. */
  const request = async (caller: number, work: (store: Store, isRepeated: boolean) => Promise<unknown>) => {
    const until = performance.now() + REPEATED_MS;
    for (let attempt = 0; ; attempt += 1) {
      const writer = writers[caller % WRITERS];
      if (!writer) throw new Error('There is no writer.');
      try {
        return await work(writer.store, attempt > 0);
      } catch (error) {
        if (performance.now() > until || !(writer.isDead() || baseValues.hasCode(error, 'busy'))) throw error;
        done.repeated += 1;
        await sleep(Math.min(100 * 2 ** attempt, 2_000));
      }
    }
  };
  const employees = Math.floor(entities / 20) * EMPLOYEES_OF_20;
  const call = async (caller: number) => {
    for (let round = 1; !isOver; round += 1) {
      const index = employeeAt(caller + CALLERS * (round % Math.floor(employees / CALLERS)));
      const note = { noteId: `own${caller}`, topic: `t${round % 50}`, body: String(round) };
      const { department, employeeId, ...rest } = employee(index, round);
      // The reply of the first attempt may have been lost.
      const unlessDone = (code: 'duplicate-key' | 'not-found', isRepeated: boolean) => (error: unknown) => {
        if (!isRepeated || !baseValues.hasCode(error, code)) throw error;
      };
      const calls = [
        (store: Store) => store.employees.put({ department, employeeId }, rest),
        async (store: Store) => {
          const found = await store.employees.get({ department, employeeId });
          if (found?.values.round !== round)
            throw new Error(`Employee ${index} is of round ${found?.values.round}, not ${round}.`);
        },
        (store: Store, isRepeated: boolean) =>
          round % 2 === 1
            ? store.notes.create(note).catch(unlessDone('duplicate-key', isRepeated))
            : store.notes.delete({ noteId: note.noteId }).catch(unlessDone('not-found', isRepeated)),
      ];
      for (const [at, work] of calls.entries()) {
        const since = performance.now();
        done.requests += 1;
        try {
          await request(caller, work);
          if (at === 0) known.set(`${department}/${employeeId}`, round);
        } catch (error) {
          done.failed += 1;
          console.error(error);
        }
        done.times.push(performance.now() - since);
      }
      await sleep(PAUSE_MS);
    }
  };
  const running = Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
  return {
    async end() {
      isOver = true;
      clearInterval(killing);
      await running;
      return done;
    },
  };
}

type Entity = Model['list'][number];

async function* scan(engine: Engine, entity: Entity): AsyncGenerator<Values> {
  for (let after: Position | undefined; ; ) {
    const { items, next } = await engineRead.scanEntities(engine, entity, { top: 500, after });
    yield* items;
    after = next;
    if (!after) return;
  }
}

/** The entities that the traffic leaves alone. */
async function contentsOf(engine: Engine): Promise<Set<string>> {
  const found = new Set<string>();
  for (const entity of model.list)
    if (entity.name !== 'employees')
      for await (const values of scan(engine, entity))
        if (!String(values.noteId).startsWith('own')) found.add(`${entity.name} ${JSON.stringify(values)}`);
  return found;
}

async function compare(
  { engine }: ReturnType<typeof openApp>,
  [before, after]: readonly [ReadonlySet<string>, ReadonlySet<string>],
  known: Map<string, number>,
) {
  const wrong: string[] = [];
  for (const entity of before) if (!after.has(entity)) wrong.push(`${entity} is lost.`);
  for (const entity of after) if (!before.has(entity)) wrong.push(`${entity} is new.`);
  const [people] = model.list;
  for await (const { department, employeeId, round } of people ? scan(engine, people) : []) {
    const wanted = known.get(`${department}/${employeeId}`) ?? 0;
    if (round !== wanted) wrong.push(`Employee ${department}/${employeeId} is of round ${round}, not ${wanted}.`);
  }
  await pMap(model.list, async (entity) => {
    for (let position: Parameters<typeof operationsCheck.verifyPage>[2]['position']; ; ) {
      const page = await operationsCheck.verifyPage(engine, entity, { position, top: 500, repair: false, patience: 0 });
      wrong.push(...page.findings.map((finding) => JSON.stringify(finding)));
      position = page.next;
      if (!position) break;
    }
  });
  return wrong;
}

const toNumber = (given: string) => Number(given);
await run(
  createCommand('Moves a part of the data to a new storage account, beside traffic and with killed movers and writers.')
    .addOption(
      new Option('--storage <kind>', 'memory, or an emulator that is started')
        .choices(['memory', 'azurite'])
        .default('memory'),
    )
    .option('--accounts <number>', 'accounts at first', toNumber, 3)
    .option('--entities <number>', 'entities at first', toNumber, 3_000)
    .option('--share <number>', 'the part of the slots that moves', toNumber, 0.25)
    .option('--kills <number>', 'how many movers, and how many writers, are killed', toNumber, 3)
    .option(
      '--late <seconds>',
      'how long a mover waits for late requests; storage on this machine has few',
      toNumber,
      1,
    )
    .action(drill),
);
