import { formatCosts } from '../api/cost.ts';
import type { Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { arrangeColumns, sayConstants } from '../rows/row-columns.ts';
import { plural } from '../ui/format.ts';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { scan } from './read-page.ts';
import { RowList } from './row-list.tsx';
import { listedFields, type Way } from './ways.ts';

/** Enough to see what the rows are. The table may have millions, so the page does not read on by itself. */
const MOST_ROWS = 20;

interface FirstRowsProps {
  readonly entity: Entity;
  /** The scan of the table, which only operators have. */
  readonly way: Way;
  /** The address of the list that reads on. */
  readonly address: string;
}

/** Storage may return the first rows of a table that has rows of other entities without any row of this one. */
function sayFirst(count: number): string {
  return count === 0 ? 'No row at the start of the table' : `First ${plural(count, 'row')} of the table`;
}

/** The rows at the start of a table, with what they cost. */
export function FirstRows({ entity, way, address }: FirstRowsProps) {
  const { api, user } = useApp();
  const request = { after: undefined, top: MOST_ROWS, select: undefined, where: {} };
  const load = (outer: AbortSignal) => api.measure((signal) => scan(api, entity, { ...request, signal }), outer);
  const { result, error } = useLoaded(load, entity.name);
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result) return <Loading what="the first rows of the table" />;
  const { items, next } = result.result;
  const { columns, constants } = arrangeColumns(entity, user, listedFields(entity, way), items);
  return (
    <>
      <p class="summary" role="status">
        {next === undefined ? `${plural(items.length, 'row')} in the table` : sayFirst(items.length)}
        <small>
          {' '}
          · {formatCosts(result.costs)}
          {constants.length > 0 && ` · ${sayConstants(constants, items[0])}`}
          {next !== undefined && (
            <>
              {' '}
              · <a href={address}>Read the whole table</a>
            </>
          )}
        </small>
      </p>
      {items.length > 0 && <RowList entity={entity} columns={columns} rows={items} isComplete />}
    </>
  );
}
