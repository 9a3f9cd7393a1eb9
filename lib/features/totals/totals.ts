import type { Entity, Feature } from '../../define/declaration/entity.ts';
import type { Suspicion } from '../../define/declaration/finding.ts';
import { type Total, total } from '../../define/declaration/totals.ts';
import type { Part } from '../../define/keys/key-template.ts';
import { indexEntriesOf } from '../../define/places/index-entries.ts';
import { fieldSchemas, isInstant } from '../../define/schema/field-schema.ts';
import { checkTotal, findLostTotal, TOTAL, toProjection } from './total-upkeep.ts';

/**
 * Maintained totals: the number of entities of a group across partitions, with sums and extremes of their fields. Each entity has
 * a row in the group's partition, its contribution, which the engine keeps like a row of an index. The contribution and the total
 * change in one transaction: see `total-upkeep.ts`. So a total is exact whenever its contributions agree with the entities.
 */
export const maintainedTotals: Feature = {
  name: 'maintained totals',
  isUsed: (entity) => totalsOf(entity).length > 0,
  validate: validationErrors,
  projections: {
    of: (entity) => totalsOf(entity).map(([name, declared]) => toProjection(entity, name, declared)),
    former: ({ kind, table = '', partition = '', row }, name) =>
      kind === TOTAL ? { totals: { [name]: total({ table, partition, row, when: () => false }) } } : undefined,
  },
  check: {
    async entity(engine, entity, subject) {
      const suspicions: Suspicion[] = [];
      for (const [name, declared] of totalsOf(entity))
        for (const entry of indexEntriesOf(entity, subject.snapshot.values))
          if (entry.index === name && [undefined, name].includes(subject.only))
            suspicions.push(...(await findLostTotal(engine, entity, { declared, entry, subject })));
      return suspicions;
    },
    async row({ storage }, entity, row) {
      const [name, declared] = totalsOf(entity).find(([, { table }]) => table === row.table) ?? [];
      return declared && name !== undefined ? checkTotal(storage, name, declared, row) : undefined;
    },
  },
};

const MAX_FIELDS = 50;
const NUMBERS = ['Int32', 'Int64', 'Double'];

const totalsOf = ({ totals }: Entity): [string, Total][] => Object.entries(totals);

function* validationErrors(entity: Entity): Generator<string> {
  const tables = [
    entity.table,
    entity.archive?.table,
    ...Object.values(entity.indexes).map(({ remote }) => remote?.table),
  ];
  const fields = fieldSchemas(entity.schema);
  for (const [name, declared] of totalsOf(entity)) {
    const { table, partition, row, sum, min, max } = declared;
    if (tables.includes(table) || totalsOf(entity).some(([other, { table: used }]) => other !== name && used === table))
      yield `the totals "${name}" are in the table "${table}", which the entity uses for other rows. Give them a table of their own.`;
    for (const field of sum)
      if (!NUMBERS.includes(entity.columns[field] ?? ''))
        yield `the totals "${name}" add up "${field}", which is not a number. Remove it from sum.`;
    for (const field of [...min, ...max]) {
      const type = fields[field];
      if (!NUMBERS.includes(entity.columns[field] ?? '') && !(type && isInstant(type)))
        yield `the totals "${name}" have the least or greatest "${field}", which is not a number, a date or an instant. Remove it from min and max.`;
    }
    for (const field of entity.apartFields.filter((each) => declared.uses.includes(each)))
      yield `the totals "${name}" use "${field}" of a group of split, which a write may not have read. Remove it from the totals, or from split.`;
    for (const field of entity.encrypted.filter((each) => declared.uses.includes(each)))
      yield `the totals "${name}" use the encrypted field "${field}", of which storage has only the ciphertext. Remove it from the totals, or from encrypted.`;
    if (sum.length + min.length + max.length > MAX_FIELDS)
      yield `the totals "${name}" have ${sum.length + min.length + max.length} sums and extremes. Use at most ${MAX_FIELDS}.`;
    yield* keyErrors(name, partition.parts, row.parts);
  }
}

function* keyErrors(name: string, inPartition: readonly Part[], inRow: readonly Part[]): Generator<string> {
  const parts = [...inPartition, ...inRow];
  const hashedInRow = inRow.find(({ hash }) => hash);
  if (hashedInRow)
    yield `the totals "${name}" have a hash of "${hashedInRow.field}" in the row key. Use hashes and buckets in the partition key only.`;
  const isGiven = (field: string) => parts.some((part) => part.field === field && !part.hash);
  const hidden = inPartition.find(({ field, hash, buckets }) => hash && buckets === undefined && !isGiven(field));
  if (hidden)
    yield `the totals "${name}" have "${hidden.field}" only as a hash, so two groups could share a total. Add it to their key as it is, too.`;
  const newest = parts.find(({ newestFirst }) => newestFirst);
  if (newest)
    yield `the totals "${name}" have "${newest.field}" as an instant, newest first. Group by period with {${newest.field}.day}, .month or .year.`;
  const lists = new Set(parts.filter(({ each }) => each).map(({ field }) => field));
  if (lists.size > 1) yield `the totals "${name}" have several lists (${[...lists].join(', ')}). Keep one of them.`;
  const plain = parts.filter(({ hash }) => !hash).map(({ field }) => field);
  const twice = plain.find((field, position) => plain.indexOf(field) < position);
  if (twice) yield `the totals "${name}" have "${twice}" twice in their key. Remove one.`;
}
