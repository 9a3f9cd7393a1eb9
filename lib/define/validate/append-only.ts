import type { DeclaredEntity } from '../declaration/declaration.ts';
import type { KeyTemplate, Part } from '../keys/key-template.ts';
import { type FieldSchema, fieldSchemas, isInstant } from '../schema/field-schema.ts';

/**
 * The prepend/append anti-pattern of the design guide: if partition keys grow, or shrink, with time, all writes of the moment go to the
 * last partition, or the first one, and storage cannot spread them over servers, however many partitions there are. A time in the row key
 * is fine, as the partitions of many subjects share the writes (log tail pattern). So is a time with a hash, whose buckets do.
 */

/** https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-7, and other ids that begin with the time of their creation. */
const TIMED_IDS = ['ulid', 'ksuid', 'xid', 'cuid'];
const TIMED_UUID = /^\^\(\[0-9a-fA-F\]\{8\}-\[0-9a-fA-F\]\{4\}-[67]/;
/** Months begin with it, and days. */
const MONTH_FIRST = '^\\d{4}-\\d{2}';

/** Yields an error for each partition key that begins with a time, unless the declaration says that it is meant. */
export function* appendErrors(entity: DeclaredEntity): Generator<string> {
  yield* errorsOf(entity, { what: 'the partition key', option: 'key.appends', partition: entity.partition });
  for (const [name, { remote }] of Object.entries(entity.indexes))
    if (remote) {
      const what = `the partition key of the index "${name}"`;
      yield* errorsOf(entity, { what, option: 'appends', partition: remote.partition });
    }
  for (const [name, { partition }] of Object.entries(entity.totals))
    yield* errorsOf(entity, { what: `the partition key of the totals "${name}"`, option: 'appends', partition });
}

function* errorsOf(
  { schema, keyFields, period, partition: own }: DeclaredEntity,
  { what, option, partition }: { readonly what: string; readonly option: string; readonly partition: KeyTemplate },
): Generator<string> {
  const fields = fieldSchemas(schema);
  const isOfEntity = partition === own;
  const field = timeOf(partition, fields, isOfEntity ? period : undefined);
  const { template, appends } = partition;
  if (field === undefined) {
    if (appends)
      yield `${what} '${template}' does not begin with a time, and ${option} says that it does. Remove ${option}.`;
    return;
  }
  if (appends) return;
  const others = [...partition.fields, ...keyFields].filter((other) => other !== field);
  const other = others.at(-1) ?? field;
  yield `${what} '${template}' begins with "${field}", so all writes of the moment go to one end of the table, which storage cannot spread. Begin with a field that spreads them and put the time into the row key, or add buckets: '${template}_{${other}%8}'. If few writes are expected, or "${field}" is not the time of the write, set ${option} to true.`;
}

/** The field that is a time, if the keys begin with it and nothing spreads them. */
function timeOf(
  { parts }: KeyTemplate,
  fields: Readonly<Record<string, FieldSchema>>,
  period: DeclaredEntity['period'],
): string | undefined {
  if (parts.some(({ hash }) => hash)) return undefined;
  const first = parts.find(({ field }) => fields[field]?.constant === undefined);
  if (!first || !isTime(first, fields[first.field])) return undefined;
  // Within the table of a day, only what follows the day differs.
  const isDayAndMore = period?.per === 'day' && period.field === first.field && !fields[first.field]?.format;
  return isDayAndMore ? undefined : first.field;
}

function isTime({ newestFirst, unit }: Part, field: FieldSchema | undefined): boolean {
  if (newestFirst || unit !== undefined) return true;
  if (!field) return false;
  const { format = '', pattern = '' } = field;
  return isInstant(field) || TIMED_IDS.includes(format) || TIMED_UUID.test(pattern) || pattern.startsWith(MONTH_FIRST);
}
