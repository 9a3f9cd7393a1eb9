import pMap from 'p-map';
import { hasCode } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { entityIn, readEntityRow } from '../../engine/read/entity-rows.ts';
import { readBound } from '../../engine/read/page-length.ts';
import { type Page, type PageOptions, positionOfScan, scanPeriods, typeOf } from '../../engine/read/retrieve.ts';
import { BlobGone } from '../../engine/read/text-blobs.ts';
import { type Row, scanTable } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import { rowAddresses, slotsOf } from './data-series.ts';
import { readSeries } from './series-counts.ts';

const READS_CONCURRENCY = 8;
/** Bounds the counts of a page: a series may have 100,000. */
const MAX_COUNTS = 100_000;

interface SeriesScan extends PageOptions {
  /** True on the last attempt of the read, when a missing blob is lost. */
  readonly isLastAttempt: boolean;
}

/** A page of all series, each with its key and all counts. `counts` is null if a row or a blob of the series is lost. */
export const scanSeries = inPattern(
  'table scan',
  async (engine: Engine, entity: Entity, { isLastAttempt, ...page }: SeriesScan): Promise<Page> => {
    if (entity.period)
      return scanPeriods(engine, entity, page, (one, each) => scanSeries(engine, one, { ...each, isLastAttempt }));
    const { after } = page;
    const { first, last } = slotsOf(entity);
    const found = await scanTable(engine.storage, {
      table: entity.table,
      type: typeOf(entity),
      after: after?.partition === undefined ? undefined : { partition: after.partition, row: after.row },
      limit: Math.max(1, Math.min(page.top, Math.floor(MAX_COUNTS / (last - first + 1)))),
      bound: readBound([entity]),
      mayPause: true,
      resume: after?.resume,
    });
    const items = await pMap(
      found.rows,
      async (row): Promise<Values[]> => {
        const key = await keyIfFirst(engine, entity, row);
        if (!key) return [];
        try {
          const { counts } = await readSeries(engine, entity, key);
          return [{ ...key, counts }];
        } catch (error) {
          // Deleted meanwhile.
          if (hasCode(error, 'not-found')) return [];
          if (hasCode(error, 'needs-repair') || (error instanceof BlobGone && isLastAttempt))
            return [{ ...key, counts: null }];
          throw error;
        }
      },
      { concurrency: READS_CONCURRENCY },
    );
    return { items: items.flat(), next: positionOfScan(entity, after, { ...found, last: found.rows.at(-1) }) };
  },
);

/** The key of the series of a row, if the series has no row before it. Clients with a grant may write any of its rows first. */
async function keyIfFirst(engine: Engine, entity: Entity, row: Row): Promise<Values | undefined> {
  const key = entityIn(entity, row)?.values;
  if (!key) return undefined;
  const addresses = rowAddresses(entity, key);
  const position = addresses.findIndex((address) => address.row === row.row);
  for (const address of addresses.slice(0, Math.max(0, position)))
    if (await readEntityRow(engine, entity, address)) return undefined;
  return key;
}
