import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { type Entity, isOneRow } from '../../define/declaration/entity.ts';
import { MAX_TRANSACTION_ACTIONS } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import type { Position } from '../read/continuation.ts';
import { judgeRow } from '../read/judge-row.ts';
import { readEntityRows, toPosition } from '../read/retrieve.ts';
import { deleteRows } from './entity-batch.ts';

/** The most entities that one call deletes. */
const MAX_ENTITIES = 1_000;

interface DeleteRangeOptions {
  /** Inclusive bounds of the first field of the row key; each is a prefix. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** True to delete the whole partition, in place of bounds. */
  readonly all?: boolean | undefined;
  readonly after?: Position | undefined;
  /** No transaction is started after this time, in milliseconds, but for the first one. */
  readonly until?: number;
}

export interface DeletedRange {
  readonly deleted: number;
  /** The errors of entities that were not deleted. */
  readonly failed: readonly RowkeyError[];
  /** How many rows in the range are not valid entities, because a client wrote them. They are still there. */
  readonly skipped: number;
  /** Where the next call continues; undefined at the end of the range. */
  readonly next: Position | undefined;
}

/**
 * Deletes the entities of a range of a partition, with everything that a single delete removes, in batches. The query that
 * finds them also reads what their deletes need. Throws `invalid-input` without bounds unless `all`.
 */
export const deleteRange = inPattern(
  'range query',
  async (engine: Engine, entity: Entity, key: Values, options: DeleteRangeOptions): Promise<DeletedRange> => {
    const { all = false, after, until = Number.POSITIVE_INFINITY } = options;
    const [from, to] = [options.from || undefined, options.to || undefined];
    const isBounded = from !== undefined || to !== undefined;
    if (isBounded === all)
      throw new RowkeyError('invalid-input', 'The range to delete must be either bounded or the whole partition.', {
        field: 'from',
        accepted: '"from", "to" or both, or all=true for every entity of the partition',
      });
    const read = isOneRow(entity) ? { select: entity.keyFields } : { isWhole: true, mayLackRows: true };
    const page = { from, to, after, top: MAX_ENTITIES, ...read };
    const { rows, next } = await readEntityRows(engine, entity, key, page);
    const failed: RowkeyError[] = [];
    let deleted = 0;
    let skipped = 0;
    for (let at = 0; at < rows.length; at += MAX_TRANSACTION_ACTIONS) {
      const last = rows[at - 1];
      if (last && engine.now() >= until) return { deleted, failed, skipped, next: toPosition(entity, last) };
      const some = rows.slice(at, at + MAX_TRANSACTION_ACTIONS);
      skipped += some.filter((row) => judgeRow(entity, row).is === 'invalid').length;
      const outcomes = await deleteRows(engine, entity, some);
      for (const outcome of outcomes)
        if (!(outcome instanceof RowkeyError)) deleted += 1;
        // Another request has deleted it.
        else if (outcome.code !== 'not-found') failed.push(outcome);
    }
    return { deleted, failed, skipped, next };
  },
);
