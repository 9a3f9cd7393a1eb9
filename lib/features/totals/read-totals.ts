import pMap from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { type Total, toIndex } from '../../define/declaration/totals.ts';
import { periodOf } from '../../define/keys/calendar.ts';
import { buildKey, buildKeys, parseKey } from '../../define/keys/key-template.ts';
import { type IndexBounds, indexRange } from '../../define/places/index-range.ts';
import type { Engine } from '../../engine/engine.ts';
import { beginIndexRead } from '../../engine/read/index-reads.ts';
import { PAGE_LENGTH } from '../../engine/read/page-length.ts';
import type { Page, PageOptions } from '../../engine/read/retrieve.ts';
import { readRange, readRow } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import { presentTotal, TOTAL } from './total-upkeep.ts';

/** Reads maintained totals. With buckets, the totals of all buckets are read concurrently and added up. */

const PARTITIONS_CONCURRENCY = 16;
/** The most rows of a page, in all buckets together. */
const MAX_ROWS = 8_000;

/** The total of one group: a point query for each bucket. A group without entities has the count 0. */
export const readTotal = inPattern(
  'maintained totals',
  async (engine: Engine, entity: Entity, declared: Total, given: Values): Promise<Values> => {
    await beginIndexRead(engine, entity, declared);
    const { storage } = engine;
    const { table, partition: template, totalRow } = declared;
    const row = buildKey(totalRow, given);
    const rows = await pMap(buildKeys(template, given), (partition) => readRow(storage, { table, partition, row }), {
      concurrency: PARTITIONS_CONCURRENCY,
    });
    return presentTotal(entity, declared, { given, rows: rows.filter((found) => found !== undefined) });
  },
);

/**
 * The totals of a range of groups, in the order of their row keys: a range query for each bucket. `given` has the fields of the
 * partition key and the first fields of the row key; the next field can be bounded.
 */
export const readTotals = inPattern(
  'maintained totals',
  async (
    engine: Engine,
    entity: Entity,
    declared: Total,
    given: Values,
    { top, after, ...bounds }: PageOptions & IndexBounds,
  ): Promise<Page> => {
    await beginIndexRead(engine, entity, declared);
    const { storage } = engine;
    const { table, partition: template, totalRow } = declared;
    const partitions = buildKeys(template, given);
    const range = indexRange(entity, toIndex(declared), given, bounds);
    // A page of many buckets has fewer groups, so that its rows fit into memory.
    const limit = Math.min(top, Math.max(1, Math.floor(MAX_ROWS / partitions.length)));
    const bound = { length: PAGE_LENGTH / partitions.length, rowsPerCall: limit };
    const results = await pMap(
      partitions,
      (partition) => readRange(storage, { table, partition, ...range, after: after?.row, type: TOTAL, limit, bound }),
      { concurrency: PARTITIONS_CONCURRENCY },
    );
    // A bucket with unread rows limits the page: its next row may belong to a group of other buckets.
    const ends = results.flatMap(({ rows, more }) => (more ? (rows.at(-1)?.row ?? '') : []));
    const all = results.flatMap(({ rows }) => rows).filter(({ row }) => ends.every((end) => row <= end));
    const groups = [...Map.groupBy(all, ({ row }) => row)].sort(([one], [other]) => (one < other ? -1 : 1));
    const page = groups.slice(0, top);
    const items = page.flatMap(([row, rows]) => {
      const inKey = parseKey(totalRow, row);
      // A row of other totals, which the table had before.
      if (!inKey) return [];
      const total = presentTotal(entity, declared, { given: { ...toTyped(entity, inKey), ...given }, rows });
      return total.count === 0 ? [] : [total];
    });
    const last = page.at(-1)?.[0];
    const more = ends.length > 0 || groups.length > page.length;
    return { items, next: more && last !== undefined ? { row: last } : undefined };
  },
);

/** Validates the fields of a group: periods here, the others by `validate`. Throws `invalid-input`. */
export function checkGroup(
  declared: Total,
  given: Values,
  fields: readonly string[],
  validate: (fields: readonly string[]) => Values,
): Values {
  const periods = Object.entries(declared.periods).filter(([field]) => fields.includes(field));
  for (const [field, unit] of periods)
    if (periodOf(unit, String(given[field])) !== given[field]) {
      const accepted = `a ${unit} such as ${periodOf(unit, '2026-11-20')}`;
      throw new RowkeyError('invalid-input', `"${field}" must be ${accepted}.`, { field, accepted });
    }
  const inFull = fields.filter((field) => !periods.some(([each]) => each === field));
  return {
    ...validate(inFull),
    ...pick(
      given,
      periods.map(([field]) => field),
    ),
  };
}

function toTyped({ columns }: Entity, values: Values): Values {
  const isNumber = (field: string) => ['Int32', 'Int64', 'Double'].includes(columns[field] ?? '');
  return Object.fromEntries(
    Object.entries(values).map(([field, value]) => [field, isNumber(field) ? Number(value) : value]),
  );
}
