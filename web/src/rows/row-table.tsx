import { type Entity, isNumeric, keyPath, type Values } from '../api/model.ts';
import { type Column, Table } from '../ui/table.tsx';
import { FieldCell } from '../ui/value.tsx';
import { rowAddress } from './row-address.ts';

/** A field of a row. The last field of the key leads to the page of the row. */
export function RowCell(props: { readonly entity: Entity; readonly row: Values; readonly field: string }) {
  const { entity, row, field } = props;
  const cell = <FieldCell entity={entity} field={field} value={row[field]} />;
  if (field !== entity.key.fields.at(-1)) return cell;
  return (
    <a href={rowAddress(entity, row)} aria-label={keyPath(entity, row).join(' / ')}>
      {cell}
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
  const columns = fields.map(
    (field): Column<Values> => ({
      title: field,
      isName: field === entity.key.fields.at(-1),
      isNumber: isAmount(entity, field),
      cell: (row) => <RowCell entity={entity} row={row} field={field} />,
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
