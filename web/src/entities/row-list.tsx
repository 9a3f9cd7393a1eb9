import { useMemo, useState } from 'preact/hooks';
import { canTake, describeRow, type Entity, keyPath, may, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { CellEditor, editableFields } from '../rows/cell-editor.tsx';
import { isAmount, RowCell } from '../rows/row-table.tsx';
import { SelectedRows } from '../rows/selected-rows.tsx';
import { sortRows } from '../rows/sort-rows.ts';
import { plural } from '../ui/format.ts';
import { type Sort, VirtualTable } from '../ui/virtual-table.tsx';

interface RowListProps {
  readonly entity: Entity;
  /** The first one has the link of the row. */
  readonly columns: readonly string[];
  readonly rows: readonly Values[];
  readonly isComplete: boolean;
  /** True for rows as they were, which nothing can change. */
  readonly isPast?: boolean;
  /** Called near the end of the rows, unless they are complete. */
  readonly more?: () => void;
}

/** Rows of an entity, of any number, each with a link to its page. The loaded ones can be sorted, selected, and changed in their cells. */
export function RowList({ entity, columns, rows, isComplete, isPast, more = () => undefined }: RowListProps) {
  const { model, user } = useApp();
  const [sort, setSort] = useState<Sort>();
  const [selected, setSelected] = useState<readonly string[]>([]);
  const [changes, setChanges] = useState<Changes>(new Map());
  const [edited, setEdited] = useState<{ readonly id: string; readonly field: string }>();
  const idOf = (row: Values) => JSON.stringify(keyPath(entity, row));
  const known = changes.size === 0 ? rows : rows.flatMap((row) => applyChange(row, changes.get(idOf(row))));
  const shown = sort ? sortRows(known, sort) : known;
  const editable = useMemo(
    () => (isPast ? [] : editableFields(entity, user).map(({ name }) => name)),
    [entity, user, isPast],
  );
  const isSelectable =
    !isPast && entity.series === undefined && (canTake(entity, 'delete', model, user) || may(entity, 'update', user));
  const note = (id: string, change: Values | 'deleted') =>
    setChanges(
      (last) => new Map([...last, [id, change === 'deleted' ? change : { ...Object(last.get(id)), ...change }]]),
    );
  return (
    <>
      {isSelectable && selected.length > 0 && (
        <SelectedRows
          entity={entity}
          rows={known.filter((row) => selected.includes(idOf(row)))}
          onAll={() => setSelected(known.map(idOf))}
          onClear={() => setSelected([])}
          onChanged={(row, change) => {
            note(idOf(row), change);
            if (change === 'deleted') setSelected((last) => last.filter((id) => id !== idOf(row)));
          }}
        />
      )}
      {sort && (
        <p class="summary sorted" role="status">
          <small>
            {isComplete
              ? `Sorted by ${sort.column}.`
              : `Only the ${plural(known.length, 'loaded row')} are sorted by ${sort.column}; the list goes on.`}
          </small>{' '}
          {!isComplete && (
            <button type="button" class="secondary outline" onClick={more}>
              Load more
            </button>
          )}
          <button type="button" class="secondary outline" onClick={() => setSort(undefined)}>
            Order of the list
          </button>
        </p>
      )}
      <VirtualTable
        label={`Rows of ${entity.name}`}
        columns={columns}
        items={shown}
        // Rows that arrive while the user scrolls would move the others.
        isComplete={isComplete || sort !== undefined}
        more={more}
        sort={sort}
        onSort={(column) => setSort(nextSort(sort, column))}
        lead={
          isSelectable
            ? (row: Values) => (
                <input
                  type="checkbox"
                  aria-label={`Select ${describeRow(entity, user, row)}`}
                  checked={selected.includes(idOf(row))}
                  onChange={({ currentTarget: { checked } }) =>
                    setSelected((last) => (checked ? [...last, idOf(row)] : last.filter((id) => id !== idOf(row))))
                  }
                />
              )
            : undefined
        }
        cell={(row: Values, field) =>
          edited?.id === idOf(row) && edited.field === field ? (
            <CellEditor
              entity={entity}
              row={row}
              field={field}
              onSaved={(values) => {
                note(idOf(row), { [field]: values[field] });
                setEdited(undefined);
              }}
              onClose={() => setEdited(undefined)}
            />
          ) : (
            <>
              <RowCell entity={entity} row={row} field={field} isLink={field === columns[0]} />
              {editable.includes(field) && (
                <button
                  type="button"
                  class="plain edit"
                  aria-label={`Edit ${field}`}
                  title={`Edit ${field}`}
                  onClick={() => setEdited({ id: idOf(row), field })}
                ></button>
              )}
            </>
          )
        }
        isNumber={(field) => isAmount(entity, field)}
      />
    </>
  );
}

/** What the page has changed of rows since they were read. */
type Changes = ReadonlyMap<string, Values | 'deleted'>;

function applyChange(row: Values, change: Values | 'deleted' | undefined): readonly Values[] {
  if (change === 'deleted') return [];
  return [change ? { ...row, ...change } : row];
}

/** Ascending, then descending, then the order of the list. */
function nextSort(sort: Sort | undefined, column: string): Sort | undefined {
  if (sort?.column !== column) return { column, isDescending: false };
  return sort.isDescending ? undefined : { column, isDescending: true };
}
