/**
 * A copy whose arrays and plain objects are frozen, at every depth. Values of classes (schemas, regular expressions) and
 * what is frozen already, as other declarations are, are kept as they are.
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
