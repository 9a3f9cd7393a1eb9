import { z } from 'zod';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import {
  defineEntity,
  defineModel,
  interPartitionIndex,
  intraPartitionIndex,
  memberOf,
  subject,
} from '../../lib/define.ts';
import { formatTable } from './format-plan.ts';
import { format, formatDollars, type Plan, planCapacity } from './plan.ts';
import type { Published } from './published.ts';

/** The apps of docs/costs.md: how many of an entity are stored, and how many reads, writes and files there are in a month. */
interface SmallApp {
  readonly name: string;
  readonly entities: readonly Entity[];
  readonly loads: Readonly<Record<string, Load>>;
  readonly files: Files;
}

/** The number of stored entities, and the reads and writes of a month. */
type Load = readonly [count: number, reads: number, writes: number];

interface Files {
  readonly count: number;
  readonly megabytes: number;
  /** Those of a month, which are read from storage by a signature or from a cache. */
  readonly uploads: number;
  readonly views: number;
}

const MONTH_S = 730 * 3_600;
const BACKUP_DAYS = 35;
/** The defaults of `npm run capacity`. */
const ASSUMED = { bytes: 1_000, readCpu: 2.5, writeCpu: 10, utilization: 0.6, memory: 2 };

const id = z.uuid();
const text = z.string();
const own = [{ role: 'user', where: { userId: subject() } }] as const;
const roles = { roles: ['user', 'operator'], operatorRole: 'operator', signedIn: 'user' } as const;
const toList = (table: string, row: string) => interPartitionIndex({ table, partition: 'all', row });
const photo = (container: string) => ({ photo: { container, maxBytes: 5_000_000, types: ['image/jpeg'] as const } });

const people = defineEntity('people', {
  schema: z.object({ userId: text, name: text }),
  table: 'people',
  key: { partition: '{userId}', row: 'person' },
  access: { read: ['operator', ...own], write: own },
});
const tools = defineEntity('tools', {
  schema: z.object({ toolId: id, name: text }),
  table: 'tools',
  key: { partition: '{toolId}', row: 'tool' },
  indexes: { all: toList('toollist', '{name}_{toolId}') },
  attachments: photo('toolphotos'),
  access: { read: ['user'], write: ['operator'] },
});
const loans = defineEntity('loans', {
  schema: z.object({ toolId: id, loanId: id, userId: text, due: z.iso.date(), returned: z.iso.date().optional() }),
  table: 'tools',
  key: { partition: '{toolId}', row: 'loan_{loanId}' },
  indexes: {
    open: intraPartitionIndex({ row: 'open_{toolId}', when: ({ returned }) => returned === undefined }),
    borrower: interPartitionIndex({ table: 'loansbyborrower', partition: '{userId}', row: '{due}_{toolId}_{loanId}' }),
  },
  references: { toolId: { to: tools, onDelete: 'refuse' } },
  access: { read: ['operator', ...own], write: own },
});
const club = defineModel({ ...roles, entities: [people, tools, loans] });

const jobs = defineEntity('jobs', {
  schema: z.object({ userId: text, day: z.iso.date(), jobId: id, customerId: id, state: text }),
  table: 'jobs',
  key: { partition: '{userId}', row: 'job_{day}_{jobId}' },
  indexes: {
    customer: interPartitionIndex({
      table: 'jobsbycustomer',
      partition: '{customerId}',
      row: '{day}_{userId}_{jobId}',
    }),
  },
  access: { read: ['operator', ...own], write: ['operator', ...own] },
});
const pictures = defineEntity('pictures', {
  schema: z.object({ userId: text, day: z.iso.date(), jobId: id, pictureId: id }),
  table: 'jobs',
  key: { partition: '{userId}', row: 'job_{day}_{jobId}_picture_{pictureId}' },
  childOf: jobs,
  attachments: photo('jobphotos'),
  access: { read: ['operator', ...own], write: ['operator', ...own] },
});
const fieldService = defineModel({ ...roles, entities: [jobs, pictures] });

const members = defineEntity('members', {
  schema: z.object({ tenantId: id, userId: text, email: z.email() }),
  table: 'tenants',
  key: { partition: '{tenantId}', row: 'member_{userId}' },
  indexes: {
    userId: interPartitionIndex({ table: 'tenantsofusers', partition: '{userId}', row: '{tenantId}' }),
    email: interPartitionIndex({ table: 'membersbyemail', partition: '{email#}', row: '{email}', unique: true }),
  },
  access: { read: ['operator', ...own], write: ['operator'] },
});
const inTenant = [{ role: 'user', where: { tenantId: memberOf(members, 'tenantId') } }] as const;
const tasks = defineEntity('tasks', {
  schema: z.object({ tenantId: id, taskId: id, state: text, assignee: text }),
  table: 'tenants',
  key: { partition: '{tenantId}', row: 'task_{taskId}' },
  indexes: {
    state: intraPartitionIndex({ row: 'state_{state}_{taskId}' }),
    assignee: interPartitionIndex({ table: 'tasksbyassignee', partition: '{assignee}', row: '{tenantId}_{taskId}' }),
  },
  attachments: photo('taskfiles'),
  access: { read: inTenant, write: inTenant },
});
const service = defineModel({ ...roles, entities: [members, tasks] });

const APPS: readonly SmallApp[] = [
  {
    name: 'Tool library of a club: 200 people',
    entities: club.list,
    // Each person looks eight times a month, with five reads, and borrows twice.
    loads: { people: [200, 1_600, 20], tools: [600, 4_800, 30], loans: [10_000, 1_600, 800] },
    files: { count: 600, megabytes: 0.5, uploads: 30, views: 20_000 },
  },
  {
    name: 'Field service: 50 technicians',
    entities: fieldService.list,
    // Eight jobs on 21 days, each with ten reads, four writes and three pictures; a year is stored.
    loads: { jobs: [100_800, 84_000, 33_600], pictures: [302_400, 25_200, 25_200] },
    files: { count: 302_400, megabytes: 1, uploads: 25_200, views: 50_400 },
  },
  {
    name: 'Service for teams: 20,000 users',
    entities: service.list,
    // 4,000 users on 22 days, each with 40 reads and six writes.
    loads: { members: [20_000, 176_000, 1_000], tasks: [2_000_000, 3_344_000, 527_000] },
    files: { count: 200_000, megabytes: 1, uploads: 10_000, views: 200_000 },
  },
];

/** Returns the table of docs/costs.md. All sums are those of a month in US dollars. */
export function formatSmallApps(published: Published): string {
  const columns = APPS.map((app) => [app.name, ...costsOf(app, published)]);
  const labels = ['A month', ...LABELS];
  const rows = labels.map((label, row) => [label, ...columns.map((column) => column[row] ?? '')]);
  return formatTable(rows[0] ?? [], rows.slice(1));
}

const LABELS = [
  'Requests to the app',
  'Transactions in tables, queues and blobs',
  'Rows and index entries',
  'Files',
  'Tables and queues',
  'Files, with their uploads and views',
  'Audit log',
  'Functions, after the free grant',
  '**Together**',
  `A backup of ${BACKUP_DAYS} days, before compression`,
  '**With the backup**',
];

function costsOf({ entities, loads, files }: SmallApp, published: Published): string[] {
  const { prices } = published;
  const rates = entities.flatMap((entity) => {
    const [count, reads, writes] = loads[entity.name] ?? [];
    return count ? [{ entity, count, reads: (reads ?? 0) / MONTH_S, writes: (writes ?? 0) / MONTH_S }] : [];
  });
  const plan = planCapacity(rates, ASSUMED, published);
  const backedUp = planCapacity(rates, { ...ASSUMED, backup: BACKUP_DAYS }, published);
  const filesGigabytes = (files.count * files.megabytes) / 1_000;
  const kept = filesGigabytes * prices.blobGigabyte.value;
  const uploads = (files.uploads * prices.blobWrites.value) / 10_000;
  const filesCost = kept + uploads + (files.views * prices.blobReads.value) / 10_000;
  const together = sum(plan) + filesCost;
  // A backup reads each new file once and writes its copy.
  const backup = sum(backedUp) - sum(plan) + kept + uploads + (files.uploads * prices.blobReads.value) / 10_000;
  const blobs = files.uploads + files.views;
  return [
    format(rates.reduce((all, { reads, writes }) => all + reads + writes, 0) * MONTH_S),
    format((plan.requests.tables + plan.requests.queues + plan.requests.blobs) * MONTH_S + blobs),
    `${format(plan.gigabytes)} GB`,
    `${format(filesGigabytes)} GB`,
    ...[sum(plan, /tables$|queues$/), filesCost, sum(plan, /audit log/), sum(plan, /memory|executions$/)].map(
      formatDollars,
    ),
    `**${formatDollars(together)}**`,
    formatDollars(backup),
    `**${formatDollars(together + backup)}**`,
  ];
}

function sum({ costs }: Plan, of = /./): number {
  return costs.reduce((total, { what, amount }) => total + (of.test(what) ? amount : 0), 0);
}
