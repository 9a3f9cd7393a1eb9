import { RowkeyError } from '../../base/errors.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Entity, VerifySubject } from '../../define/declaration/entity.ts';
import type { Suspicion } from '../../define/declaration/finding.ts';
import { type Action, type Properties, type Row, readRow, tryAction } from '../../storage/rows.ts';

/**
 * A count that no row has is 0, so a lost row of a series would be read as zeros. The first row has a mark for each other row, and each
 * other row one for the first: a write of another row writes both, in one transaction. Rows that a client writes with a grant, and those
 * of earlier releases, have no marks until the API writes them.
 */

const MARK = /^Row(\d+)$/;

function markOf(index: number): string {
  return `Row${index + 1}`;
}

/** The marks that a row gets when it is written. */
export function marksIn(index: number): Properties {
  return index === 0 ? {} : { [markOf(0)]: true };
}

/** The marks that the first row gets when these rows are written. */
export function marksOf(indexes: readonly number[]): Properties {
  return Object.fromEntries(indexes.filter((index) => index > 0).map((index) => [markOf(index), true]));
}

/** Adds the marks of other rows to the first row, which is inserted if it does not exist. */
export function markFirst(row: string, indexes: readonly number[], common: Properties): Action[] {
  const marks = marksOf(indexes);
  if (Object.keys(marks).length === 0) return [];
  return [{ kind: 'upsert-merge', row, properties: { ...marks, ...common } }];
}

/** The index of a row that another row says exists, undefined if there is none. `rows` are all rows of the series. */
export function findLostRow(rows: readonly (Row | undefined)[]): number | undefined {
  for (const row of rows)
    for (const [name, isMarked] of Object.entries(row?.properties ?? {})) {
      const index = isMarked === true ? Number(MARK.exec(name)?.[1] ?? 0) - 1 : -1;
      if (index >= 0 && index < rows.length && !rows[index]) return index;
    }
  return undefined;
}

export function lostRowError({ name }: Entity): RowkeyError {
  return new RowkeyError('needs-repair', `A row of a series of ${name} is lost.`);
}

/** Finds a row of the series that this row says exists. The repair drops its counts for good: they are zeros. */
export async function checkSeriesRows(
  { storage }: Engine,
  { name }: Entity,
  { address }: Pick<VerifySubject, 'address'>,
  addresses: readonly { readonly row: string }[],
): Promise<Suspicion[]> {
  const own = await readRow(storage, address);
  const marked = Object.entries(own?.properties ?? {}).flatMap(([property, isMarked]) => {
    const other = isMarked === true ? addresses[Number(MARK.exec(property)?.[1] ?? 0) - 1] : undefined;
    return other ? [{ property, row: other.row }] : [];
  });
  const found: Suspicion[] = [];
  for (const { property, row } of own ? marked : []) {
    if (await readRow(storage, { ...address, row })) continue;
    const repair = () =>
      tryAction(storage, address, {
        kind: 'merge',
        row: address.row,
        properties: { [property]: false },
        etag: own?.etag ?? '',
      });
    found.push({ kind: 'missing', of: name, ...address, row, repair, losesValues: true });
  }
  return found;
}
