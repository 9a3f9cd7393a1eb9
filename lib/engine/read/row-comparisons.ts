import { fieldsToProperties } from '../../define/codec/entity-codec.ts';
import type { Filter } from '../../define/codec/filter.ts';
import { type Entity, isWrittenByClients } from '../../define/declaration/entity.ts';
import type { RowComparison } from '../../storage/row-filter.ts';

/** A longer text would make the request too long, or no property could have it. */
const MAX_COMPARED_LENGTH = 500;

/** The part of a filter that storage can evaluate, with the rows of older versions, whose fields only an upgrade shows. */
export function rowFilterOf(
  entity: Entity,
  filter: Filter = [],
): { readonly where: readonly RowComparison[]; readonly orVersionBefore: number | undefined } {
  const sent = filter.filter(({ values }) => values.every((value) => String(value).length <= MAX_COMPARED_LENGTH));
  const where = sent
    .filter(({ field }) => !isWrittenByClients(entity) || isReliable(entity, field))
    .map(({ field, operator, values }) => {
      const stored = values.map((value) => fieldsToProperties(entity, { [field]: value })[field]);
      return { name: field, operator, values: stored };
    });
  return { where, orVersionBefore: entity.version > 1 ? entity.version : undefined };
}

/**
 * In a row that a client wrote, only the keys of the row may contain the key fields, and a number may have another type of
 * number, which storage does not compare.
 */
function isReliable({ keyFields, columns }: Entity, field: string): boolean {
  return !keyFields.includes(field) && (columns[field] === 'String' || columns[field] === 'Boolean');
}
