export const OPERATORS = ['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'in'] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Comparison {
  readonly field: string;
  readonly operator: Operator;
  /** One value; for `in` one or more. */
  readonly values: readonly (string | number | boolean)[];
  /** Set if instants are compared whose texts have another order: by how many milliseconds an offset moves a text at most. */
  readonly byInstant?: number;
  /** True if texts of digits are compared as the whole numbers of 64 bits that a table of another program has. */
  readonly byInteger?: true;
}

/** A row is within reach if all comparisons of one alternative hold. Without any alternative, no row is. */
export type Limit = readonly (readonly Comparison[])[];

/** A change of a row is within reach if the row before it and the one after it are. Without a limit, every row is. */
export interface Transition {
  readonly before?: Limit | undefined;
  readonly after?: Limit | undefined;
}
