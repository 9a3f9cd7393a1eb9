import { hasCode } from '../../base/errors.ts';
import { validateRequired } from '../codec/validation.ts';
import { type Entity, withArchives } from '../declaration/entity.ts';
import { fieldsOfUser, subjectFieldsOf, userListOf } from '../places/user-rows.ts';
import { keepsExactly } from './validate-entity.ts';

/** Yields the errors of `ofUser`: what is said to be of a user must be found, and changed so that it is of nobody. */
export function* userRowErrors(entities: readonly Entity[]): Generator<string> {
  for (const entity of withArchives(entities))
    for (const error of entityErrors(entity)) yield `Entity "${entity.name}": ${error}`;
  if (entities.every(({ ofUser }) => Object.keys(ofUser).length === 0)) return;
  for (const [{ name, ofUser }, fields] of subjectFieldsOf(entities))
    for (const field of fields)
      if (!Object.hasOwn(ofUser, field))
        yield `Entity "${name}": its rules take "${field}" for the subject of a user, and ofUser does not say what becomes of the row when the data of the user is erased. Add ofUser: { ${field}: 'delete' }, 'keep', or the values to set.`;
}

function* entityErrors(entity: Entity): Generator<string> {
  for (const [field, erasing] of fieldsOfUser(entity)) {
    const what = `ofUser names "${field}"`;
    if (!Object.hasOwn(entity.columns, field)) {
      yield `${what}, which the schema does not have. Correct the name.`;
      continue;
    }
    if (entity.columns[field] !== 'String' || !keepsExactly(entity, field))
      yield `${what}, whose schema may store two subjects as one value. Declare it as a text, and remove toLowerCase, trim, transform, catch, default and derived from it.`;
    else if (!userListOf(entity, field))
      yield entity.isArchive
        ? `${what}, and an archive has no indexes to find the rows of a user. Leave the field out of the archive: without: ['${field}'].`
        : `${what}, and no list has the rows of one user alone. Add an index: ${field}: interPartitionIndex({ table: '${entity.name}by${field.toLowerCase()}', partition: '{${field}}', row: '${entity.keyFields.map((name) => `{${name}}`).join('_')}' }).`;
    if (typeof erasing !== 'string') yield* changeErrors(entity, field, erasing);
  }
}

function* changeErrors(entity: Entity, field: string, changes: Readonly<Record<string, unknown>>): Generator<string> {
  const what = `ofUser changes the row of "${field}"`;
  if (entity.isArchive || entity.series) {
    yield `${what}, and ${entity.isArchive ? 'an archive can only be read and deleted' : 'a data series has its key alone'}. Use 'delete' or 'keep'.`;
    return;
  }
  if (!Object.hasOwn(changes, field))
    yield `${what}, and leaves the subject there. Set "${field}" to another value, or to null.`;
  for (const [name, value] of Object.entries(changes)) {
    if (Object.hasOwn(entity.attachments, name)) {
      if (value !== null) yield `${what}, and sets "${name}", which is a file. Set it to null, which deletes the file.`;
      continue;
    }
    const reason = reasonNotToSet(entity, name);
    if (reason) yield `${what}, and sets "${name}", which ${reason}. Set another field, or use 'delete'.`;
    else if (!isAccepted(entity, name, value))
      yield `${what}, and sets "${name}" to ${JSON.stringify(value)}, which its schema does not accept. Use another value.`;
  }
}

function reasonNotToSet(entity: Entity, name: string): string | undefined {
  if (!Object.hasOwn(entity.columns, name)) return 'the schema does not have';
  if (entity.keyFields.includes(name)) return 'is in the key';
  if (entity.decidedFields.includes(name)) return 'callers cannot write';
  return entity.encrypted.includes(name) ? 'is encrypted' : undefined;
}

/** Null removes the field. */
function isAccepted(entity: Entity, name: string, value: unknown): boolean {
  if (value === null) return entity.schema.shape[name]?.safeParse(undefined).success ?? false;
  try {
    validateRequired(entity, { [name]: value }, [name]);
    return true;
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return false;
    throw error;
  }
}
