import type { ComponentChildren } from 'preact';
import { ScrollRegion } from './scroll-region.tsx';

export interface Column<Item> {
  readonly title: string;
  /** Numbers are aligned by their last digit. */
  readonly isNumber?: boolean;
  /** True if the cell is a heading, which names its row. Without one, the first cell names the row. */
  readonly isHeader?: boolean;
  readonly cell: (item: Item) => ComponentChildren;
}

interface TableProps<Item> {
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  /** Names an item among the others. By default, its position. */
  readonly keyOf?: (item: Item) => string;
  /** True for an item to highlight. */
  readonly isNew?: (item: Item) => boolean;
  /** For a table whose rows arrive while it is shown. */
  readonly isLive?: boolean;
}

/** The column that names a row stays in view when the others scroll sideways. */
export function toCellClass(isNumber = false, isName = false): string | undefined {
  return [isNumber ? 'number' : '', isName ? 'name' : ''].filter(Boolean).join(' ') || undefined;
}

/** A table that scrolls sideways if it is too wide. For thousands of items, use VirtualTable. */
export function Table<Item>({ label, columns, items, keyOf, isNew, isLive = false }: TableProps<Item>) {
  const name = columns.find(({ isHeader }) => isHeader) ?? columns[0];
  const classOf = (column: Column<Item>) => toCellClass(column.isNumber, column === name);
  return (
    <ScrollRegion label={label} {...(isLive ? { class: 'rows' } : {})}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody aria-live={isLive ? 'polite' : undefined}>
          {items.map((item, position) => (
            <tr key={keyOf?.(item) ?? position} class={isNew?.(item) ? 'new' : undefined}>
              {columns.map((column) =>
                column.isHeader ? (
                  <th key={column.title} scope="row" class={classOf(column)} data-label={column.title}>
                    {column.cell(item)}
                  </th>
                ) : (
                  <td key={column.title} class={classOf(column)} data-label={column.title}>
                    {column.cell(item)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}
