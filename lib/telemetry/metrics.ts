import { type Attributes, metrics } from '@opentelemetry/api';
import { DAY_MS } from '../base/time.ts';

/** Metrics for operators. `infra/queries` and the alerts use these names. */

/** In seconds. */
const BUCKETS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300];

type ResponseLabels = {
  readonly service: string;
  readonly resource: string;
  readonly status: string;
  readonly account?: string;
};

const countStorageTransaction = counter('rowkey.storage.transactions', 'Storage transactions, retries included');
const countResponse = counter<ResponseLabels>(
  'rowkey.storage.responses',
  'Responses of storage, by table, queue or container and status',
);
const countIssuedGrant = counter('rowkey.grants.issued', 'Shared access signatures issued to clients');

/** Each counts one unless told how much. */
export const count = {
  /**
   * `status` is the HTTP status, `none` without a response. That of a transaction is the status of its first action. `account` is the name of one of several
   * storage accounts. The day is that of the transaction, which is counted when it is sent.
   */
  response(labels: ResponseLabels): void {
    if (labels.service === 'table') tables.set(labels.resource, (tables.get(labels.resource) ?? 0) + 1);
    countResponse(labels);
  },
  /** `slot` stands for the partition key, which may be personal data. */
  partitionLoad: counter<{ readonly resource: string; readonly slot: string }>(
    'rowkey.partition.load',
    'Requests to the busiest partitions, with a transaction counted as its entities',
  ),
  throttledPartition: counter<{ readonly resource: string; readonly slot: string }>(
    'rowkey.partition.throttled',
    'Requests to a partition that storage rejected with 429 or 503',
  ),
  poison: counter<{ readonly queue: string; readonly account?: string }>(
    'rowkey.poison.recorded',
    'Messages recorded as poison',
  ),
  timer: counter<{ readonly timer: string }>('rowkey.timer.completed', 'Completed timer runs'),
  /** Findings of the regular consistency check that it has not repaired, counted at each of its runs. */
  inconsistencies: counter<{ readonly entity: string }>(
    'rowkey.verify.found',
    'Inconsistent rows found by the consistency check',
  ),
  /** Entities whose copies of another entity's fields the queue has updated. */
  fanOut: counter<{ readonly entity: string }>(
    'rowkey.fanout.updated',
    'Entities with new copies of fields of another entity',
  ),
  /** A storage transaction is the unit of billing; each retry is one. */
  transaction(labels: { readonly pattern: string; readonly operation: string }): void {
    startDay();
    const key = labels.pattern + SEPARATOR + labels.operation;
    transactions.set(key, (transactions.get(key) ?? 0) + 1);
    countStorageTransaction(labels);
  },
  grant(labels: { readonly entity: string }): void {
    startDay();
    grants.set(labels.entity, (grants.get(labels.entity) ?? 0) + 1);
    countIssuedGrant(labels);
  },
};

/** Durations in milliseconds. */
export const record = {
  /** `route` is the method with the template of the path, as a path has keys of entities. `status` is 500 if the handler throws. */
  request: histogram<{ readonly route: string; readonly status: string }>(
    'rowkey.request.duration',
    'Time from the start of a function to its response',
  ),
  /** The time from a write's announcement until its indexes agree. Queues measure whole seconds. */
  reconcileLag: histogram('rowkey.reconcile.lag', 'Time from the announcement of a write until its indexes agree'),
  /** At each hourly run of the backup. */
  snapshotAge: histogram('rowkey.backup.age', 'Time since the last snapshot of the backup was complete'),
};

/** Looks the counter up at each use, because there is no meter before telemetry starts. A meter caches it by name. */
function counter<Labels extends Attributes>(name: string, description: string) {
  return (labels: Labels, much = 1): void =>
    metrics.getMeter('rowkey').createCounter(name, { description }).add(much, labels);
}

function histogram<Labels extends Attributes>(name: string, description: string) {
  const options = { description, unit: 's', advice: { explicitBucketBoundaries: BUCKETS } };
  return (milliseconds: number, labels?: Labels): void =>
    metrics
      .getMeter('rowkey')
      .createHistogram(name, options)
      .record(Math.max(0, milliseconds) / 1_000, labels);
}

/**
 * What this process has used of storage since the day began, in UTC, or since the process started. Operators see it without
 * Application Insights; only Application Insights knows the sum of all processes and earlier days.
 */

/** Separates the two parts of a key; no pattern and no method has it. */
const SEPARATOR = '\n';

let since = Date.now();
/** The beginning of the day, in UTC. */
let day = since - (since % DAY_MS);
const transactions = new Map<string, number>();
const grants = new Map<string, number>();
/** By the name of the table. */
const tables = new Map<string, number>();

function startDay(): void {
  const now = Date.now();
  const today = now - (now % DAY_MS);
  if (day === today) return;
  day = today;
  since = today;
  transactions.clear();
  grants.clear();
  tables.clear();
}

/**
 * The counts of the current day, the largest first. `since` is when counting began, in milliseconds. An `operation` is the service and the
 * method: `table GET`.
 */
export function readUsage() {
  startDay();
  const sort = (counts: ReadonlyMap<string, number>) => [...counts].toSorted(([, one], [, other]) => other - one);
  return {
    since,
    transactions: sort(transactions).map(([key, count]) => {
      const [pattern = '', operation = ''] = key.split(SEPARATOR);
      return { pattern, operation, count };
    }),
    tables: new Map(tables) as ReadonlyMap<string, number>,
    grants: sort(grants).map(([entity, count]) => ({ entity, count })),
  };
}
