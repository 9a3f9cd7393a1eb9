import { timeOf } from '../../lib/storage/row-journal.ts';
import type { Row } from '../../lib/storage/rows.ts';

/** How the rows of a sample are spread over partitions. */
export interface PartitionSizes {
  readonly partitions: number;
  readonly largest: { readonly partition: string; readonly rows: number } | undefined;
  /** True if later partitions have been written later: new rows all go to the end of the table. */
  readonly isAppended: boolean;
  /** True if earlier partitions have been written later: new rows all go to the beginning. */
  readonly isPrepended: boolean;
}

/** With fewer partitions, their order may be by chance. */
const MIN_PARTITIONS = 5;
const MOST = 0.95;
/** What was loaded within a day was loaded in the order of keys. */
const LEAST_SPAN_MS = 86_400_000;

export function measurePartitions(rows: readonly Row[]): PartitionSizes {
  const partitions = [...Map.groupBy(rows, ({ partition }) => partition)].map(([partition, ofPartition]) => ({
    partition,
    rows: ofPartition.length,
    // The first write of each partition: rows are also changed later.
    since: ofPartition.map(({ etag }) => timeOf(etag) ?? '').reduce((one, other) => (other < one ? other : one)),
  }));
  const [largest] = partitions.toSorted((one, other) => other.rows - one.rows);
  const times = partitions
    .toSorted((one, other) => (one.partition < other.partition ? -1 : 1))
    .map(({ since }) => since);
  const steps = times.slice(1).map((time, index) => (time === times[index] ? 0 : time > (times[index] ?? '') ? 1 : -1));
  const sorted = times.toSorted();
  const span = Date.parse(sorted.at(-1) ?? '') - Date.parse(sorted[0] ?? '');
  const isMostly = (step: number) =>
    partitions.length >= MIN_PARTITIONS &&
    span >= LEAST_SPAN_MS &&
    steps.filter((each) => each === step).length >= steps.length * MOST;
  return {
    partitions: partitions.length,
    largest: largest && { partition: largest.partition, rows: largest.rows },
    isAppended: isMostly(1),
    isPrepended: isMostly(-1),
  };
}
