import type { Entity, Values } from '../api/model.ts';
import { isAmount, RowCell } from '../rows/row-table.tsx';
import { VirtualTable } from '../ui/virtual-table.tsx';

interface RowListProps {
  readonly entity: Entity;
  /** The first one has the link of the row. */
  readonly columns: readonly string[];
  readonly rows: readonly Values[];
  readonly isComplete: boolean;
  /** Called near the end of the rows, unless they are complete. */
  readonly more?: () => void;
}

/** Rows of an entity, of any number, each with a link to its page. */
export function RowList({ entity, columns, rows, isComplete, more = () => undefined }: RowListProps) {
  return (
    <VirtualTable
      label={`Rows of ${entity.name}`}
      columns={columns}
      items={rows}
      isComplete={isComplete}
      more={more}
      cell={(row, field) => <RowCell entity={entity} row={row} field={field} isLink={field === columns[0]} />}
      isNumber={(field) => isAmount(entity, field)}
    />
  );
}
