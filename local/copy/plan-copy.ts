import type { Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { addressOf, indexEntriesOf, isContested, remoteIndexOf } from '../../lib/define/places/index-entries.ts';
import { MAX_TRANSACTION_ACTIONS } from '../../lib/storage/rows.ts';
import { costOfEntity } from '../capacity/entity-cost.ts';
import { expectValues, type Kind, reject, type SourceReport } from './read-source.ts';

/** What a copy would cost, without writing anything. */

export interface CopyPlan {
  /** Calls to tables and to queues. */
  tables: number;
  queues: number;
  /** Of tables, the reads of the source. */
  pages: number;
  readonly valid: Map<string, number>;
}

/** The rows that a bulk load groups. */
const WINDOW = 5_000;

/** Reads the pages, and adds the rows that the app rejects to the report. `isLoad` tells how the rows of a kind would be written. */
export async function planCopy(
  pages: AsyncIterable<ReadonlyMap<Kind, readonly Values[]>>,
  { report, isLoad }: { readonly report: SourceReport; readonly isLoad: (kind: Kind) => boolean },
): Promise<CopyPlan> {
  const plan: CopyPlan = { tables: 0, queues: 0, pages: 0, valid: new Map() };
  const windows = new Map<Kind, Values[]>();
  const end = (kind: Kind, rows: readonly Values[]) => {
    plan.tables += loadCalls(kind.to, rows);
    windows.delete(kind);
  };
  for await (const page of pages) {
    plan.pages += 1;
    for (const [kind, rows] of page) {
      const valid = rows.filter((values) => isValid(kind, values, report));
      plan.valid.set(kind.to.name, (plan.valid.get(kind.to.name) ?? 0) + valid.length);
      if (isLoad(kind)) {
        const window = [...(windows.get(kind) ?? []), ...valid];
        windows.set(kind, window);
        if (window.length >= WINDOW) end(kind, window);
      } else {
        // Each is read first.
        const { tables, queues } = costOfEntity(kind.to);
        plan.tables += valid.length * (1 + tables);
        plan.queues += valid.length * queues;
      }
    }
  }
  for (const [kind, rows] of windows) end(kind, rows);
  plan.tables += plan.pages;
  return plan;
}

/** For 10,000 requests, as in published.yaml, which is not in the package. */
export const DOLLARS = { tables: 0.00036, queues: 0.004 } as const;

/** Dollars, at the published prices of a request. */
export function priceOf({ tables, queues }: Pick<CopyPlan, 'tables' | 'queues'>): number {
  return (tables * DOLLARS.tables + queues * DOLLARS.queues) / 10_000;
}

function isValid(kind: Kind, values: Values, { kinds }: SourceReport): boolean {
  try {
    expectValues(kind.to, values);
    return true;
  } catch (error) {
    const of = kinds.get(kind.to.name);
    if (of) reject(of, kind.to.keyFields.map((field) => String(values[field])).join('/'), error);
    return false;
  }
}

/**
 * The transactions of a bulk load of these rows: those of their partitions, and of the partitions of their entries. A unique value is claimed, and then
 * confirmed; a list or a total is read, and then written for many rows.
 */
function loadCalls(entity: Entity, rows: readonly Values[]): number {
  const counts = new Map<string, number>();
  const add = (...key: readonly unknown[]) => {
    const text = JSON.stringify(key);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  };
  for (const values of rows) {
    const { table, partition } = addressOf(entity, values);
    add('row', table, partition);
    for (const entry of indexEntriesOf(entity, values)) {
      const { merge } = remoteIndexOf(entity, entry) ?? {};
      const shared = merge && (merge.sumOf?.(entry) ?? entry);
      const at = shared ? [shared.table, shared.partition, shared.row] : [entry.table, entry.partition];
      add('entry', ...at);
      if (shared || isContested(entity, entry)) add('before', ...at);
    }
  }
  return [...counts.values()].reduce((sum, count) => sum + Math.ceil(count / MAX_TRANSACTION_ACTIONS), 0);
}
