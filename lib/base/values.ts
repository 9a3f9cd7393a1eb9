/** The fields of an entity as its schema parsed them. */
export type Values = Readonly<Record<string, unknown>>;

/** An entity as it is stored. */
export interface Stored {
  readonly etag: string;
  readonly values: Values;
}

/** A projection returns null for a property that a row lacks, and a patch removes a field by null. */
export function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The listed fields that have a value. */
export function pick(values: Values, fields: readonly string[]): Values {
  return Object.fromEntries(
    fields.filter((field) => values[field] !== undefined).map((field) => [field, values[field]]),
  );
}

/** All fields except the listed ones. */
export function omit(values: Values, fields: readonly string[]): Values {
  const left = { ...values };
  for (const field of fields) delete left[field];
  return left;
}
