import type { Entity } from '../../define/declaration/entity.ts';
import type { Feature } from '../../define/declaration/feature.ts';
import { isOptional } from '../../define/schema/field-schema.ts';

/** The longest time for which a process may serve a list that another process has changed. */
const MAX_AGE_S = 3_600;

/**
 * Lookup table: a small entity whose list each process keeps in memory. The list is that of an index with one partition, so one
 * range query reads it; lib/features/lookup/read-lookup.ts keeps it.
 */
export const lookup: Feature<Entity> = {
  name: 'lookup table',
  isUsed: (entity) => entity.lookup !== undefined,
  *validate({ lookup: declared, indexes, schema, counts, denormalized }) {
    const { index: name = '', maxAge } = declared ?? {};
    if (maxAge !== undefined && !(Number.isInteger(maxAge) && maxAge >= 1 && maxAge <= MAX_AGE_S))
      yield `lookup has the maxAge ${maxAge}. Use a whole number of seconds from 1 to ${MAX_AGE_S}.`;
    const index = Object.hasOwn(indexes, name) ? indexes[name] : undefined;
    const isList = index?.kind === 'inter-partition' && !index.unique && index.copies !== 'keys' && !index.when;
    if (!isList || index.remote.partition.fields.length > 0) {
      yield `lookup reads the index "${name}", which is not a list of all entities. Name an interPartitionIndex of copies with a partition key without fields, neither unique nor with a condition (when).`;
      return;
    }
    if (index.settle !== 'inline')
      yield `lookup reads the index "${name}", which has settle "${index.settle}", and a process keeps what it has read. Use "inline".`;
    const optional = index.row.fields.find((field) => isOptional(schema, field));
    if (optional !== undefined)
      yield `lookup reads the index "${name}", which lacks entities without "${optional}". Make every field of its row key required.`;
    const copied = Object.values(denormalized)
      .filter(({ fanOut }) => !fanOut)
      .flatMap(({ copies }) => Object.keys(copies));
    const [stale] = [...Object.keys(counts), ...copied];
    if (index.copies === 'everything' && stale !== undefined)
      yield `lookup reads the index "${name}", whose copies have "${stale}", which changes with another entity and would be stale. List the other fields in copies.`;
  },
};
