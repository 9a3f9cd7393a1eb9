import type { z } from 'zod';
import { isDeeperThan } from '../base/json-text.ts';
import { MAX_JSON_DEPTH } from '../base/json-value.ts';
import { omit, type Values } from '../base/values.ts';
import { isReference, storedVersion } from '../define/codec/entity-codec.ts';
import { compileOnce, maskOf } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { addressIfAny } from '../define/places/index-entries.ts';
import { numberedRowsOf } from '../engine/read/entity-rows.ts';
import type { Row } from '../storage/rows.ts';

/**
 * Tells why an entity that only the API writes is none of its declaration: a field is absent or has another type, a choice or a kind that
 * is not declared, or no date. What a schema limits beyond that, such as a length, may be narrower than when the entity was written.
 * Undefined for a valid entity. The reason names the field and has no value.
 */
export function whyInvalid(entity: Entity, row: Row, values: Values): string | undefined {
  const numbered = numberedRowsOf(entity);
  if (numbered) return numbered.reasonToRefuse(entity, row) ?? whyElsewhere(entity, row, values);
  const parsed = schemaOf(entity).safeParse(omit(values, fieldsLeft(entity, values)));
  const issue = parsed.error?.issues.find((one) => isOfType(one) && !isComputedLater(entity, one, values));
  if (!issue) return undefined;
  const field = String(issue.path[0] ?? 'kind');
  const version = storedVersion(entity, row.properties);
  const after = version < entity.version ? `, also after its upgrade from version ${version}` : '';
  return `The field "${field}" ${describe(issue)}${after}.`;
}

/** A row of a series that the API wrote has the fields of its key. A read by the key does not compare them. */
function whyElsewhere(entity: Entity, row: Row, values: Values): string | undefined {
  if (entity.keyFields.some((field) => values[field] === undefined)) return undefined;
  const address = addressIfAny(entity, values);
  const isHere =
    address?.partition === row.partition && address.row === numberedRowsOf(entity)?.entityRow(entity, row.row);
  return isHere ? undefined : 'The fields of the key differ from the keys of the row.';
}

/** Fields that a read did not include need not be there. */
function schemaOf(entity: Entity): z.ZodType {
  return compileOnce(entity, 'stored', [], () => {
    const { union, schema, apartFields } = entity;
    const left = [...apartFields, ...entity.referenceFields, ...Object.keys(entity.attachments)];
    return union ?? schema.partial(maskOf([...new Set(left)].filter((field) => field in schema.shape)));
  });
}

/** What is stored in another form than the schema has. Each has a check of its own. */
function fieldsLeft({ attachments, referenceFields }: Entity, values: Values): string[] {
  // Free JSON may have the form of a reference.
  const isApart = (field: string) =>
    (referenceFields.includes(field) && isReference(values[field])) || Object.hasOwn(attachments, field);
  return [...Object.keys(values).filter(isApart), ...deepFields(values)];
}

/** The fields that are nested deeper than a write accepts. The schema of a deep one overflows the stack. */
export function deepFields(values: Values): string[] {
  return Object.keys(values).filter((field) => isDeeperThan(MAX_JSON_DEPTH, values[field]));
}

const FORMATS = ['date', 'datetime', 'time', 'duration', 'uuid', 'ipv4', 'ipv6', 'json_string'];

function isOfType(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_format') return FORMATS.includes(issue.format);
  return issue.code === 'invalid_type' || issue.code === 'invalid_value' || issue.code === 'invalid_union';
}

/** The next write computes a default that was declared after the entity was written. */
function isComputedLater(
  { defaults, decidedFields }: Entity,
  { path: [field] }: z.core.$ZodIssue,
  values: Values,
): boolean {
  if (typeof field !== 'string' || values[field] !== undefined) return false;
  return Object.hasOwn(defaults, field) || decidedFields.includes(field);
}

function describe(issue: z.core.$ZodIssue): string {
  const at = issue.path.length > 1 ? ' within its value' : '';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${issue.expected}${at}`;
    case 'invalid_format':
      return `must be a ${issue.format}${at}`;
    case 'invalid_union':
      return issue.path.at(-1) === 'kind' ? 'is no declared kind' : `has none of its declared types${at}`;
    default:
      return `is none of its declared choices${at}`;
  }
}
