/** The fields of an entity as its schema parsed them. */
export type Values = Readonly<Record<string, unknown>>;

/** Those of the fields that have a value. */
export function pick(values: Values, fields: readonly string[]): Values {
  return Object.fromEntries(
    fields.filter((field) => values[field] !== undefined).map((field) => [field, values[field]]),
  );
}

/** All but those of the fields. */
export function omit(values: Values, fields: readonly string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([field]) => !fields.includes(field)));
}
