import { z } from 'zod';
import { isoInstant } from '../../base/time.ts';
import { omit } from '../../base/values.ts';
import { listPeriodTables, readModelState, readQueueStates } from '../../operations/overview.ts';
import { canVerify } from '../../operations/verify.ts';
import { listVerifyRuns, VerifyRun } from '../../operations/verify-run.ts';
import { readUsage } from '../../telemetry/metrics.ts';
import type { OperatorRoute } from '../route.ts';

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

export const overviewRoutes: readonly OperatorRoute[] = [
  {
    name: 'operations-queues',
    method: 'GET',
    path: 'operations/queues',
    summary: 'Get the length of the queues, and since when their messages wait',
    success: { status: 200, description: 'The queues', body: () => z.object({ items: z.array(Queue) }) },
    handle: async ({ app }) => {
      const queues = await readQueueStates(app.engine.storage);
      const items = queues.map(({ oldestWaitingSince, ...queue }) => ({
        ...queue,
        ...(oldestWaitingSince === undefined ? {} : { oldestWaitingSince: isoInstant(oldestWaitingSince) }),
      }));
      return { status: 200, body: { items } };
    },
  },
  {
    name: 'operations-model',
    method: 'GET',
    path: 'operations/model',
    summary: 'Get what changes of the model have left to do: indexes to build, rows to clean up',
    success: { status: 200, description: 'The stored entities', body: () => z.object({ items: z.array(EntityState) }) },
    handle: async ({ app }) => ({ status: 200, body: { items: await readModelState(app.engine, app.entities) } }),
  },
  {
    name: 'operations-checks',
    method: 'GET',
    path: 'operations/verify',
    summary: 'List the last weekly consistency check of each entity, if it had one, without its findings',
    success: { status: 200, description: 'The checks', body: () => z.object({ items: z.array(Run) }) },
    handle: async ({ app }) => {
      const runs = await listVerifyRuns(app.engine, app.entities.filter(canVerify));
      const items = runs.map(({ entity, run }) => ({ entity, ...(run && omit(run, ['findings'])) }));
      return { status: 200, body: { items } };
    },
  },
  {
    name: 'operations-usage',
    method: 'GET',
    path: 'operations/usage',
    summary:
      'Count the storage transactions of today by pattern, and the grants issued: those of one process of the app',
    success: { status: 200, description: 'The counts and an estimate of their cost', body: () => Usage },
    handle: async () => ({ status: 200, body: presentUsage(), headers: { 'cache-control': 'no-store' } }),
  },
];

export const periodTableRoute: OperatorRoute = {
  name: 'operations-period-tables',
  method: 'GET',
  path: 'operations/period-tables',
  summary: 'List the tables of periods with their age',
  success: { status: 200, description: 'The tables', body: () => z.object({ items: z.array(PeriodTable) }) },
  handle: async ({ app }) => {
    const tables = await listPeriodTables(app.engine, app.entities);
    return { status: 200, body: { items: tables.map((table) => ({ ...table, from: isoInstant(table.from) })) } };
  },
};

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
