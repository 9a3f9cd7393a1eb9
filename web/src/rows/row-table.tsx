import { describeRow, type Entity, isNumeric, keyPath, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { type Column, Table } from '../ui/table.tsx';
import { FieldCell } from '../ui/value.tsx';
import { rowAddress } from './row-address.ts';
import { arrangeColumns } from './row-columns.ts';

interface RowCellProps {
  readonly entity: Entity;
  readonly row: Values;
  readonly field: string;
  /** True in the column that leads to the page of the row. */
  readonly isLink: boolean;
}

/** A field of a row. */
export function RowCell({ entity, row, field, isLink }: RowCellProps) {
  const { user } = useApp();
  const value = row[field];
  const cell = <FieldCell entity={entity} field={field} value={value} />;
  if (!isLink) return cell;
  // A row may lack the field that names the others.
  const isNamed = value !== undefined && value !== null && value !== '';
  return (
    <a href={rowAddress(entity, row)} aria-label={describeRow(entity, user, row)}>
      {isNamed ? cell : keyPath(entity, row).join(' / ')}
    </a>
  );
}

/** True for numbers to compare. A number of the key is a name. */
export function isAmount(entity: Entity, field: string): boolean {
  return isNumeric(entity, field) && !entity.key.fields.includes(field);
}

interface RowTableProps {
  readonly entity: Entity;
  readonly label: string;
  readonly fields: readonly string[];
  readonly rows: readonly Values[];
  /** True for a row to highlight. Set for rows that arrive while they are shown. */
  readonly isNew?: (row: Values) => boolean;
}

/** Some rows of an entity. */
export function RowTable({ entity, label, fields, rows, isNew }: RowTableProps) {
  const { user } = useApp();
  const columns = arrangeColumns(entity, user, fields, rows).columns.map(
    (field, position): Column<Values> => ({
      title: field,
      isNumber: isAmount(entity, field),
      cell: (row) => <RowCell entity={entity} row={row} field={field} isLink={position === 0} />,
    }),
  );
  return (
    <Table
      label={label}
      columns={columns}
      items={rows}
      keyOf={(row) => keyPath(entity, row).join('/')}
      {...(isNew ? { isNew, isLive: true } : {})}
    />
  );
}
