import type { Entity } from '../../lib/define/entity.ts';
import { costOfEntity } from './entity-cost.ts';
import type { Published } from './published.ts';

/** Sizes a load under the published targets. All rates are per second, all sums per month in US dollars. */

export interface Load {
  readonly entity: Entity;
  /** How many entities are stored. */
  readonly count: number;
  readonly reads: number;
  readonly writes: number;
}

/** What the model cannot say. */
export interface Assumptions {
  /** Bytes of one entity as stored. */
  readonly bytes: number;
  /** Milliseconds of CPU for a read and for a write, of an instance with one core. */
  readonly readCpu: number;
  readonly writeCpu: number;
  /** The part of an instance's CPU that is planned for. */
  readonly utilization: number;
  /** Gigabytes of an instance, which decide its part of a core. */
  readonly memory: number;
}

export interface Limit {
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
  readonly spreads: readonly Spread[];
  /** The limits, the most used first. */
  readonly limits: readonly Limit[];
  readonly costs: readonly { readonly what: string; readonly amount: number }[];
}

/** How the rows of a table must be spread. */
export interface Spread {
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
const GIGABYTE = 1e9;
/** Size of a row with a key or a number instead of a copy. */
const SMALL_ROW_BYTES = 300;
/** Size of the entry of a change in the audit log. */
const AUDIT_BYTES = 400;
/** Changes that arrive while an append is under way share the next one, which takes about 10 ms. */
const APPENDS_OF_INSTANCE = 100;
const FREE_GIGABYTE_SECONDS = 100_000;
const FREE_EXECUTIONS = 250_000;

export function planCapacity(loads: readonly Load[], assumed: Assumptions, { targets, prices }: Published): Plan {
  const costed = loads.map((load) => ({ load, cost: costOfEntity(load.entity) }));
  const sum = (of: (one: (typeof costed)[number]) => number) => costed.reduce((total, one) => total + of(one), 0);
  const reads = sum(({ load }) => load.reads);
  const writes = sum(({ load }) => load.writes);
  const cpu = (reads * assumed.readCpu + writes * assumed.writeCpu) / 1_000;
  // A Node process runs on one core.
  const cores = Math.min(1, assumed.memory / targets.gigabytesOfCore.value);
  const instances = Math.max(1, Math.ceil(cpu / (assumed.utilization * cores)));
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
    { what: 'the instances of the app', used: instances, limit: targets.instances.value, unit: 'instances' },
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
  const gigabyteSeconds = Math.max(0, instances * assumed.memory * MONTH_S - FREE_GIGABYTE_SECONDS);
  const executions = Math.max(0, (reads + writes) * MONTH_S - FREE_EXECUTIONS);
  return {
    loads: costed.map(({ load, cost }) => ({ load, read: cost.read, write: cost.tables + cost.queues })),
    requests,
    gigabytes,
    accounts: Math.max(1, Math.ceil(all / targets.accountRequests.value)),
    queues: Math.max(1, Math.ceil(messages / targets.queueMessages.value)),
    instances,
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
      { what: 'memory of the instances', amount: gigabyteSeconds * prices.gigabyteSecond.value },
      { what: 'executions', amount: (executions / 1e6) * prices.executions.value },
    ],
  };
}

/** A number with at most one digit after the point, and with separators. */
export function format(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 1 : 0 });
}
