import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { z } from 'zod';
import { hasCode } from '../lib/base/errors.ts';
import type { Values } from '../lib/base/values.ts';
import { interPartitionIndex, intraPartitionIndex } from '../lib/define/declaration/indexes.ts';
import { defineEntity } from '../lib/define/define-entity.ts';
import { defineModel } from '../lib/define-model.ts';
import { createEngine, type Engine } from '../lib/engine/engine.ts';
import type { Position } from '../lib/engine/read/continuation.ts';
import { scanEntities } from '../lib/engine/read/retrieve.ts';
import { moveSlots, resumeMoves } from '../lib/operations/move-slots.ts';
import { type Placement, readPlacement, severalAccounts, slotsIn } from '../lib/operations/placement.ts';
import { resourcesOf } from '../lib/operations/resources.ts';
import { MOVE_TIMING, type MoveReport } from '../lib/operations/slot-mover.ts';
import { verifyPage } from '../lib/operations/verify.ts';
import { provision } from '../lib/storage/provision.ts';
import { SLOTS } from '../lib/storage/slots.ts';
import { openStorage, type Storage } from '../lib/storage/storage.ts';
import { createStore } from '../lib/store/store.ts';
import { createMemoryStorage } from '../lib/testing/memory-storage.ts';
import { describeReport } from '../local/cli/accounts-command.ts';
import { createCommand, run } from '../local/cli/command.ts';
import { createQueueWorker } from '../local/walk/queue-worker.ts';

/**
 * Adds a storage account to several ones in memory while traffic runs, moves a part of the slots with movers that are killed at random
 * calls, and compares everything.
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
  readonly accounts: number;
  readonly entities: number;
  readonly share: number;
  readonly kills: number;
  readonly late: number;
}

const LOAD_CONCURRENCY = 16;
const CALLERS = 8;
const DEPARTMENTS = 40;
const PAUSE_MS = 5;

async function drill({ accounts: count, entities, share, kills, late }: Options): Promise<void> {
  const names = ['first', ...Array.from({ length: count }, (_, index) => `account${index + 2}`)];
  const memories = names.map((account) => createMemoryStorage({ account }));
  const open = (accounts: number, mayCall = () => true) =>
    openStorage({
      accounts: memories.slice(0, accounts).map(({ connectionString, httpClient }, index) => ({
        name: names[index] ?? '',
        connectionString,
        httpClient: {
          sendRequest: async (request) => {
            if (!mayCall()) throw new Error('This process is dead.');
            return httpClient.sendRequest(request);
          },
        },
      })),
    });
  const resources = resourcesOf(model.list, Date.now(), model);
  await provision(open(count), resources);
  const { store: loading } = openApp(open(count));
  const keys = Array.from({ length: entities }, (_, index) => index);
  await pMap(keys, (index) => load(loading, index), { concurrency: LOAD_CONCURRENCY });

  await provision(open(count + 1), resources);
  const app = openApp(open(count + 1));
  const traffic = startTraffic(app.store, entities);
  const placements = await readPlacement(severalAccounts(open(count + 1)));
  console.log(`Before: ${describe(placements)}.`);
  const before = await contentsOf(app.engine);
  const slots = chooseSlots(placements, share);

  const timing = { ...MOVE_TIMING, lateMs: late * 1_000, holdMs: 4_000 };
  const options = { timing, resources };
  const reports: MoveReport[] = [];
  const since = performance.now();
  for (let killed = 0; ; killed += 1) {
    let calls = killed < kills ? Math.ceil(Math.random() * (killed + 1) * slots.length) : Number.POSITIVE_INFINITY;
    const storage = open(count + 1, () => {
      calls -= 1;
      return calls > 0;
    });
    const work =
      killed === 0 ? moveSlots(storage, [{ slots, to: names.at(-1) ?? '' }], options) : resumeMoves(storage, options);
    const report = await work.catch((error: unknown) => {
      console.log(`Mover ${killed + 1} is dead after ${seconds(since)} s${hasCode(error, 'busy') ? ': busy' : ''}.`);
    });
    if (!report) continue;
    reports.push(report);
    break;
  }
  const took = seconds(since);
  const done = await traffic.end();
  await app.worker.settle();
  const placed = await readPlacement(severalAccounts(open(count + 1)));
  console.log(`After: ${describe(placed)}, in ${took} s.`);
  for (const report of reports) for (const line of describeReport(report)) console.log(`The last mover: ${line}`);
  console.log(
    `Traffic: ${done.requests} requests, ${done.failed} failed; the slowest write took ${Math.round(done.slowest)} ms.`,
  );
  const wrong = await compare(openApp(open(count + 1)), before, done.known);
  console.log(wrong.length === 0 ? 'Everything agrees.' : wrong.slice(0, 10).join('\n'));
  if (wrong.length > 0 || done.failed > 0) process.exitCode = 1;
}

const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(1);

const describe = (placements: readonly Placement[]) =>
  placements.map((placement) => `${placement.account.name} ${slotsIn(placement, 'at rest').length}`).join(', ');

/** An equal number of slots of each account. */
function chooseSlots(placements: readonly Placement[], share: number): string[] {
  const each = Math.round((share * SLOTS) / (placements.length - 1));
  return placements.flatMap((placement) => slotsIn(placement, 'at rest').slice(-each));
}

function openApp(storage: Storage) {
  const engine = createEngine(storage);
  const store = createStore<Model['entities']>(model.list, {
    engine: async () => engine,
    record: (_, write) => write(),
  });
  const log = { warn: () => undefined, error: console.error };
  return { engine, store, worker: createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' }) };
}
type Store = ReturnType<typeof openApp>['store'];

const employee = (index: number, round: number) => ({
  department: `d${index % DEPARTMENTS}`,
  employeeId: String(index),
  email: `e${index}-${round % 3}@example.com`,
  name: `n${round % 5}`,
  round,
});

async function load({ employees: people, readings: values, notes: texts }: Store, index: number): Promise<void> {
  if (index % 3 === 0) await people.create(employee(index, 0));
  else if (index % 3 === 1) await values.create({ sensor: `s${index % 7}`, at: String(index), value: index / 2 });
  else await texts.create({ noteId: `n${index}`, topic: `t${index % 50}`, body: 'first' });
}

/** Callers that change their own employees, and create and delete notes, until they are ended. */
function startTraffic(store: Store, entities: number) {
  const known = new Map<string, number>();
  const done = { requests: 0, failed: 0, slowest: 0, known };
  let isOver = false;
  const call = async (caller: number) => {
    for (let round = 1; !isOver; round += 1) {
      const index = 3 * (caller + CALLERS * (round % Math.floor(entities / 3 / CALLERS)));
      const since = performance.now();
      const note = { noteId: `own${caller}`, topic: `t${round % 50}`, body: String(round) };
      const { department, employeeId, ...rest } = employee(index, round);
      const calls = [
        () => store.employees.put({ department, employeeId }, rest),
        async () => {
          const found = await store.employees.get({ department, employeeId });
          if (found?.values.round !== round)
            throw new Error(`Employee ${index} is of round ${found?.values.round}, not ${round}.`);
        },
        () => (round % 2 === 1 ? store.notes.create(note) : store.notes.delete({ noteId: note.noteId })),
      ];
      for (const [at, work] of calls.entries()) {
        done.requests += 1;
        try {
          await retry(work);
          if (at === 0) known.set(`${department}/${employeeId}`, round);
        } catch (error) {
          done.failed += 1;
          console.error(error);
        }
      }
      done.slowest = Math.max(done.slowest, performance.now() - since);
      await sleep(PAUSE_MS);
    }
  };
  const running = Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
  return {
    async end() {
      isOver = true;
      await running;
      return done;
    },
  };
}

/** As the clients do: what says that it can be repeated is repeated. */
async function retry(work: () => Promise<unknown>, attempts = 5): Promise<unknown> {
  return work().catch(async (error: unknown) => {
    if (attempts === 0 || !hasCode(error, 'busy')) throw error;
    await sleep(100);
    return retry(work, attempts - 1);
  });
}

type Entity = Model['list'][number];

async function* scan(engine: Engine, entity: Entity): AsyncGenerator<Values> {
  for (let after: Position | undefined; ; ) {
    const { items, next } = await scanEntities(engine, entity, { top: 500, after });
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
  before: ReadonlySet<string>,
  known: Map<string, number>,
) {
  const wrong: string[] = [];
  const after = await contentsOf(engine);
  for (const entity of before) if (!after.has(entity)) wrong.push(`${entity} is lost.`);
  for (const entity of after) if (!before.has(entity)) wrong.push(`${entity} is new.`);
  const [people] = model.list;
  for await (const { department, employeeId, round } of people ? scan(engine, people) : []) {
    const wanted = known.get(`${department}/${employeeId}`) ?? 0;
    if (round !== wanted) wrong.push(`Employee ${department}/${employeeId} is of round ${round}, not ${wanted}.`);
  }
  for (const entity of model.list) {
    for (let position: Parameters<typeof verifyPage>[2]['position']; ; ) {
      const page = await verifyPage(engine, entity, { position, top: 500, repair: false, patience: 0 });
      wrong.push(...page.findings.map((finding) => JSON.stringify(finding)));
      position = page.next;
      if (!position) break;
    }
  }
  return wrong;
}

const toNumber = (given: string) => Number(given);
await run(
  createCommand('Moves a part of the data to a new storage account in memory, beside traffic and with killed movers.')
    .option('--accounts <number>', 'accounts at first', toNumber, 3)
    .option('--entities <number>', 'entities at first', toNumber, 3_000)
    .option('--share <number>', 'the part of the slots that moves', toNumber, 0.25)
    .option('--kills <number>', 'how many movers are killed', toNumber, 3)
    .option('--late <seconds>', 'how long a mover waits for late requests; memory has none', toNumber, 1)
    .action(drill),
);
