import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import { ScrollRegion } from './scroll-region.tsx';
import { toCellClass } from './table.tsx';

interface VirtualTableProps<Item> {
  readonly label: string;
  /** The first one names a row. */
  readonly columns: readonly string[];
  readonly items: readonly Item[];
  readonly isComplete: boolean;
  /** Called near the end of the items. */
  readonly more: () => void;
  readonly cell: (item: Item, column: string) => ComponentChildren;
  readonly isNumber: (column: string) => boolean;
}

const ROW_PX = 34;
/** More are read when this many rows are left below. */
const AHEAD = 50;

/**
 * A table of any length, of which only the visible rows are in the page. Rows keep their number for a screen reader, and the
 * region scrolls by keyboard.
 */
export function VirtualTable<Item>({
  label,
  columns,
  items,
  isComplete,
  more,
  cell,
  isNumber,
}: VirtualTableProps<Item>) {
  const region = useRef<HTMLElement>(null);
  const virtual = useVirtualRows(region, items.length);
  const rows = virtual.getVirtualItems();
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (!isComplete && last >= items.length - AHEAD) more();
  }, [isComplete, last, items.length, more]);
  const classOf = (column: string) => toCellClass(isNumber(column), column === columns[0]);
  const before = rows[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (rows.at(-1)?.end ?? 0);
  return (
    <ScrollRegion label={label} class="rows" region={region}>
      <table aria-rowcount={isComplete ? items.length + 1 : -1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th key={column} scope="col" class={classOf(column)}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space height={before} />
          {rows.map(({ index }) => {
            const item = items[index];
            return (
              item !== undefined && (
                <tr key={index} aria-rowindex={index + 2} style={{ height: `${ROW_PX}px` }}>
                  {columns.map((column) => (
                    <td key={column} class={classOf(column)}>
                      {cell(item, column)}
                    </td>
                  ))}
                </tr>
              )
            );
          })}
          <Space height={after} />
        </tbody>
      </table>
    </ScrollRegion>
  );
}

/** Fills the place of the rows above or below the visible ones. */
function Space({ height }: { readonly height: number }) {
  if (height <= 0) return null;
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row without cells cannot be focused
  return <tr class="space" aria-hidden="true" style={{ height: `${height}px` }} />;
}

function useVirtualRows(region: { readonly current: HTMLElement | null }, count: number) {
  const [, render] = useReducer<number, void>((turn) => turn + 1, 0);
  const kept = useRef<Virtualizer<HTMLElement, HTMLElement>>(undefined);
  const options = {
    count,
    getScrollElement: () => region.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => render(),
  };
  kept.current ??= new Virtualizer(options);
  const virtual = kept.current;
  virtual.setOptions(options);
  useEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}
