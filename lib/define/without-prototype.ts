/**
 * The same record without a prototype. Names that come from callers, messages and files are looked up in compiled records:
 * `constructor` or `toString` must not be found there unless it is declared.
 */
export function withoutPrototype<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.assign<Record<string, Value>, typeof record>(Object.create(null), record);
}
