/**
 * The same record without a prototype. Callers, messages and files supply the names that are looked up in compiled records:
 * `constructor` or `toString` must not be found unless declared.
 */
export function withoutPrototype<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.assign<Record<string, Value>, typeof record>(Object.create(null), record);
}
