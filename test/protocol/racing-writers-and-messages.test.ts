import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { RowkeyError, type Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { countHolds } from '../count-holds.ts';
import { employees, model } from '../fixtures/model.ts';
import { type Engine, engineConsume, engineReconcile, engineTransfer, engineWrite } from '../kit/engine.ts';
import { storageTables } from '../kit/storage.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { log } from '../silent-log.ts';
import { RACE_ACCOUNTS } from '../storage.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, rowsOf, type World } from '../world.ts';

/** The total number; SCHEDULES=100000 for a soak. */
const SCHEDULES = Number(process.env.SCHEDULES ?? (IS_EVERY_POINT ? 5_000 : 150));
/** Schedules that run concurrently on keys of their own and are checked together. */
const CONCURRENCY = 100;
const PROCESSES = 3;
const WHAT = 'Random schedule of writes, moves, archives and messages in three processes';
/**
 * Errors that callers can receive because of concurrent writers or a slow machine. The outcome of such a write may be
 * unknown; any other error is a defect.
 */
const EXPECTED = ['duplicate-key', 'duplicate-value', 'not-found', 'busy', 'storage-unavailable'];

let world: World;
const worlds: World[] = [];
beforeAll(async () => {
  const [first = '', ...further] = RACE_ACCOUNTS;
  worlds.push(await openWorld(import.meta.url, [], { queueParts: PROCESSES }));
  worlds.push(await openWorld(first, [], { queueParts: PROCESSES, further }));
});

const id = fc.integer({ min: 0, max: 2 });
const email = fc.constantFrom('a', 'b', 'c');
const lastName = fc.constantFrom('Xu', 'Yi');
const department = fc.constantFrom('East', 'West');
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant('create' as const), id, email, lastName, department }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('patch' as const), id, email, lastName, department }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('delete' as const), id, department }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('move' as const), id, department, to: department }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('archive' as const), id, department }) },
);
/** Several writers, each in a process and with its own list of steps. */
const schedule = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 3 });
type Schedule = typeof schedule extends fc.Arbitrary<infer Value> ? Value : never;
/** The treatment of the messages during a schedule. */
const delivery = fc.constantFrom('leave', 'once', 'twice concurrently', 'twice');
const schedules = fc.record({
  all: fc.array(schedule, { minLength: CONCURRENCY, maxLength: CONCURRENCY }),
  deliveries: fc.array(delivery, { minLength: 1, maxLength: 40 }),
});

let run = 0;
const holds = countHolds();

test(`keeps every index correct while writers race and messages arrive twice, late or out of order (${SCHEDULES} schedules)`, {
  tags: ['slow'],
  timeout: 7_200_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(schedules, ({ all, deliveries }) =>
      countTried({ what: WHAT, times: all.length }, async () => {
        // In turn in one storage account and in three.
        world = worlds[(run / CONCURRENCY) % worlds.length] as World;
        // One process settles its index entries itself, the others leave them to the queue. Each is of another release, with another number of
        // parts of the queues.
        const processes = Array.from({ length: PROCESSES }, (_, index) => ({
          ...world.engineThrough(httpClient),
          queueParts: index + 1,
          ...(index === 0 ? {} : { settleInline: 0 }),
        }));
        const acting = Promise.all(all.map((writers, index) => race(writers, run + index, processes)));
        run += all.length;
        const delivering = new AbortController();
        const delivery = deliver(['twice concurrently', 'once', ...deliveries], delivering.signal);
        const creates = await acting.finally(() => delivering.abort());
        await delivery;
        await world.settle();
        const live = await expectIndexesToAgree(world.storage, employees);
        const emails = live.map((values) => values.email);
        expect(new Set(emails).size).toBe(emails.length);
        await expectOneOfEach(live, creates.flat());
        await empty();
      }),
    ),
    { numRuns: Math.ceil(SCHEDULES / CONCURRENCY), endOnFailure: true },
  );
  expect(holds.counts.hidden).toBeGreaterThan(0);
  expect(holds.counts.immediate).toBeGreaterThan(0);
});

/** A create, identified by a first name that no other write changes. */
interface Create {
  readonly firstName: string;
  /** Identifies the entity in all of its incarnations and locations. */
  readonly who: string;
  readonly outcome: 'done' | 'refused' | 'unknown';
  /** True if a writer may have deleted the entity. */
  readonly isDeleted: boolean;
}

/** Runs the writers of a schedule on its own entities and returns the creates. */
async function race(writers: Schedule, number: number, processes: readonly Engine[]): Promise<Create[]> {
  const named = (one: Record<string, unknown>) => ({
    ...(one.department ? { department: `${one.department}${number}` } : {}),
    employeeId: `${String(number % 100_000).padStart(5, '0')}${one.id}`,
    ...(one.email ? { email: `${one.email}${number}@contoso.com`, lastName: `${one.lastName}${number}` } : {}),
  });
  const creates: Create[] = [];
  await Promise.all(
    writers.map(async (steps, index) => {
      const engine = processes[index % processes.length] ?? world.engine;
      for (const [position, one] of steps.entries()) {
        const firstName = `F${number}-${index}-${position}`;
        const values = { ...named(one), ...(one.does === 'create' ? { firstName } : {}) };
        const outcome = await act(engine, one, { values, to: `${'to' in one ? one.to : ''}${number}` }).then(
          () => 'done' as const,
          outcomeOf,
        );
        const isDeleted = writers.flat().some((other) => other.does === 'delete' && other.id === one.id);
        if (one.does === 'create') creates.push({ firstName, who: `${number}-${one.id}`, outcome, isDeleted });
      }
    }),
  );
  return creates;
}

/** Drops the checked entities, which would conflict with the next schedules. */
async function empty(): Promise<void> {
  for (const table of ['employees', 'employeesbyemail', 'employeesbyid', 'employeesbylastname', 'formeremployees']) {
    await storageTables.dropTable(world.storage, table);
    await storageTables.createTable(world.storage, table);
  }
}

async function act(
  engine: Engine,
  { does }: { does: string },
  { values, to }: { values: Values; to: string },
): Promise<unknown> {
  const { department: _, employeeId: __, ...change } = values;
  if (does === 'create') return engineWrite.createEntity(engine, employees, values);
  if (does === 'patch') return engineWrite.patchEntity(engine, employees, values, change);
  if (does === 'delete') return engineWrite.deleteEntity(engine, employees, values);
  if (does === 'archive') return engineTransfer.requestArchive(engine, employees, values);
  return engineTransfer.requestMove(engine, employees, values, { department: to });
}

/** Throws every error that a caller must not receive. */
function outcomeOf(error: unknown): 'refused' | 'unknown' {
  if (error instanceof RowkeyError && error.code === 'storage-unavailable') return 'unknown';
  if (!(error instanceof RowkeyError)) throw error;
  // A move to the department where the entity is.
  const isMoveToItself = error.code === 'invalid-input' && error.field === 'department';
  if (EXPECTED.includes(error.code) || isMoveToItself) return 'refused';
  throw error;
}

/** Handles messages concurrently with the writes, some of them twice or later, until the writes have ended. */
async function deliver(deliveries: readonly string[], signal: AbortSignal): Promise<void> {
  const consumer = {
    engine: world.engineThrough(holds.client),
    entities: model.list,
    log,
  };
  let turn = 0;
  while (!signal.aborted) {
    const how = deliveries[turn % deliveries.length];
    await sleep(5);
    for (const queue of engineReconcile.listParts(world.engine)) {
      const consume = engineConsume.consumerOf(queue);
      const client = world.storage.queue(queue);
      const { receivedMessageItems } = await client.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 1 });
      if (receivedMessageItems.length > 0) turn += 1;
      await Promise.all(
        receivedMessageItems.reverse().map(async ({ messageId: id, messageText, popReceipt, dequeueCount }) => {
          if (how === 'leave') return;
          const message = { queue, id, insertedAt: Date.now(), body: JSON.parse(messageText) };
          let attempts = dequeueCount - 1;
          const once = () =>
            holds
              .count(() => consume(consumer, { ...message, attempts: ++attempts }))
              .then(
                () => true,
                () => false,
              );
          const done = how === 'twice concurrently' ? await Promise.all([once(), once()]) : [await once()];
          if (how === 'twice') done.push(await once());
          if (done.every(Boolean)) await client.deleteMessage(id, popReceipt).catch(() => undefined);
        }),
      );
    }
  }
}

/**
 * Every created entity is in exactly one of the live table and the archive, unless it was deleted or replaced in the
 * archive by another entity with its key; a rejected create is in neither.
 */
async function expectOneOfEach(live: readonly Values[], creates: readonly Create[]): Promise<void> {
  const archived = await rowsOf(world.storage, 'formeremployees');
  for (const row of archived) expect(row.MovingFrom ?? '', 'an archived one left closed').toBe('');
  const there = Map.groupBy([...live, ...archived], ({ firstName }) => firstName);
  const lives = Map.groupBy(
    creates.filter(({ outcome }) => outcome !== 'refused'),
    ({ who }) => who,
  );
  for (const { firstName, who, outcome, isDeleted } of creates) {
    const times = there.get(firstName)?.length ?? 0;
    if (outcome === 'refused') expect(times, `${firstName}, who was refused`).toBe(0);
    else expect(times, `${firstName}, more than once`).toBeLessThanOrEqual(1);
    const isAlone = lives.get(who)?.length === 1;
    if (outcome === 'done' && !isDeleted && isAlone) expect(times, `${firstName}, who was created`).toBe(1);
  }
}
