import { RowkeyClientError } from '../../../lib/client/index.ts';
import { formatCosts } from '../api/cost.ts';
import { type Entity, keyPath, may, readsPast } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { type Address, navigate, toAddress } from '../app/router.ts';
import { AsOf } from '../rows/as-of.tsx';
import { arrangeColumns, sayConstants } from '../rows/row-columns.ts';
import { plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { FindValue } from './find-value.tsx';
import { type ListQuery, OPERATORS, parseListQuery, toListAddress } from './list-query.ts';
import { ReadForm } from './read-form.tsx';
import { createPageReader } from './read-page.ts';
import { RowList } from './row-list.tsx';
import { StartReading } from './start-reading.tsx';
import { useRows } from './use-rows.ts';
import { findOpening, findOwn, listedFields, type Way, waysToRead } from './ways.ts';

/** Reads a partition, or through an index, and lists the rows as the user scrolls. */
export function BrowseTab({ entity, address }: { readonly entity: Entity; readonly address: Address }) {
  const { api, model, user } = useApp();
  const ways = waysToRead(entity, model, user);
  const asked = parseListQuery(address.query);
  const isOpened = address.query.size === 0;
  // An address that asks for nothing shows all rows, if a page of them takes one query.
  const opening = isOpened ? findOpening(entity, ways) : undefined;
  const own = isOpened && !opening ? findOwn(entity, ways, user) : undefined;
  const found = opening ?? own?.way ?? ways.find(({ id }) => id === asked.by);
  const way = found ?? ways[0];
  const isUnknownWay = asked.by !== '' && !found;
  const isColumn = (field: string) => way?.available.includes(field) ?? false;
  const unknownColumns = asked.columns.filter((field) => !isColumn(field));
  const query = {
    ...asked,
    by: found?.id ?? '',
    given: own?.given ?? asked.given,
    columns: asked.columns.filter(isColumn),
  };
  // Another read than the one that was asked for could be taken for it.
  const isUnknown = isUnknownWay || asked.unknownFilters.length > 0;
  const readPage = way && !isUnknown ? createPageReader(api, entity, way, query) : undefined;
  // The address without its unknown filters is another query, although it has the same valid ones.
  const rows = useRows(api, isUnknown ? '' : toListAddress(entity.name, asked), readPage);
  if (!way) return null;
  const chosen = [...new Set([...entity.key.fields, ...query.columns])];
  const fields = query.columns.length > 0 ? chosen : listedFields(entity, way);
  const { columns, constants } = arrangeColumns(entity, user, fields, rows.items);
  const count = rows.items.length;
  return (
    <>
      {isUnknownWay && (
        <Notice kind="info">
          {entity.name} has no index “{asked.by}”, or your roles do not see it. Choose another way to read.
        </Notice>
      )}
      {asked.unknownFilters.length > 0 && (
        <Notice kind="info">
          {asked.unknownFilters.map((text) => `“${text}”`).join(', ')}{' '}
          {asked.unknownFilters.length === 1 ? 'is no filter' : 'are no filters'}, so nothing was read. A filter is a
          field, an operator ({Object.keys(OPERATORS).join(', ')}) and a value, such as “age ge 30”.
        </Notice>
      )}
      {!isUnknownWay && unknownColumns.length > 0 && (
        <Notice kind="info">
          The list has no {unknownColumns.length === 1 ? 'column' : 'columns'}{' '}
          {unknownColumns.map((column) => `“${column}”`).join(', ')}, or your roles do not see{' '}
          {unknownColumns.length === 1 ? 'it' : 'them'}.
        </Notice>
      )}
      <FindValue entity={entity} ways={ways} query={{ ...query, filters: [] }} />
      <ReadForm
        key={address.query.toString()}
        entity={entity}
        ways={ways}
        query={query}
        onRead={(next) => navigate(addressOf(entity, ways, next))}
      />
      {way.kind === 'partition' && readPage && readsPast(model, user) && (
        <AsOf
          key={query.at}
          at={query.at}
          onChoose={(at) => navigate(toListAddress(entity.name, { ...query, by: way.id, at }))}
        />
      )}
      <ReadError entity={entity} error={rows.error} />
      {readPage && !(rows.error !== undefined && count === 0) && (
        <p class="summary" role="status" aria-busy={rows.isLoading}>
          {plural(count, 'row')}
          {rows.isComplete || rows.error !== undefined
            ? ''
            : rows.isLoading
              ? ', reading…'
              : rows.isWaiting
                ? ' so far; the last pages had no match'
                : ' so far; scroll to read more'}
          {rows.costs.length > 0 && <small> · {formatCosts(rows.costs)}</small>}
          {constants.length > 0 && <small> · {sayConstants(constants, rows.items[0])}</small>}
        </p>
      )}
      {count > 0 && (
        <RowList
          key={query.at}
          entity={entity}
          columns={columns}
          rows={rows.items}
          isComplete={rows.isComplete}
          isPast={query.at !== ''}
          more={rows.more}
        />
      )}
      {rows.isWaiting && rows.error === undefined && (
        <button type="button" class="secondary outline" onClick={rows.more}>
          Read on
        </button>
      )}
      {rows.isComplete && count === 0 && <Notice kind="info">No row matches.</Notice>}
      {!readPage && !isUnknown && <StartReading {...{ entity, ways, way, query, isOpened }} />}
      {query.at === '' && may(entity, 'create', user) && (
        <p class="actions">
          <a class="link-button" href={toAddress(['entities', entity.name, 'new'], query.given)}>
            New row
          </a>
        </p>
      )}
    </>
  );
}

/** A read that the rules do not open is no failure: the page says so, and which other ways there are. */
function ReadError({ entity, error }: { readonly entity: Entity; readonly error: unknown }) {
  if (!(error instanceof RowkeyClientError && error.code === 'forbidden')) return <ErrorNotice error={error} />;
  return (
    <Notice kind="info">
      Your roles do not read {entity.name} this way. {error.message} Choose another way to read, or see{' '}
      <a href={toAddress(['entities', entity.name, 'access'])}>who may do what</a>.
    </Notice>
  );
}

/** The list, or the row if its key is given. */
function addressOf(entity: Entity, ways: readonly Way[], query: ListQuery): string {
  const isKey = ways.find(({ id }) => id === query.by)?.kind === 'key';
  return isKey || (query.by === '' && ways[0]?.kind === 'key')
    ? toAddress(['entities', entity.name, 'rows', ...keyPath(entity, query.given)])
    : toListAddress(entity.name, query);
}
