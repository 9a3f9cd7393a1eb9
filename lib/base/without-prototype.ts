/**
 * Copies a record without its prototype. Callers, messages and files supply the names that are looked up in compiled records:
 * `constructor` or `toString` must not be found unless declared.
 */
export function withoutPrototype<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.assign<Record<string, Value>, typeof record>(Object.create(null), record);
}

/** The members that have a value, in a record without a prototype. */
export function present<Value>(record: Readonly<Record<string, Value | undefined>>): Record<string, Value> {
  const entries = Object.entries(record).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return withoutPrototype(Object.fromEntries(entries));
}

/** The record with each member changed, without a prototype. */
export function mapValues<Value, Changed>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value, name: string) => Changed,
): Record<string, Changed> {
  const changed = Object.entries(record).map(([name, value]) => [name, change(value, name)] as const);
  return withoutPrototype(Object.fromEntries(changed));
}
