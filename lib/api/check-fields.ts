import type { Values } from '../base/values.ts';
import { compileOnce, maskOf, parse } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';

/** Validates the values of fields like those of an HTTP path. Throws `invalid-input`, which names the field. */
export function checkFields(entity: Entity, values: Values, fields: readonly string[]): Values {
  // A read through an index of list elements names one element.
  const isElement = (field: string) => entity.columns[field] === 'Json' && !Array.isArray(values[field]);
  const given = Object.fromEntries(
    Object.entries(values).map(([field, value]) => [field, isElement(field) ? [value] : value]),
  );
  const schema = compileOnce(entity, 'fields', fields, () => entity.schema.pick(maskOf(fields)).required().strict());
  const checked = parse(schema, given);
  return Object.fromEntries(
    Object.entries(checked).map(([field, value]) => [field, Array.isArray(value) ? value[0] : value]),
  );
}
