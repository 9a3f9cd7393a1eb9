import { z } from 'zod';
import type { Operation } from '../../api/operation.ts';
import { isoInstant } from '../../base/time.ts';
import { omit } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { listPeriodTables, readModelState, readQueueStates } from '../../operations/overview.ts';
import { canVerify } from '../../operations/verify.ts';
import { listVerifyRuns, VerifyRun } from '../../operations/verify-run.ts';
import { readUsage } from '../../telemetry/metrics.ts';
import { bind, listOf } from '../bind.ts';
import { NO_STORE, type Route } from '../route.ts';

/** What operators see at a glance. No response has a key or a value of an entity. */

const Count = z.int().min(0);
const Queue = z.object({
  queue: z.string(),
  messages: Count.describe('An estimate of storage, which includes hidden messages: reminders and delayed messages'),
  oldestWaitingSince: z.iso.datetime().optional().describe('Absent if no message waits for a consumer'),
});
const PeriodTable = z.object({
  entity: z.string(),
  table: z.string().describe('As the account names it'),
  period: z.string().describe('A day, a month or a year, in UTC'),
  from: z.iso.datetime().describe('When the period began'),
  isDue: z.boolean().describe('Past retention: the next run of the timer archives or deletes it'),
});
const EntityState = z.object({
  entity: z.string(),
  isDeclared: z.boolean().describe('False if the model no longer has the entity, whose rows still exist'),
  version: z.int(),
  unbuilt: z.array(z.string()).describe('Indexes and copies that are not yet built from the existing entities'),
  leftOver: z.array(z.string()).describe('Former indexes whose rows still exist'),
});
const Run = VerifyRun.omit({ findings: true }).partial().extend({ entity: z.string() });
const Usage = z.object({
  since: z.iso.datetime().describe('When counting began: at midnight in UTC, or when the process started'),
  transactions: Count,
  dollars: z.number().describe('An estimate at list prices of US regions'),
  patterns: z.array(z.object({ pattern: z.string(), operation: z.string(), transactions: Count, dollars: z.number() })),
  grants: z.array(z.object({ entity: z.string(), issued: Count })),
});

/** Dollars for 10,000 transactions, late 2026, US regions, locally redundant. */
const PRICES: readonly (readonly [start: string, dollars: number])[] = [
  ['table', 0.00036],
  ['queue', 0.0004],
  ['blob GET', 0.004],
  ['blob HEAD', 0.004],
  ['blob', 0.05],
];

export function overviewRoutes(entities: readonly Entity[], operatorRole: string): Route[] {
  const overview = (path: string, { description, headers = {}, ...operation }: Overview): Route =>
    bind(
      { ...operation, kind: 'read', roles: [operatorRole] },
      {
        method: 'GET',
        path: `operations/${path}`,
        success: { status: 200, description },
        read: () => undefined,
        present: (body) => ({ status: 200, headers, body }),
      },
    );
  const routes = [
    overview('queues', {
      name: 'operations-queues',
      summary: 'Get the length of the queues, and since when their messages wait',
      description: 'The queues',
      output: () => listOf(Queue),
      async run({ engine }) {
        const queues = await readQueueStates(engine.storage);
        const items = queues.map(({ oldestWaitingSince, ...queue }) => ({
          ...queue,
          ...(oldestWaitingSince === undefined ? {} : { oldestWaitingSince: isoInstant(oldestWaitingSince) }),
        }));
        return { items };
      },
    }),
    overview('model', {
      name: 'operations-model',
      summary: 'Get what changes of the model have left to do: indexes to build, rows to clean up',
      description: 'The stored entities',
      output: () => listOf(EntityState),
      run: async ({ engine }) => ({ items: await readModelState(engine, entities) }),
    }),
    overview('verify', {
      name: 'operations-checks',
      summary: 'List the last weekly consistency check of each entity, if it had one, without its findings',
      description: 'The checks',
      output: () => listOf(Run),
      async run({ engine }) {
        const runs = await listVerifyRuns(engine, entities.filter(canVerify));
        return { items: runs.map(({ entity, run }) => ({ entity, ...(run && omit(run, ['findings'])) })) };
      },
    }),
    overview('usage', {
      name: 'operations-usage',
      summary:
        'Count the storage transactions of today by pattern, and the grants issued: those of one process of the app',
      description: 'The counts and an estimate of their cost',
      headers: NO_STORE,
      output: () => Usage,
      run: async () => presentUsage(),
    }),
  ];
  if (!entities.some(({ period }) => period)) return routes;
  const periodTables = overview('period-tables', {
    name: 'operations-period-tables',
    summary: 'List the tables of periods with their age',
    description: 'The tables',
    output: () => listOf(PeriodTable),
    async run({ engine }) {
      const tables = await listPeriodTables(engine, entities);
      return { items: tables.map((table) => ({ ...table, from: isoInstant(table.from) })) };
    },
  });
  return [...routes, periodTables];
}

interface Overview extends Omit<Operation<undefined, object>, 'kind' | 'roles'> {
  /** What the response has. */
  readonly description: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function presentUsage(): z.infer<typeof Usage> {
  const { since, transactions, grants } = readUsage();
  const patterns = transactions.map(({ pattern, operation, count }) => ({
    pattern,
    operation,
    transactions: count,
    dollars: estimate(operation, count),
  }));
  return {
    since: isoInstant(since),
    transactions: sum(patterns.map((one) => one.transactions)),
    dollars: sum(patterns.map(({ dollars }) => dollars)),
    patterns,
    grants: grants.map(({ entity, count }) => ({ entity, issued: count })),
  };
}

function estimate(operation: string, count: number): number {
  const [, price = 0] = PRICES.find(([start]) => operation.startsWith(start)) ?? [];
  return (count * price) / 10_000;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
