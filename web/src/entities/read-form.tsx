import { useEffect, useRef, useState } from 'preact/hooks';
import type { Entity } from '../api/model.ts';
import { sayLeftOut } from '../ui/format.ts';
import { FilterRows } from './filter-rows.tsx';
import type { ListQuery } from './list-query.ts';
import { findRead, type Way } from './ways.ts';

interface ReadFormProps {
  readonly entity: Entity;
  readonly ways: readonly Way[];
  readonly query: ListQuery;
  readonly onRead: (query: ListQuery) => void;
  /** The text of the button. */
  readonly action?: string;
}

/** What to read: the way, its values, bounds, filters and columns. */
export function ReadForm({ entity, ways, query, onRead, action }: ReadFormProps) {
  const [draft, setDraft] = useState(query);
  const form = useRef<HTMLFormElement>(null);
  // An address that names a way without its values comes from a link to find a row.
  const isAsking = query.by !== '' && Object.keys(query.given).length === 0;
  useEffect(() => {
    if (isAsking) form.current?.querySelector<HTMLElement>('input[required]')?.focus();
  }, [isAsking]);
  const way = ways.find(({ id }) => id === draft.by) ?? ways[0];
  if (!way) return null;
  const read = findRead(way, draft.given);
  const change = (part: Partial<ListQuery>) => setDraft({ ...draft, ...part });
  const isRequired = (field: string) => way.ranges.every((range) => range.fields.includes(field));
  const isList = way.kind !== 'key';
  const bounded = read?.range?.bounded;
  const isMany = !(way.isOne && read && read.fields.length === way.fields.length);
  return (
    <form
      class="read"
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        onRead({
          ...draft,
          ...(bounded ? {} : { from: '', to: '' }),
          filters: isMany ? draft.filters.filter(({ field }) => way.available.includes(field)) : [],
          columns: draft.columns.filter((field) => way.available.includes(field)),
        });
      }}
    >
      <div class="fields">
        <label>
          Read by
          <select
            value={way.id}
            aria-describedby="way-hint"
            onChange={({ currentTarget }) => change({ by: currentTarget.value, from: '', to: '' })}
          >
            {ways.map(({ id, title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {way.fields.map((field) => (
          <label key={field}>
            {field}
            {isRequired(field) ? '' : ' (optional)'}
            <input
              value={draft.given[field] ?? ''}
              required={isRequired(field)}
              autocomplete="off"
              onInput={({ currentTarget }) => change({ given: { ...draft.given, [field]: currentTarget.value } })}
            />
          </label>
        ))}
        {bounded && (
          <>
            <label>
              {bounded} from
              <input
                value={draft.from}
                autocomplete="off"
                onInput={({ currentTarget }) => change({ from: currentTarget.value })}
              />
            </label>
            <label>
              {bounded} to
              <input
                value={draft.to}
                autocomplete="off"
                onInput={({ currentTarget }) => change({ to: currentTarget.value })}
              />
            </label>
          </>
        )}
        <button type="submit">{action ?? (isList ? 'Read' : 'Open')}</button>
      </div>
      <p id="way-hint" class="muted">
        <small>
          {way.title}: {way.hint}
          {way.needs.length > 0 && `. ${sayLeftOut(way.needs, 'it')}`}
        </small>
      </p>
      <div class="choices" hidden={!isList}>
        {isMany && (
          <details open={query.filters.length > 0}>
            <summary>Filters{draft.filters.length > 0 ? ` (${draft.filters.length})` : ''}</summary>
            <FilterRows
              entity={entity}
              fields={way.available.filter((field) => !way.fields.includes(field))}
              filters={draft.filters}
              onChange={(filters) => change({ filters })}
            />
          </details>
        )}
        <details>
          <summary>Columns{draft.columns.length > 0 ? ` (${draft.columns.length})` : ''}</summary>
          <ColumnChoice
            entity={entity}
            available={way.available}
            columns={draft.columns}
            onChange={(columns) => change({ columns })}
          />
        </details>
      </div>
    </form>
  );
}

interface ColumnChoiceProps {
  readonly entity: Entity;
  readonly available: readonly string[];
  readonly columns: readonly string[];
  readonly onChange: (columns: readonly string[]) => void;
}

/** Storage returns only the chosen fields. Large ones are read only if they are chosen. */
function ColumnChoice({ entity, available, columns, onChange }: ColumnChoiceProps) {
  const free = available.filter((field) => !entity.key.fields.includes(field));
  return (
    <fieldset>
      <legend class="muted">
        <small>Without a choice, all but large fields are read.</small>
      </legend>
      {free.map((field) => (
        <label key={field}>
          <input
            type="checkbox"
            checked={columns.includes(field)}
            onChange={({ currentTarget }) =>
              onChange(currentTarget.checked ? [...columns, field] : columns.filter((each) => each !== field))
            }
          />
          {field}
        </label>
      ))}
    </fieldset>
  );
}
