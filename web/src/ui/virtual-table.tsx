import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
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
  /** The column by which the items are sorted; undefined for the order of the list. */
  readonly sort?: Sort | undefined;
  /** Called with the column of a head that the user chooses. Absent if the items cannot be sorted. */
  readonly onSort?: (column: string) => void;
  /** Before the first cell of an item, such as a box to select it. */
  readonly lead?: ((item: Item) => ComponentChildren) | undefined;
}

export interface Sort {
  readonly column: string;
  readonly isDescending: boolean;
}

const ROW_PX = 34;
/** On a phone a row is a card with a line for each column: see lists.css. */
const LINE_PX = 30;
const CARD_PX = 22;
const PHONE = '(max-width: 48rem)';
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
  sort,
  onSort,
  lead,
}: VirtualTableProps<Item>) {
  const region = useRef<HTMLElement>(null);
  const isPhone = useMedia(PHONE);
  const height = isPhone ? columns.length * LINE_PX + CARD_PX : ROW_PX;
  const virtual = useVirtualRows(region, items.length, height);
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
              <th
                key={column}
                scope="col"
                class={classOf(column)}
                aria-sort={sort?.column === column ? (sort.isDescending ? 'descending' : 'ascending') : undefined}
              >
                {onSort ? (
                  <button type="button" class="plain sort" onClick={() => onSort(column)}>
                    {column}
                    {sort?.column === column && <span aria-hidden="true">{sort.isDescending ? ' ▼' : ' ▲'}</span>}
                  </button>
                ) : (
                  column
                )}
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
                <tr key={index} aria-rowindex={index + 2} style={{ [isPhone ? 'minHeight' : 'height']: `${height}px` }}>
                  {columns.map((column) => (
                    <td key={column} class={classOf(column)} data-label={column}>
                      {column === columns[0] && lead?.(item)}
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

function useMedia(query: string): boolean {
  const [isMatch, setMatch] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const follow = () => setMatch(list.matches);
    list.addEventListener('change', follow);
    follow();
    return () => list.removeEventListener('change', follow);
  }, [query]);
  return isMatch;
}

function useVirtualRows(region: { readonly current: HTMLElement | null }, count: number, height: number) {
  const [, render] = useReducer<number, void>((turn) => turn + 1, 0);
  const kept = useRef<Virtualizer<HTMLElement, HTMLElement>>(undefined);
  const options = {
    count,
    getScrollElement: () => region.current,
    estimateSize: () => height,
    overscan: 10,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => render(),
  };
  kept.current ??= new Virtualizer(options);
  const virtual = kept.current;
  virtual.setOptions(options);
  useLayoutEffect(() => {
    if (height > 0) virtual.measure();
  }, [virtual, height]);
  useEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}
