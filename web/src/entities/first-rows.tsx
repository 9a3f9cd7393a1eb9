import { formatCosts } from '../api/cost.ts';
import type { Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { arrangeColumns, sayConstants } from '../rows/row-columns.ts';
import { plural, sayLeftOut } from '../ui/format.ts';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { parseListQuery } from './list-query.ts';
import { createPageReader } from './read-page.ts';
import { RowList } from './row-list.tsx';
import { listedFields, type Way } from './ways.ts';

/** Enough to see what the rows are. The list may have millions, so the page does not read on by itself. */
const MOST_ROWS = 20;

interface FirstRowsProps {
  readonly entity: Entity;
  /** The scan of the table, which only operators have, or an index that needs no value. */
  readonly way: Way;
  /** The address of the list that reads on. */
  readonly address: string;
}

const NO_CHOICE = parseListQuery(new URLSearchParams());

/** The rows at the start of a table or of an index, with what they cost. */
export function FirstRows({ entity, way, address }: FirstRowsProps) {
  const { api, user } = useApp();
  const readPage = createPageReader(api, entity, way, { ...NO_CHOICE, by: way.id });
  const load = (outer: AbortSignal) =>
    api.measure(async (signal) => readPage?.({ after: undefined, top: MOST_ROWS, signal }), outer);
  const { result, error } = useLoaded(load, `${entity.name} ${way.id}`);
  const what = way.kind === 'scan' ? 'table' : way.title;
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result?.result) return <Loading what={`the first rows of the ${what}`} />;
  const { items, next } = result.result;
  // Storage may return the first rows of a table that has rows of other entities without any row of this one.
  const first =
    items.length === 0 ? `No row at the start of the ${what}` : `First ${plural(items.length, 'row')} of the ${what}`;
  const { columns, constants } = arrangeColumns(entity, user, listedFields(entity, way), items);
  return (
    <>
      <p class="summary" role="status">
        {next === undefined ? `${plural(items.length, 'row')} in the ${what}` : first}
        <small>
          {' '}
          · {formatCosts(result.costs)}
          {constants.length > 0 && ` · ${sayConstants(constants, items[0])}`}
          {next !== undefined && (
            <>
              {' '}
              · <a href={address}>Read the whole {what}</a>
            </>
          )}
          {way.needs.length > 0 && ` · ${sayLeftOut(way.needs, 'it')}`}
        </small>
      </p>
      {items.length > 0 && <RowList entity={entity} columns={columns} rows={items} isComplete />}
    </>
  );
}
