import type { PipelineRequest } from '@azure/core-rest-pipeline';
import { MINUTE_MS } from '../base/time.ts';
import { createHeavyHitters } from '../telemetry/heavy-hitters.ts';
import { count } from '../telemetry/metrics.ts';
import { PERIOD_SUFFIX } from './resource-names.ts';
import { slotOf } from './slots.ts';

/**
 * The busiest partitions of one account, as this process uses them. A partition is one of a table, or a queue, whose messages are all in
 * one partition: storage serves each by one server.
 */

/**
 * What the service handles in a second in one partition of a table, for entities of 1 KiB, and in one queue:
 * https://learn.microsoft.com/azure/storage/tables/scalability-targets and https://learn.microsoft.com/azure/storage/queues/scalability-targets
 */
export const PARTITION_TARGET = 2_000;

/** Every partition with more than a 256th of the load is found. */
const PARTITIONS = 256;
const HALF_LIFE_MS = 2 * MINUTE_MS;
/** Metrics have at most this many partitions a minute, each above a hundredth of the target, because every label value creates a time series. */
const PARTITIONS_IN_METRICS = 5;
const LOAD_IN_METRICS = PARTITION_TARGET * 0.6;

export interface Heat {
  /** Counts a request that has ended, to a table or queue with this name in the account. */
  note(request: PipelineRequest, by: Noted): void;
  /** The busiest partitions, the busiest first. */
  top(limit: number): HotPartition[];
  /** The load of all partitions, a minute. */
  total(): number;
}

interface Noted {
  readonly service: 'table' | 'queue' | 'blob';
  readonly resource: string;
  readonly status: string;
}

/** Rates a minute, over the last minutes. */
export interface HotPartition {
  readonly service: 'table' | 'queue';
  /** As the account names it. */
  readonly resource: string;
  /** The partition key. Empty for a queue. */
  readonly partition: string;
  /** Requests that change nothing, and changed entities: a transaction of ten counts ten. */
  readonly load: number;
  /** The load may be too high by as much. The other numbers are never too high. */
  readonly error: number;
  readonly requests: number;
  readonly written: number;
  /** Responses with 429 or 503. */
  readonly throttled: number;
}

const SEPARATOR = '\n';

export function createHeat(now?: () => number): Heat {
  const partitions = createHeavyHitters({ capacity: PARTITIONS, halfLifeMs: HALF_LIFE_MS, ...(now && { now }) });
  let isReporting = false;

  const top = (limit: number): HotPartition[] =>
    partitions.top(limit).map(({ key, weight, error, counts }) => {
      const [service = '', resource = '', partition = ''] = key.split(SEPARATOR);
      const { requests = 0, written = 0, throttled = 0 } = counts;
      return {
        service: service === 'queue' ? 'queue' : 'table',
        resource,
        partition,
        load: weight,
        error,
        requests,
        written,
        throttled,
      };
    });

  /** Metrics name the slot and no key, which may be personal data: many keys share a slot. */
  function report(): void {
    isReporting = false;
    const listed = top(PARTITIONS);
    const labelsOf = ({ resource, partition }: HotPartition) => ({
      resource: resource.replace(PERIOD_SUFFIX, ''),
      slot: slotOf(partition),
    });
    for (const one of listed.slice(0, PARTITIONS_IN_METRICS))
      if (one.load - one.error >= LOAD_IN_METRICS) count.partitionLoad(labelsOf(one), Math.round(one.load - one.error));
    const throttled = listed.toSorted((one, other) => other.throttled - one.throttled);
    for (const one of throttled.slice(0, PARTITIONS_IN_METRICS))
      if (one.throttled >= 1) count.throttledPartition(labelsOf(one), Math.round(one.throttled));
  }

  return {
    note(request, { service, resource, status }) {
      if (service === 'blob') return;
      const partition = service === 'queue' ? '' : partitionOf(request);
      if (partition === undefined) return;
      const written = request.method === 'GET' ? 0 : request.url.includes('/$batch') ? countChanges(request) : 1;
      const throttled = status === '429' || status === '503' ? 1 : 0;
      const key = service + SEPARATOR + resource + SEPARATOR + partition;
      partitions.add(key, Math.max(1, written), { requests: 1, written, throttled });
      if (isReporting) return;
      isReporting = true;
      setTimeout(report, MINUTE_MS).unref();
    },
    top,
    total: () => partitions.total(),
  };
}

/** In the path of an operation on one row. The SDK encodes the comma that follows if it is a part of the key. */
const KEY_IN_PATH = /\(PartitionKey='(.*?)',RowKey=/;
/** Only `rows.ts` writes filters, and it compares the partition first. */
const KEY_IN_FILTER = /[?&]\$filter=PartitionKey%20eq%20%27((?:[^%]|%(?!27)|%27%27)*)%27/;
/** The SDK writes the keys of a row before its properties, in which a quote is escaped. */
const KEY_IN_BODY = '"PartitionKey":"';

/** The partition of a request to a table; undefined for a scan or an operation on tables. Exported for tests. */
export function partitionOf({ url, body }: Pick<PipelineRequest, 'url' | 'body'>): string | undefined {
  const inPath = KEY_IN_PATH.exec(url);
  if (inPath) return decode(inPath[1]);
  if (typeof body !== 'string') return decode(KEY_IN_FILTER.exec(url)?.[1]);
  const start = body.indexOf(KEY_IN_BODY);
  if (start < 0) return decode(KEY_IN_PATH.exec(body)?.[1]);
  let end = start + KEY_IN_BODY.length;
  while (end < body.length && body[end] !== '"') end += body[end] === '\\' ? 2 : 1;
  return String(JSON.parse(body.slice(start + KEY_IN_BODY.length - 1, end + 1)));
}

function decode(encoded: string | undefined): string | undefined {
  return encoded === undefined ? undefined : decodeURIComponent(encoded).replaceAll("''", "'");
}

/** Begins each action of a transaction, and ends the last one. */
const BOUNDARY = '\r\n--changeset_';

function countChanges({ body }: PipelineRequest): number {
  if (typeof body !== 'string') return 1;
  let found = -1;
  for (let at = body.indexOf(BOUNDARY); at >= 0; at = body.indexOf(BOUNDARY, at + BOUNDARY.length)) found += 1;
  return Math.max(1, found);
}
