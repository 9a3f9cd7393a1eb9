/**
 * A deep copy with frozen arrays and plain objects. Instances of classes (schemas, regular expressions) and objects that
 * are already frozen, such as other declarations, are shared.
 */
export function frozenCopy<Value>(value: Value): Value;
export function frozenCopy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map((element) => frozenCopy(element)));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, frozenCopy(member)]);
  return Object.freeze(Object.assign(Object.create(prototype), Object.fromEntries(entries)));
}
