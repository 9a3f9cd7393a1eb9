import { useState } from 'preact/hooks';
import { type Entity, keyPath, readableFields, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { type Address, navigate, toAddress } from '../app/router.ts';
import { RowTable } from '../rows/row-table.tsx';
import { plural, sayLeftOut } from '../ui/format.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { newestFirstLists } from './newest-first.ts';
import { useTail } from './use-tail.ts';

interface TabProps {
  readonly entity: Entity;
  readonly address: Address;
}

/** The newest rows of a log, on top as they arrive. */
export function LiveTab({ entity, address }: TabProps) {
  const { user } = useApp();
  const lists = newestFirstLists(entity, user);
  const given = Object.fromEntries(address.query);
  const [draft, setDraft] = useState(given);
  const list = lists.find(({ id }) => id === (draft.by ?? '')) ?? lists[0];
  if (!list) return null;
  const isComplete = (values: Readonly<Record<string, string>>) => list.fields.every((field) => values[field]);
  return (
    <>
      <form
        class="read"
        onSubmit={(event) => {
          event.preventDefault();
          navigate(toAddress(['entities', entity.name, 'live'], draft));
        }}
      >
        <div class="fields">
          {lists.length > 1 && (
            <label>
              Read by
              <select value={list.id} onChange={({ currentTarget }) => setDraft({ ...draft, by: currentTarget.value })}>
                {lists.map(({ id, title }) => (
                  <option key={id} value={id}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
          )}
          {list.fields.map((field) => (
            <label key={field}>
              {field}
              <input
                value={draft[field] ?? ''}
                required
                autocomplete="off"
                onInput={({ currentTarget }) => setDraft({ ...draft, [field]: currentTarget.value })}
              />
            </label>
          ))}
          <button type="submit">Follow</button>
        </div>
        {list.needs.length > 0 && (
          <p class="muted">
            <small>{sayLeftOut(list.needs, `the ${list.title}, so this page does not show them`)}</small>
          </p>
        )}
      </form>
      {address.query.size > 0 && isComplete(given) && (
        <Tail key={address.query.toString()} entity={entity} listId={list.id} given={given} />
      )}
    </>
  );
}

function Tail({
  entity,
  listId,
  given,
}: {
  readonly entity: Entity;
  readonly listId: string;
  readonly given: Readonly<Record<string, string>>;
}) {
  const { api, user } = useApp();
  const [isPaused, setPaused] = useState(false);
  const list = newestFirstLists(entity, user).find(({ id }) => id === listId);
  const values = Object.fromEntries((list?.fields ?? []).map((field) => [field, given[field]]));
  const idOf = (row: Values) => JSON.stringify(keyPath(entity, row));
  const readPage = async (signal: AbortSignal, top: number) =>
    (await list?.list(api, values).page({ top, signal }))?.items ?? [];
  const { rows, error, reads, isMissing } = useTail({ readPage, idOf, isPaused });
  const newRows = new Set(rows.flatMap(({ row, isNew }) => (isNew ? [row] : [])));
  const fields = readableFields(entity, user).filter((field) => !entity.fields[field]?.large);
  return (
    <>
      <div class="actions">
        <button type="button" class="secondary outline" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
      </div>
      <ErrorNotice error={error} />
      <p class="summary">
        {plural(rows.length, 'row')}
        {isPaused ? ', paused' : ', read every 3 seconds'}
        <small> · {plural(reads, 'transaction')}</small>
        {isMissing && ' · More rows came between two reads than a page has: see the tab Rows.'}
      </p>
      {rows.length > 0 && (
        <RowTable
          entity={entity}
          label={`Newest rows of ${entity.name}`}
          fields={fields}
          rows={rows.map(({ row }) => row)}
          isNew={(row) => newRows.has(row)}
        />
      )}
    </>
  );
}
