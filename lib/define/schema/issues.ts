import type { z } from 'zod';
import { sayNumber } from '../../base/json-value.ts';

/** Lists what is wrong, by the path of the field. `unknown` describes a field that the schema does not have. */
export function describeIssues(
  { issues }: z.ZodError,
  input: unknown,
  unknown: (issue: z.core.$ZodIssue) => string,
): { readonly field: string; readonly message: string }[] {
  return issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((field) => ({ field: [...issue.path, field].join('.'), message: unknown(issue) }))
      : [{ field: issue.path.join('.'), message: messageOf(issue, valueAt(input, issue.path)) }],
  );
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

const FORMATS: Readonly<Record<string, string>> = {
  date: 'a date such as 2026-11-20',
  email: 'an email address',
  uuid: 'a UUID',
};

/** The messages of the schema library. Any other is of the author of a schema. */
const GENERIC = /^(Invalid|Too) /;

/**
 * What is wrong with a value and what is accepted. Never contains the value, which may be restricted or encrypted, because
 * messages reach logs, findings and callers who may not read the field.
 */
function messageOf(issue: z.core.$ZodIssue, value: unknown): string {
  if ((issue.code === 'invalid_type' || issue.code === 'invalid_union') && value === undefined) return 'is required';
  if (!GENERIC.test(issue.message)) return `is not valid: ${issue.message}`;
  if (issue.code === 'invalid_union') return describeUnion(issue, value);
  if (issue.code === 'invalid_type')
    return `must be ${TYPES[issue.expected] ?? issue.expected}; got ${typeOf(value, issue.expected)}`;
  if (issue.code === 'too_small') return `must ${boundOf(issue.origin, 'at least', issue.minimum, issue.inclusive)}`;
  if (issue.code === 'too_big') return `must ${boundOf(issue.origin, 'at most', issue.maximum, issue.inclusive)}`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.map((each) => JSON.stringify(each)).join(' or ')}`;
  if (issue.code === 'invalid_format' && issue.format === 'datetime')
    return `must be an instant such as ${exampleOf(issue.pattern)}`;
  const format = issue.code === 'invalid_format' ? FORMATS[issue.format] : undefined;
  return format ? `must be ${format}` : `is not valid: ${issue.message}`;
}

/** Names the types of a union if the value has none of them. */
function describeUnion({ errors, message }: z.core.$ZodIssueInvalidUnion, value: unknown): string {
  const types = errors.map(([first]) =>
    first?.code === 'invalid_type' && first.path.length === 0 ? first.expected : '',
  );
  if (types.length === 0 || types.includes('')) return `is not valid: ${message}`;
  return `must be ${[...new Set(types.map((type) => TYPES[type] ?? type))].join(' or ')}; got ${typeOf(value, types.join())}`;
}

/** Instants in the forms that options of `z.iso.datetime()` demand. */
const INSTANTS = [
  ...['2026-11-20T09:00:00Z', '2026-11-20T09:00:00.000Z', '2026-11-20T09:00Z'],
  ...[1, 2, 4, 5, 6, 7, 8, 9].map((digits) => `2026-11-20T09:00:00.${'0'.repeat(digits)}Z`),
];

/** An instant that the pattern accepts, which is `/…/flags` as text. */
function exampleOf(pattern: string | undefined): string | undefined {
  const [, source = ''] = /^\/(.*)\/\w*$/s.exec(pattern ?? '') ?? [];
  return INSTANTS.find((one) => new RegExp(source).test(one)) ?? INSTANTS[0];
}

function typeOf(value: unknown, expected: string): string {
  if (typeof value === 'number' && !Number.isFinite(value)) return sayNumber(value);
  if (expected === 'int' && typeof value === 'number') return 'a fraction';
  if (value === null) return 'null';
  const type = Array.isArray(value) ? 'array' : typeof value;
  return TYPES[type] && type !== 'boolean' ? TYPES[type] : `a ${type}`;
}

/** Numbers are compared themselves; texts and lists by their length. */
function boundOf(origin: string, bound: string, limit: number | bigint, isInclusive = true): string {
  const unit = { string: 'characters', array: 'elements' }[origin];
  if (unit) return `have ${bound} ${limit} ${unit}`;
  return `be ${isInclusive ? bound : bound === 'at least' ? 'more than' : 'less than'} ${limit}`;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((value: unknown, key) => Object(value)[key], input);
}
