import { Cron } from 'croner';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { ROWS_OF_PART } from '../../lib/operations/backup/snapshot.ts';
import { TIMERS } from '../../lib/register-functions.ts';
import { costOfEntity } from './entity-cost.ts';
import type { Published } from './published.ts';

/** Sizes a load under the published targets. All rates are per second, all sums per month in US dollars. */

interface Load {
  readonly entity: Entity;
  /** How many entities are stored. */
  readonly count: number;
  readonly reads: number;
  readonly writes: number;
}

/** What the model cannot say. */
interface Assumptions {
  /** Bytes of one entity as stored. */
  readonly bytes: number;
  /** Milliseconds of CPU for a read and for a write, of an instance with one core. */
  readonly readCpu: number;
  readonly writeCpu: number;
  /** The part of an instance's CPU that is planned for. */
  readonly utilization: number;
  /** Gigabytes of an instance, which decide its part of a core. */
  readonly memory: number;
  /** Days for which a backup is kept. 0 for none. */
  readonly backup?: number;
}

interface Limit {
  readonly what: string;
  readonly used: number;
  readonly limit: number;
  readonly unit: string;
}

export interface Plan {
  readonly loads: readonly { readonly load: Load; readonly read: number; readonly write: number }[];
  /** Requests to each service. */
  readonly requests: { readonly tables: number; readonly queues: number; readonly blobs: number };
  readonly gigabytes: number;
  readonly accounts: number;
  readonly queues: number;
  readonly instances: number;
  /** How many instances are billed on average: an instance costs nothing between executions. */
  readonly busy: number;
  /** The runs in a month, and what their memory costs before the free grant. */
  readonly timers: { readonly runs: number; readonly amount: number };
  readonly spreads: readonly Spread[];
  /** The limits, the most used first. */
  readonly limits: readonly Limit[];
  readonly costs: readonly { readonly what: string; readonly amount: number }[];
}

/** How the rows of a table must be spread. */
interface Spread {
  readonly what: string;
  readonly table: string;
  /** Entities a second. */
  readonly load: number;
  readonly needed: number;
  /** Undefined if each value of the fields has a partition. */
  readonly partitions: number | undefined;
  readonly fields: readonly string[];
}

const MONTH_S = 730 * 3_600;
const DAY_S = 24 * 3_600;
const GIGABYTE = 1e9;
/** Size of a row with a key or a number instead of a copy. */
const SMALL_ROW_BYTES = 300;
/** Size of the entry of a change in the audit log. */
const AUDIT_BYTES = 400;
/** Changes that arrive while an append is under way share the next one, which takes about 10 ms. */
const APPENDS_OF_INSTANCE = 100;
const TIMER_RUNS = countTimerRuns(false);
const BACKED_UP_RUNS = countTimerRuns(true);
/** Size of what the journal of a backup says of a transaction besides the values. */
const JOURNAL_BYTES = 200;
const SNAPSHOTS = MONTH_S / DAY_S;
const SCAN_ROWS = 1_000;

export function planCapacity(loads: readonly Load[], assumed: Assumptions, { targets, prices }: Published): Plan {
  const timerRuns = (assumed.backup ?? 0) > 0 ? BACKED_UP_RUNS : TIMER_RUNS;
  const costed = loads.map((load) => ({ load, cost: costOfEntity(load.entity) }));
  const sum = (of: (one: (typeof costed)[number]) => number) => costed.reduce((total, one) => total + of(one), 0);
  const reads = sum(({ load }) => load.reads);
  const writes = sum(({ load }) => load.writes);
  const cpu = (reads * assumed.readCpu + writes * assumed.writeCpu) / 1_000;
  // A Node process runs on one core.
  const cores = Math.min(1, assumed.memory / targets.gigabytesOfCore.value);
  const needed = cpu / (assumed.utilization * cores);
  const instances = Math.max(1, Math.ceil(needed));
  const requests = {
    tables: sum(({ load, cost }) => load.reads * cost.read + load.writes * cost.tables),
    queues: sum(({ load, cost }) => load.writes * cost.queues),
    blobs: Math.min(writes, instances * APPENDS_OF_INSTANCE),
  };
  const all = requests.tables + requests.queues + requests.blobs;
  const messages = sum(({ load, cost }) => (cost.queues > 0 ? load.writes : 0));
  const bytesOf = (isWhole: boolean) => (isWhole ? assumed.bytes : Math.min(assumed.bytes, SMALL_ROW_BYTES));
  const gigabytes =
    sum(({ load, cost }) => load.count * cost.rows.reduce((n, row) => n + row.rows * bytesOf(row.isWhole), 0)) /
    GIGABYTE;
  const spreads = costed.flatMap(({ load, cost }) =>
    cost.rows.map(({ what, table, partitions, fields, rows, calls }, index): Spread => {
      // A transaction counts as its rows; a read through an index is not known.
      const rate = index === 0 ? load.reads + load.writes * (rows + calls - 1) : load.writes * calls;
      const needed = Math.max(1, Math.ceil(rate / targets.partitionEntities.value));
      return { what: `${load.entity.name}: ${what}`, table, load: rate, needed, partitions, fields };
    }),
  );
  const limits: Limit[] = [
    { what: 'the storage account', used: all, limit: targets.accountRequests.value, unit: 'requests a second' },
    { what: 'the queue of intents', used: messages, limit: targets.queueMessages.value, unit: 'messages a second' },
    { what: 'the instances of the app', used: needed, limit: targets.instances.value, unit: 'instances' },
    ...spreads.flatMap(({ what, table, load, partitions }) =>
      partitions === undefined
        ? []
        : [
            {
              what: `${what}, ${partitions} ${partitions === 1 ? 'partition' : 'partitions'} of ${table}`,
              used: load,
              limit: partitions * targets.partitionEntities.value,
              unit: 'entities a second',
            },
          ],
    ),
  ];
  const perMonth = (rate: number, price: number, by: number) => (rate * MONTH_S * price) / by;
  const auditGigabytes = (writes * MONTH_S * AUDIT_BYTES) / GIGABYTE;
  const queued = sum(({ load, cost }) => (cost.isQueued ? load.writes : 0));
  // The queue function scales alone, so its runs share no second with requests.
  const busy = [reads + writes, queued]
    .map((rate) => busyInstances({ rate, instances, seconds: targets.billedSeconds.value }))
    .reduce((total, part) => total + part);
  const gigabyteSeconds = (busy * MONTH_S + timerRuns * targets.billedSeconds.value) * assumed.memory;
  const executions = (reads + writes + queued) * MONTH_S + timerRuns;
  return {
    loads: costed.map(({ load, cost }) => ({ load, read: cost.read, write: cost.tables + cost.queues })),
    requests,
    gigabytes,
    accounts: Math.max(1, Math.ceil(all / targets.accountRequests.value)),
    queues: Math.max(1, Math.ceil(messages / targets.queueMessages.value)),
    instances,
    busy,
    timers: {
      runs: timerRuns,
      amount: timerRuns * targets.billedSeconds.value * assumed.memory * prices.gigabyteSecond.value,
    },
    spreads,
    limits: limits.filter(({ used }) => used > 0).sort((one, other) => other.used / other.limit - one.used / one.limit),
    costs: [
      { what: `${format(gigabytes)} GB in tables`, amount: gigabytes * prices.tableGigabyte.value },
      { what: 'requests to tables', amount: perMonth(requests.tables, prices.tableRequests.value, 10_000) },
      { what: 'requests to queues', amount: perMonth(requests.queues, prices.queueRequests.value, 10_000) },
      { what: 'appends to the audit log', amount: perMonth(requests.blobs, prices.blobWrites.value, 10_000) },
      {
        what: `${format(auditGigabytes)} GB of audit log, more each month`,
        amount: auditGigabytes * prices.blobGigabyte.value,
      },
      ...costsOfBackup(costed, { assumed, prices, appends: requests.blobs }),
      {
        what: `memory of the instances while they work, and of ${format(timerRuns)} runs of timers`,
        amount: gigabyteSeconds * prices.gigabyteSecond.value,
      },
      { what: `${format(executions)} executions`, amount: (executions / 1e6) * prices.executions.value },
      {
        what: 'free grant of the subscription for memory and executions',
        amount:
          -Math.min(gigabyteSeconds, prices.freeGigabyteSeconds.value) * prices.gigabyteSecond.value -
          (Math.min(executions, prices.freeExecutions.value) / 1e6) * prices.executions.value,
      },
    ],
  };
}

/**
 * The instances that are billed on average. Each request keeps the meter of its instance running for at least the minimum, and
 * requests that overlap share the time: with requests at random times, an instance is idle for the part exp(-rate · minimum).
 */
function busyInstances({
  rate,
  instances,
  seconds,
}: {
  readonly rate: number;
  readonly instances: number;
  readonly seconds: number;
}): number {
  return instances * -Math.expm1((-rate / instances) * seconds);
}

interface Costed {
  readonly load: Load;
  readonly cost: ReturnType<typeof costOfEntity>;
}

/**
 * A backup has the rows in the tables of entities. Each write changes a part of a snapshot at random, so few parts are as they were if the writes of
 * a day are more than the parts. All sizes are without compression.
 */
function costsOfBackup(
  costed: readonly Costed[],
  { assumed, prices, appends }: Pick<Published, 'prices'> & { readonly assumed: Assumptions; readonly appends: number },
): Plan['costs'] {
  const { backup: days = 0, bytes } = assumed;
  if (days === 0) return [];
  const sizes = costed.map(({ load, cost: { rows } }) => {
    const own = rows.filter(({ table }) => table === load.entity.table);
    const rowsOfOne = own.reduce((sum, row) => sum + row.rows, 0);
    const bytesOfOne = own.reduce(
      (sum, row) => sum + row.rows * (row.isWhole ? bytes : Math.min(bytes, SMALL_ROW_BYTES)),
      0,
    );
    const parts = (load.count * rowsOfOne) / ROWS_OF_PART;
    const changed = -Math.expm1((-load.writes * DAY_S) / parts);
    return {
      rows: load.count * rowsOfOne,
      journal: load.writes * DAY_S * days * (bytesOfOne + JOURNAL_BYTES),
      // A part is kept for twice the retention.
      kept: load.count * bytesOfOne * (1 + changed * 2 * days),
      written: parts * changed * SNAPSHOTS,
    };
  });
  const sum = (of: (one: (typeof sizes)[number]) => number) => sizes.reduce((total, one) => total + of(one), 0);
  const gigabytes = sum(({ journal, kept }) => journal + kept) / GIGABYTE;
  const scans = (sum(({ rows }) => rows) / SCAN_ROWS) * SNAPSHOTS;
  return [
    { what: 'appends to the journal of the backup', amount: (appends * MONTH_S * prices.blobWrites.value) / 10_000 },
    {
      what: `${format(SNAPSHOTS)} snapshots: ${format(scans)} reads, ${format(sum(({ written }) => written))} parts written`,
      amount: (scans * prices.tableRequests.value + sum(({ written }) => written) * prices.blobWrites.value) / 10_000,
    },
    {
      what: `at most ${format(gigabytes)} GB of backup, before compression`,
      amount: gigabytes * prices.blobGigabyte.value,
    },
  ];
}

/** The runs of the app's timers in a month. Each runs on an instance of its own, because every function scales alone. */
function countTimerRuns(isBackedUp: boolean): number {
  const [from, until] = [new Date('2025-12-31T23:59:59Z'), new Date('2026-01-02T00:00:00Z')];
  let runs = 0;
  for (const [name, { schedule, isUsed }] of Object.entries(TIMERS)) {
    if (isUsed && !(isBackedUp && name.startsWith('backup'))) continue;
    const cron = new Cron(schedule, { timezone: 'UTC' });
    for (let run = cron.nextRun(from); run && run < until; run = cron.nextRun(run)) runs += 1;
  }
  return Math.round((runs * MONTH_S) / DAY_S);
}

/** A number with separators and at most one digit after the point; one below 1 has two digits that count. */
export function format(value: number): string {
  const digits =
    Math.abs(value) < 1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: Math.abs(value) < 100 ? 1 : 0 };
  return value.toLocaleString('en-US', digits);
}

/** A sum in US dollars: small ones with cents. */
export function formatDollars(amount: number): string {
  return Math.abs(amount) < 10 ? amount.toFixed(2) : format(amount);
}
