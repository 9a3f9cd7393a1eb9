import type { Action, Properties, Row, RowFilter } from './row-types.ts';

/**
 * How the rows of a table that another program fills are stored. Reads and writes of such a table pass through its shape, so that the code above sees
 * rows as Rowkey stores them: `lib/define/codec/existing-rows.ts` makes it of the declarations of the table.
 */
export interface TableShape {
  /** The properties as Rowkey has them, of a row with the types of its properties. */
  toProperties(row: Pick<Row, 'partition' | 'row' | 'properties'>): Properties;
  /** The action as it is stored. Throws `invalid-input` for a value that its type cannot have, and `forbidden` for a table that is only read. */
  toStored(partition: string, action: Action): Action;
  /** True if only all of its properties tell whose row this is, so that a read of some of them is repeated with all. */
  isAmbiguous(stored: Properties): boolean;
  /** The stored properties of which a read makes these. */
  toSelected(select: readonly string[]): string[];
  /**
   * The conditions that storage can evaluate, and whether a row that they let through is of the types of the filter. Comparisons that it cannot evaluate are
   * left out, so the caller compares the rows again.
   */
  toFilter(filter: RowFilter): { readonly filter: RowFilter; readonly isOfType: (properties: Properties) => boolean };
}

/** The shapes of the tables that have one, by the declared name. */
export type TableShapes = ReadonlyMap<string, TableShape>;
