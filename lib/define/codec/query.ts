import { notJson } from '../../base/check-json.ts';
import { RowkeyError } from '../../base/errors.ts';
import { findNotJson, UNICODE } from '../../base/json-value.ts';
import type { Values } from '../../base/values.ts';
import type { RowComparison, RowCondition } from '../../storage/row-query.ts';
import { type Comparison, OPERATORS, type Operator } from '../declaration/comparison.ts';
import type { ColumnType } from '../declaration/declaration.ts';
import type { Entity } from '../declaration/entity.ts';
import { fieldSchemas, isInstant } from '../schema/field-schema.ts';
import { compareInstants, offsetOfForms, textsAround } from '../schema/instants.ts';
import { columnFormOf, fieldsToProperties } from './entity-codec.ts';
import { isInt64, storedTextType } from './existing-rows.ts';
import { groupsToRead, withoutApart } from './further-rows.ts';
import { validateRequired } from './validation.ts';

/** What a read asks for: the fields that it selects, and the filter of its entities. */

/** The selected fields of an entity and of its children, by the name of each; undefined for all fields. */
export type Selection = Readonly<Record<string, readonly string[] | undefined>>;

/**
 * Sorts the selected names by entity: `email` is a field of the entity and `reviews.year` of an included child. `available` are the
 * fields of a partial copy. Throws `invalid-input`.
 */
export function toSelection(
  entity: Entity,
  names: readonly string[] | undefined,
  {
    kinds = [],
    groups = [],
    available = Object.keys(entity.columns),
  }: {
    readonly kinds?: readonly Entity[];
    /** Groups of fields to return besides the selected fields, or besides those that every read returns. */
    readonly groups?: readonly string[];
    readonly available?: readonly string[] | undefined;
  } = {},
): Selection {
  const own = available.map((field) => [field, { entity, field }] as const);
  const ofKinds = kinds.flatMap((kind) =>
    Object.keys(kind.columns).map((field) => [`${kind.name}.${field}`, { entity: kind, field }] as const),
  );
  const known = new Map([...own, ...ofKinds]);
  const selection: Record<string, string[]> = {};
  for (const name of new Set(names)) {
    const found = known.get(name);
    if (!found) {
      const of = name.includes('.') ? 'an included child' : entity.name;
      throw new RowkeyError('invalid-input', `"select" names "${name.slice(0, 100)}", which is not a field of ${of}.`, {
        field: 'select',
        accepted: [...known.keys()].join(', '),
      });
    }
    selection[found.entity.name] ??= [];
    selection[found.entity.name]?.push(found.field);
  }
  if (groups.length === 0) return selection;
  const asked = selection[entity.name] ?? Object.keys(withoutApart(entity, entity.columns));
  const ofGroups = groups.flatMap((group) => entity.split[group] ?? []);
  return { ...selection, [entity.name]: [...new Set([...asked, ...ofGroups])] };
}

/** The fields to read for the selected ones. A reference may be bound to the key of its entity. */
export function withKeyOfReferences(entity: Entity, select: readonly string[]): readonly string[] {
  const references = entity.referenceFields;
  return select.some((field) => references.includes(field)) ? [...entity.keyFields, ...select] : select;
}

/**
 * Filters compare fields with values. No comparison holds for a field without a value, as in SQL. Texts are compared by UTF-16
 * code unit, as storage does. Storage leaves out rows that do not match, as far as it can; the rows that it returns are always
 * compared here too, so this file alone decides which entities match.
 */

const EQUALITY: readonly Operator[] = ['eq', 'ne', 'in'];
const isOrdered = (operator: Operator) => !EQUALITY.includes(operator);

type Scalar = string | number | boolean;

/** Alternatives of comparisons, all of which hold in at least one of them. */
interface AnyOf {
  readonly anyOf: readonly (readonly Comparison[])[];
}

/** Conditions that must all hold. */
export type Filter = readonly (Comparison | AnyOf)[];

/** The fields that a filter compares. */
export function comparedFields(filter: Filter = []): readonly string[] {
  return filter.flatMap((one) => ('anyOf' in one ? one.anyOf.flat() : [one])).map(({ field }) => field);
}

/** A comparison with values that have not been validated. */
export interface AskedComparison {
  readonly field: string;
  readonly operator: Operator;
  readonly values: readonly unknown[];
}

const MAX_COMPARISONS = 20;
const MAX_LISTED_VALUES = 100;
const INT32_LIMIT = 2 ** 31;

/** A filter as it is asked for: comparisons, or the form of the store and of JSON, such as `{ jobTitle: 'Clerk', age: { ge: 30 } }`. */
export type AskedFilter = Values | readonly AskedComparison[];

export function askedFields(where: AskedFilter = {}): readonly string[] {
  return isComparisons(where) ? where.map(({ field }) => field) : Object.keys(where);
}

function isComparisons(where: AskedFilter): where is readonly AskedComparison[] {
  return Array.isArray(where);
}

/** The reason why a field cannot be compared, or undefined. `available` are the fields of a partial copy. */
export function reasonNotToFilter(entity: Entity, field: string, available?: readonly string[]): string | undefined {
  if (entity.encrypted.includes(field)) return 'is encrypted, so storage cannot compare it';
  if (columnFormOf(entity, field)) return 'is not stored as one property, so storage cannot compare it';
  if (groupsToRead(entity, [field]).length > 0)
    return 'is in a further row of the entity, so storage cannot compare it';
  if (entity.columns[field] === 'Json') return 'is stored as JSON, which storage cannot compare';
  const isAvailable = available?.includes(field) ?? Object.hasOwn(entity.columns, field);
  return isAvailable ? undefined : 'is not in the copies of the index';
}

/** Throws `invalid-input`, which names the field. `available` are the fields of a partial copy. */
export function compileFilter(entity: Entity, where: AskedFilter = {}, available?: readonly string[]): Comparison[] {
  if (!isComparisons(where)) checkWhere(where);
  return toFilter(entity, isComparisons(where) ? where : comparisonsOf(where), available);
}

/** An object without members of its own, such as a `Map` or a `Date`, would be a filter that every entity matches. */
function checkWhere(where: unknown): void {
  const found = findNotJson(where);
  // The filter itself names the field of such a text.
  if (found && found.accepted !== UNICODE) throw notJson({ ...found, path: ['where', ...found.path] });
  if (typeof where !== 'object' || where === null) throw notJson({ path: ['where'], accepted: 'an object' });
}

function comparisonsOf(where: Values): AskedComparison[] {
  return Object.entries(where).flatMap(([field, condition]) => {
    if (condition === undefined) return [];
    if (typeof condition !== 'object' || condition === null)
      return [{ field, operator: 'eq' as const, values: [condition] }];
    if (Array.isArray(condition) || Object.keys(condition).length === 0)
      throw filterError(field, 'has no operator', OPERATORS.join(', '));
    return Object.entries(condition).flatMap(([name, value]) => {
      const operator = OPERATORS.find((one) => one === name);
      if (!operator) throw filterError(field, `has no operator "${name.slice(0, 20)}"`, OPERATORS.join(', '));
      return value === undefined ? [] : [{ field, operator, values: Array.isArray(value) ? value : [value] }];
    });
  });
}

/** The filter of each included child by its name. Throws `invalid-input`. */
export function compileChildFilters(
  { name }: Entity,
  kinds: readonly Entity[],
  where: Readonly<Record<string, AskedFilter>>,
): Readonly<Record<string, Filter>> {
  checkWhere(where);
  const filters = Object.entries(where).map(([child, conditions]) => {
    const kind = kinds.find((one) => one.name === child);
    if (kind) return [child, compileFilter(kind, conditions)] as const;
    throw new RowkeyError(
      'invalid-input',
      `"where" names "${child.slice(0, 100)}", which is not an included child of ${name}.`,
      {
        field: 'where',
        accepted: kinds.map((one) => one.name).join(', ') || 'children that are included',
      },
    );
  });
  return Object.fromEntries(filters);
}

/** Validates comparisons and converts their values to the stored form. */
function toFilter(entity: Entity, asked: readonly AskedComparison[], available?: readonly string[]): Comparison[] {
  if (asked.length > MAX_COMPARISONS)
    throw filterError(asked[MAX_COMPARISONS]?.field ?? '', 'exceeds the filter', `${MAX_COMPARISONS} comparisons`);
  return asked.map(({ field, operator, values }) => {
    const type = entity.columns[field];
    if (!type) throw filterError(field.slice(0, 100), `is not a field of ${entity.name}`, 'a field of the entity');
    const reason = reasonNotToFilter(entity, field, available);
    if (reason) throw filterError(field, reason, 'other fields');
    const most = operator === 'in' ? MAX_LISTED_VALUES : 1;
    if (values.length < 1 || values.length > most)
      throw filterError(field, `has ${values.length} values for "${operator}"`, most > 1 ? `1 to ${most}` : 'one');
    if (type === 'Boolean' && isOrdered(operator))
      throw filterError(field, 'is true or false and has no order', EQUALITY.join(', '));
    const toValue = isOrdered(operator) ? toBound : toEqual;
    return toComparison(entity, {
      field,
      operator,
      values: values.map((value) => checkScalar(field, toValue(entity, field, value))),
    });
  });
}

/** The comparison, by instant or by number if the field has an order other than that of its texts. */
export function toComparison(entity: Entity, comparison: Comparison): Comparison {
  const { field, operator } = comparison;
  if (isOrdered(operator) && isInt64Text(entity, field)) return { ...comparison, byInteger: true };
  if (!isOrdered(operator) || fieldSchemas(entity.schema)[field]?.format !== 'date-time') return comparison;
  const byInstant = offsetOfForms(entity.schema, field);
  return byInstant === undefined ? comparison : { ...comparison, byInstant };
}

export function matches(filter: Filter, values: Values): boolean {
  return filter.every((one) =>
    'anyOf' in one ? one.anyOf.some((each) => matches(each, values)) : holds(one, values[one.field]),
  );
}

/** True if the comparison holds for a value of its field. */
export function holds({ operator, values: compared, byInstant, byInteger }: Comparison, value: unknown): boolean {
  const [first] = compared;
  if (first === undefined || !isScalar(value) || typeof value !== typeof first) return false;
  if (byInteger) return isInt64(value) && isInt64(first) && isInOrder(operator, BigInt(value), BigInt(first));
  if (byInstant !== undefined && typeof value === 'string' && typeof first === 'string')
    return holds({ field: '', operator, values: [0] }, compareInstants(value, first));
  if (operator === 'ne') return value !== first;
  return isOrdered(operator) ? isInOrder(operator, value, first) : compared.includes(value);
}

function isInOrder<Value extends Scalar | bigint>(operator: Operator, value: Value, bound: Value): boolean {
  if (operator === 'gt') return value > bound;
  if (operator === 'ge') return value >= bound;
  return operator === 'lt' ? value < bound : value <= bound;
}

function isInt64Text(entity: Entity, field: string): boolean {
  return storedTextType(entity, field) === 'Int64';
}

/** The only text of a field in the rows that match, if each alternative names it. */
export function onlyText(filter: Filter, field: string): string | undefined {
  const alternatives = filter.find((one) => 'anyOf' in one)?.anyOf ?? [];
  const texts = alternatives.map((each) => each.find((one) => one.field === field && one.operator === 'eq')?.values[0]);
  const [first] = texts;
  const isOnly = typeof first === 'string' && first.length <= MAX_COMPARED_LENGTH && new Set(texts).size === 1;
  return isOnly ? first : undefined;
}

/** A value that the field can have, in the form in which the schema stores it. */
function toEqual(entity: Entity, field: string, value: unknown): unknown {
  return validateRequired(entity, { [field]: value }, [field])[field];
}

const DATE_PREFIX = /^\d{4}(-\d{2}(-\d{2})?)?$/;

/** A bound need not be a value that the field can have: `hireDate < 2021`, `age < 1000`. */
function toBound(entity: Entity, field: string, value: unknown): unknown {
  const parsed = isInt64Text(entity, field) ? undefined : entity.schema.shape[field]?.safeParse(value);
  if (parsed?.success) return parsed.data;
  const accepted = acceptedBound(entity, field, value);
  if (accepted !== undefined) throw filterError(field, 'has a bound of the wrong form', accepted);
  return value;
}

/** What a bound of the field must be; undefined if the value is one. */
export function acceptedBound(entity: Entity, field: string, value: unknown): string | undefined {
  const { is, isBound } = boundOf(entity, field);
  if (isInt64Text(entity, field)) return isBound(value) ? undefined : is;
  const parsed = entity.schema.shape[field]?.safeParse(value);
  return isBound(value) || (parsed?.success && parsed.data === value) ? undefined : is;
}

function boundOf(entity: Entity, field: string): { is: string; isBound: (value: unknown) => boolean } {
  const schema = fieldSchemas(entity.schema)[field];
  const type: ColumnType = entity.columns[field] ?? 'String';
  if (isInt64Text(entity, field)) return { is: 'a whole number of 64 bits, as a text', isBound: isInt64 };
  if (type === 'Double') return { is: 'a number', isBound: Number.isFinite };
  if (type === 'Int64') return { is: 'a whole number', isBound: Number.isSafeInteger };
  if (type === 'Int32') {
    const isInt32 = (value: unknown) =>
      Number.isInteger(value) && Number(value) >= -INT32_LIMIT && Number(value) < INT32_LIMIT;
    return { is: 'a whole number of 32 bits', isBound: isInt32 };
  }
  const isText = (value: unknown) => typeof value === 'string';
  if (!schema || !isInstant(schema)) return { is: 'a text', isBound: isText };
  const isDate = (value: unknown) => typeof value === 'string' && DATE_PREFIX.test(value);
  return { is: 'an ISO date or its beginning, such as 2026-11', isBound: isDate };
}

function checkScalar(field: string, value: unknown): Scalar {
  if (!isScalar(value)) throw filterError(field, 'is compared with null', 'a text, a number, true or false');
  // A request to storage can contain only UTF-8.
  if (typeof value === 'string' && !value.isWellFormed())
    throw filterError(field, 'is compared with an invalid text', 'well-formed Unicode');
  return value;
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function filterError(field: string, why: string, accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `The filter by "${field}" is not valid: the field ${why}.`, {
    field,
    accepted,
  });
}

/** A longer text would make the request too long, or no property could have it. */
const MAX_COMPARED_LENGTH = 500;

/** The part of a filter that storage can evaluate, with the rows of older versions, whose fields only an upgrade shows. */
export function rowFilterOf(
  entity: Entity,
  filter: Filter = [],
): { readonly where: readonly RowCondition[]; readonly orVersionBefore: number | undefined } {
  const where = filter.flatMap((one): RowCondition[] => {
    if (!('anyOf' in one)) return toRowComparisons(entity, [one]);
    // Without some of its comparisons, an alternative matches more rows; without all of them, every row.
    const anyOf = one.anyOf.map((each) => toRowComparisons(entity, each));
    return anyOf.some((each) => each.length === 0) ? [] : [{ anyOf }];
  });
  return { where, orVersionBefore: entity.version > 1 ? entity.version : undefined };
}

/** The comparisons that storage can evaluate. A whole number is a text in the rows of an index. */
function toRowComparisons(entity: Entity, comparisons: readonly Comparison[]): RowComparison[] {
  return comparisons
    .filter(({ values }) => values.every((value) => String(value).length <= MAX_COMPARED_LENGTH))
    .filter(({ field, byInteger }) => !byInteger && (!entity.isWrittenByClients || isReliable(entity, field)))
    .map(byInstantToTexts)
    .map(({ field, operator, values }) => {
      const stored = values.map((value) => fieldsToProperties(entity, { [field]: value })[field]);
      return { name: field, operator, values: stored };
    });
}

/** A comparison of texts that holds for every row for which the one of instants does. */
function byInstantToTexts(comparison: Comparison): Comparison {
  const { field, operator, values, byInstant } = comparison;
  const around = byInstant === undefined ? undefined : textsAround(String(values[0]), byInstant);
  if (!around) return comparison;
  const isLower = operator === 'gt' || operator === 'ge';
  return isLower
    ? { field, operator: 'ge', values: [around.from] }
    : { field, operator: 'lt', values: [around.before] };
}

/**
 * In a row that a client wrote, only the keys of the row may contain the key fields, and a number may have another type of
 * number, which storage does not compare.
 */
function isReliable({ keyFields, columns }: Entity, field: string): boolean {
  return !keyFields.includes(field) && (columns[field] === 'String' || columns[field] === 'Boolean');
}
