/** The fields of an entity as its schema parsed them. */
export type Values = Readonly<Record<string, unknown>>;

/** An entity in its current state. */
export interface Stored<Fields = Values> {
  /** Pass it as `ifMatch` of a write. */
  readonly etag: string;
  readonly values: Fields;
}

/**
 * What a row has in place of the value of a field: something of another type, or nothing because the row that had it is lost. Rows are
 * also changed by hand. A read of the entity fails, a list has null, and a write that keeps the field stores it as it is.
 */
export class WrongValue {
  /** The properties that the row has for the field. */
  readonly stored: Readonly<Record<string, unknown>>;

  constructor(stored: Readonly<Record<string, unknown>> = {}) {
    this.stored = stored;
  }

  toJSON(): null {
    return null;
  }
}

/** True if a value of the entity cannot be read. */
export function hasWrongValue(values: Values): boolean {
  return Object.values(values).some((value) => value instanceof WrongValue);
}

/** A projection returns null for a property that a row lacks, and a patch removes a field by null. */
export function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && !(value instanceof WrongValue);
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
