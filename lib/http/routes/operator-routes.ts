import { z } from 'zod';
import { GRANTS } from '../../access/grant.ts';
import { canReadKeys } from '../../access/rule.ts';
import type { Operation, View } from '../../api/operation.ts';
import { readQuestion, WhyQuestion, why } from '../../api/why.ts';
import { DAY_MS, isoInstant } from '../../base/time.ts';
import { omit } from '../../base/values.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { LinkedModel } from '../../define/define-model.ts';
import {
  dropPoison,
  listPoison,
  POISON_TABLE,
  Poison,
  PoisonFilter,
  replayPage,
  replayPoison,
} from '../../engine/consume/poison.ts';
import { ChangeRecord } from '../../engine/note-change.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { readChanges } from '../../operations/audit-log.ts';
import { readIndexUse } from '../../operations/index-use.ts';
import { listPeriodTables, readModelState, readQueueStates } from '../../operations/overview.ts';
import { canVerify } from '../../operations/verify.ts';
import { listVerifyRuns, VerifyRun } from '../../operations/verify-run.ts';
import { readUsage } from '../../telemetry/metrics.ts';
import { bind, bindPage, listOf } from '../bind.ts';
import { PAGE_QUERY, queryError } from '../query.ts';
import { NO_STORE, type RequestContext, type Route } from '../route.ts';
import { accountsRoute } from './accounts-route.ts';
import { heatRoute } from './heat-route.ts';

/** The routes of operators that belong to no entity. */
export function operatorRoutes(model: Pick<LinkedModel, 'list' | 'operatorRole' | 'blocksUsers'>): Route[] {
  const { list: entities, operatorRole } = model;
  return [
    ...overviewRoutes(entities, operatorRole),
    heatRoute(entities, operatorRole),
    accountsRoute(operatorRole),
    ...poisonRoutes(entities, operatorRole),
    auditRoute(entities, operatorRole),
    bind(why(model), {
      method: 'POST',
      path: 'operations/why',
      success: { status: 200, description: 'The decisions' },
      read: async (context) => readQuestion(entities, parse(WhyQuestion, await context.json())),
    }),
  ];
}

/** What operators see at a glance. No response has a key or a value of an entity. */

const Count = z.int().min(0);
const Queue = z.object({
  queue: z.string(),
  messages: Count.describe('An estimate of storage, which includes hidden messages: reminders and delayed messages'),
  oldestWaitingSince: z.iso.datetime().optional().describe('Absent if no message waits for a consumer'),
});
const Away = z
  .array(z.string())
  .optional()
  .describe('The storage accounts that do not respond, whose items are missing; absent if all respond');
/** What a list says beside its items. */
const sayAway = (away: readonly string[]) => (away.length > 0 ? { away } : {});
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
const IndexUse = z.object({
  entity: z.string(),
  index: z.string(),
  kind: z.enum(['index', 'list', 'totals']),
  reads: Count.describe('By one process of the app, since it started'),
  countedSince: z.iso
    .date()
    .optional()
    .describe('When a process of the app first remembered its reads; absent in the first minutes'),
  lastReadOn: z.iso
    .date()
    .optional()
    .describe('The day of the last read by any process, which may be some minutes late; absent without one'),
  neededFor: z.array(z.string()).describe('What it is for besides reads'),
  transactions: Count.optional().describe(
    'To its table today, by one process of the app, with reads; absent if its rows are written in the transactions of the entity',
  ),
  isUnread: z.boolean().describe('Not read for 35 days, and needed for nothing else'),
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

function overviewRoutes(entities: readonly Entity[], operatorRole: string): Route[] {
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
      output: () => z.object({ items: z.array(Queue), away: Away }),
      async run({ engine }) {
        const { items: queues, away } = await readQueueStates(engine);
        const items = queues.map(({ oldestWaitingSince, ...queue }) => ({
          ...queue,
          ...(oldestWaitingSince === undefined ? {} : { oldestWaitingSince: isoInstant(oldestWaitingSince) }),
        }));
        return { items, ...sayAway(away) };
      },
    }),
    overview('model', {
      name: 'operations-model',
      summary: 'Get what changes of the model have left to do: indexes to build, rows to clean up',
      description: 'The stored entities',
      output: () => listOf(EntityState),
      run: async ({ engine }) => ({ items: await readModelState(engine, entities) }),
    }),
    overview('indexes', {
      name: 'operations-indexes',
      summary: 'List the indexes and totals with their reads and costs, to find those that nobody reads',
      description: 'The indexes',
      headers: NO_STORE,
      output: () => listOf(IndexUse),
      async run({ engine }) {
        const found = await readIndexUse(engine, entities);
        return {
          items: found.map(({ entity, countedSince, lastReadOn, transactions, ...use }) => ({
            entity: entity.name,
            ...use,
            ...(countedSince === undefined ? {} : { countedSince }),
            ...(lastReadOn === undefined ? {} : { lastReadOn }),
            ...(transactions === undefined ? {} : { transactions }),
          })),
        };
      },
    }),
    overview('verify', {
      name: 'operations-checks',
      summary: 'List the last regular consistency check of each entity, if it had one, without its findings',
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
    output: () => z.object({ items: z.array(PeriodTable), away: Away }),
    async run({ engine }) {
      const { items, away } = await listPeriodTables(engine, entities);
      return { items: items.map((table) => ({ ...table, from: isoInstant(table.from) })), ...sayAway(away) };
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

const PATH = 'operations/poison';

/** Without the text if the caller may not see the keys of entities and indexes in it. */
const VisiblePoison = Poison.partial({ text: true });
const Sent = Poison.pick({ id: true, queue: true });
const About = z.object({ entity: z.string() });

function poisonRoutes(entities: readonly Entity[], operatorRole: string): Route[] {
  const roles = [operatorRole];
  const readId = ({ params }: RequestContext) => ({ id: params.id ?? '' });
  return [
    bindPage(
      {
        name: 'operations-poison-list',
        summary: 'List messages that could not be handled, newest first',
        kind: 'read',
        roles,
        output: () => z.object({ items: z.array(VisiblePoison), away: Away }),
        async run({ engine, caller }, { top, after }: PageOptions) {
          const { items, more, away } = await listPoison(engine, { limit: top, after: after?.row });
          const last = items.at(-1);
          const visible = items.map((item) => hideText(entities, caller, item));
          return { items: visible, ...sayAway(away), next: more && last ? { row: last.id } : undefined };
        },
      },
      { path: PATH, query: PAGE_QUERY, success: { status: 200, description: 'A page of messages' } },
    ),
    bind(
      {
        name: 'operations-poison-replay',
        summary: 'Send a message to its queue again and remove it from the list',
        kind: 'write',
        roles,
        output: () => Sent,
        run: async ({ engine }, { id }: { readonly id: string }) => Sent.parse(await replayPoison(engine, id)),
      },
      { method: 'POST', path: `${PATH}/{id}/replay`, success: { status: 202, description: 'Sent' }, read: readId },
    ),
    bindPage(
      {
        name: 'operations-poison-replays',
        summary:
          'Send a page of messages to their queues again, filtered by queue or by text of the reason, and remove them from the list',
        kind: 'write',
        roles,
        input: () => PoisonFilter,
        output: () => z.object({ replayed: z.array(z.string()), failed: z.array(z.string()), away: Away }),
        async run({ engine }, { top, after, queue, reason }: PageOptions & z.infer<typeof PoisonFilter>) {
          const page = { queue, reason, limit: top, after: after?.row };
          const { replayed, failed, last, more, away } = await replayPage(engine, page);
          return { replayed, failed, ...sayAway(away), next: more && last ? { row: last } : undefined };
        },
      },
      {
        method: 'POST',
        path: `${PATH}/replays`,
        query: PAGE_QUERY,
        success: { status: 202, description: 'The ids of the messages sent' },
        read: async (context) => parse(PoisonFilter, await context.json()),
      },
    ),
    bind(
      {
        name: 'operations-poison-drop',
        summary: 'Delete a message from the list',
        kind: 'write',
        roles,
        run: ({ engine }, { id }: { readonly id: string }) => dropPoison(engine, id),
      },
      { method: 'DELETE', path: `${PATH}/{id}`, success: { status: 204, description: 'Deleted' }, read: readId },
    ),
  ];
}

function hideText(entities: readonly Entity[], caller: View['caller'], poison: Poison): z.infer<typeof VisiblePoison> {
  const isVisible = !caller || canReadKeys(entities, entityNameIn(poison.text), caller);
  return isVisible ? poison : VisiblePoison.parse(omit(poison, ['text']));
}

/** Every message of this app names its entity. */
function entityNameIn(text: string): string | undefined {
  try {
    return About.safeParse(JSON.parse(text)).data?.entity;
  } catch {
    return undefined;
  }
}

/** Without the key if the caller may not see it. */
const VisibleChange = ChangeRecord.partial({ partition: true, row: true });
/** The keys of these records have no values of entities. No entity has such a name. */
const OF_THE_ENGINE = [GRANTS, POISON_TABLE];
const Instant = z.iso.datetime({ offset: true });
/** An offset can move an instant out of these years, and the names of the blobs have years of four digits. */
const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00Z');
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');
const MAX_DAYS = 31;

interface AuditInput extends PageOptions {
  /** Milliseconds; `from` inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
}

function auditRoute(entities: readonly Entity[], operatorRole: string): Route {
  return bindPage(
    {
      name: 'operations-audit',
      summary:
        'List the changes made through this API: who, what and when; with the keys of entities that the caller may read, without values',
      kind: 'read',
      roles: [operatorRole],
      output: () => listOf(VisibleChange),
      async run({ engine, caller }, { from, to, after, top }: AuditInput) {
        const { items, next } = await readChanges(engine, { from, to, after, limit: top });
        const isVisible = ({ entity }: ChangeRecord) =>
          !caller || OF_THE_ENGINE.includes(entity) || canReadKeys(entities, entity, caller);
        return { items: items.map((item) => (isVisible(item) ? item : omit(item, ['partition', 'row']))), next };
      },
    },
    {
      path: 'operations/audit',
      query: {
        from: 'Start, an ISO instant; required',
        to: `End, an ISO instant, exclusive, at most ${MAX_DAYS} days after from; required`,
        ...PAGE_QUERY,
      },
      success: { status: 200, description: 'A page of changes' },
      read(context) {
        const [from, to] = [readInstant(context, 'from'), readInstant(context, 'to')];
        if (from >= to) throw queryError('to', 'must be after from', 'an instant after from');
        if (to - from > MAX_DAYS * DAY_MS)
          throw queryError('to', 'is too long after from', `at most ${MAX_DAYS} days after from`);
        return { from, to };
      },
    },
  );
}

function readInstant({ query }: RequestContext, name: 'from' | 'to'): number {
  const text = query.get(name);
  const instant = Instant.safeParse(text).success ? Date.parse(text ?? '') : Number.NaN;
  if (instant >= FIRST_INSTANT && instant <= LAST_INSTANT) return instant;
  const accepted = 'an ISO instant such as 2026-11-20T09:00:00Z, in UTC from year 0000 to year 9999';
  throw queryError(name, text === null ? 'is required' : 'is not an instant', accepted);
}
