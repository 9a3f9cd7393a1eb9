export const OPERATORS = ['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'in'] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Comparison {
  readonly field: string;
  readonly operator: Operator;
  /** One value; for `in` one or more. */
  readonly values: readonly (string | number | boolean)[];
}

/** A row is within reach if all comparisons of one alternative hold. Without any alternative, no row is. */
export type Limit = readonly (readonly Comparison[])[];
