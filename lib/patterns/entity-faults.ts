import type { z } from 'zod';
import { canWriteThroughGrant, type Entity, isWrittenByClients, type Role } from './entity.ts';
import type { Index } from './indexes.ts';
import { elsewhereTables } from './places.ts';

const TABLE_NAME = /^[a-z][a-z0-9]{2,54}$/;

/**
 * Why an entity cannot be as it is declared, each as the end of a sentence. What others are to it is looked at before they
 * are told of it, so that a declaration that is refused leaves no trace in them.
 */
export function* faultsOf(entity: Entity, declared: z.ZodObject): Generator<string> {
  yield* faultsOfNames(entity, declared);
  yield* faultsOfKey(entity);
  yield* faultsOfFields(entity);
  yield* faultsOfAccess(entity);
  yield* faultsOfIndexes(entity);
  yield* faultsOfDetail(entity);
  yield* faultsOfCounts(entity);
  yield* faultsOfCopies(entity);
}

function* faultsOfNames(entity: Entity, declared: z.ZodObject): Generator<string> {
  for (const field of Object.keys(entity.attachments))
    if (field in declared.shape) yield `its attachment ${field} is a field of the schema, too`;
  const archive = entity.archive ? [entity.archive.table] : [];
  for (const table of [entity.table, ...archive, ...elsewhereTables(entity)])
    if (!TABLE_NAME.test(table)) yield `the table name ${table} is not 3 to 55 lower-case letters and digits`;
  for (const field of Object.keys(entity.schema.shape))
    if (!/^[a-z]/.test(field)) yield `the field ${field} does not begin with a lower-case letter`;
}

function* faultsOfKey({ partition, row, perDay, archive, movable, indexes }: Entity): Generator<string> {
  if (perDay && (archive || movable.length > 0 || Object.keys(indexes).length > 0))
    yield 'a table a day has no index, archive or move';
  if ([...partition.parts, ...row.parts].some(({ each }) => each)) yield 'a list is in its key';
  for (const field of movable)
    if (!partition.fields.includes(field)) yield `${field} is not in the partition key, so it cannot be moved`;
}

function* faultsOfFields({ encrypted, large, columns, version, upgrades }: Entity): Generator<string> {
  for (const field of [...encrypted, ...large])
    if (columns[field] !== 'String') yield `${field} is to be encrypted or large, and no text`;
  for (let from = 1; from < version; from += 1) if (!upgrades[from]) yield `nothing upgrades version ${from}`;
}

function* faultsOfAccess(entity: Entity): Generator<string> {
  const { keyFields, encrypted, partition } = entity;
  const { own, write, restricted = {} } = entity.access;
  for (const field of keyFields) if (field in restricted) yield `the restricted field ${field} is part of its key`;
  for (const [field, roles] of Object.entries<readonly Role[] | undefined>(restricted))
    if (!write.every((role) => roles?.includes(role))) yield `who writes it may not see ${field}`;
  for (const field of encrypted)
    if (!(field in restricted)) yield `${field} is encrypted and not restricted to any role`;
  if (own && 'through' in own) yield* faultsOfOwn(own, partition.fields);
  if (isWrittenByClients(entity) && !canWriteThroughGrant(entity))
    yield 'what would be written past the API would have to be followed by others';
}

/** A partition has to follow from the own entity alone, lest it be somebody else's as well. */
function* faultsOfOwn(
  { through, permissions }: { readonly through: Entity; readonly permissions: string },
  fields: readonly string[],
): Generator<string> {
  const its = "what is one's own";
  if (!/^(?=.)r?a?u?d?$/.test(permissions)) yield `${its} has permissions that are not some of raud, in this order`;
  if (!through.access.own || 'through' in through.access.own) yield `${its} is not found through ${through.name}`;
  if (fields.length === 0) yield `${its} is in a partition that it does not decide`;
  const stranger = fields.find((field) => !(field in through.columns));
  if (stranger) yield `${its} is in a partition by ${stranger}, which ${through.name} has not`;
}

function* faultsOfIndexes({ indexes, keyFields, large, denormalized }: Entity): Generator<string> {
  const copied = denormalized.flatMap((link) => Object.keys(link.copies));
  for (const [name, index] of Object.entries(indexes)) {
    for (const why of faultsOfPlace(index, keyFields)) yield `its index ${name} ${why}`;
    if (large.length > 0 && index.kind !== 'index-entity' && index.copies === 'everything')
      yield `its index ${name} copies everything, and ${large.join(', ')} may be large`;
    for (const field of index.uses)
      if (copied.includes(field)) yield `its index ${name} uses ${field}, which another entity decides`;
  }
}

/** A place outside the partition must belong to one entity alone, or be competed for openly. */
function* faultsOfPlace(index: Index, keyFields: readonly string[]): Generator<string> {
  if (index.kind !== 'inter-partition' && index.row.parts.some(({ each }) => each))
    yield 'is not in another partition, and has a row for each element';
  const lacking = (fields: readonly string[]) => keyFields.filter((field) => !fields.includes(field)).join(', ');
  if (index.kind === 'inter-partition' && !index.unique) {
    const missing = lacking([...index.elsewhere.partition.readable, ...index.row.readable]);
    if (missing !== '') yield `is not unique and lacks ${missing} in its key`;
  }
  if (index.kind === 'index-entity' && index.elsewhere) {
    const missing = lacking(index.holds.readable);
    if (missing !== '') yield `holds too little to find an entity: ${missing}`;
  }
}

function* faultsOfDetail(entity: Entity): Generator<string> {
  const { detailOf: master } = entity;
  if (!master) return;
  const isWithin =
    master.table === entity.table &&
    master.partition.template === entity.partition.template &&
    entity.row.template.startsWith(`${master.row.template}_`);
  if (!isWithin) yield `its key does not begin with that of ${master.name}, in the same table and partition`;
  if (master.detailOf) yield `${master.name}, of which it is a detail, is a detail itself`;
  // The row of a detail goes where its master goes, and nothing that follows from it goes along.
  const others = [Object.keys(entity.indexes), entity.denormalized, Object.keys(entity.counts)];
  if (others.some(({ length }) => length > 0))
    yield `as a detail of ${master.name} it can have no index, denormalized field or count`;
}

function* faultsOfCounts({ table, partition, row, counts, columns, archive, movable }: Entity): Generator<string> {
  for (const [field, counted] of Object.entries(counts)) {
    const isBeside = counted.table === table && counted.partition.template === partition.template;
    const isFound = row.fields.every((name) => counted.keyFields.includes(name));
    if (!isBeside || !isFound || archive || movable.length > 0)
      yield `${field} counts ${counted.name}, whose keys do not lead to it in one partition for good`;
    // What is counted is added to as it is stored: a 64-bit one is no number there.
    if (columns[field] !== 'Int32') yield `the count ${field} is not declared as z.int32()`;
    if (counted.detailOf) yield `${field} counts ${counted.name}, which are details of ${counted.detailOf.name}`;
  }
}

function* faultsOfCopies({ table, row, denormalized }: Entity): Generator<string> {
  for (const { source } of denormalized) {
    if (source.table !== table) yield `it copies from ${source.name}, which is in another table`;
    if (source.detailOf) yield `it copies from ${source.name}, which are details of another entity`;
    // A source remembers one row that copies it, which is written once.
    const copies = [...source.dependents, ...denormalized.filter((link) => link.source === source)];
    if (row.fields.length > 0 || copies.length > 1)
      yield `it copies from ${source.name}, and only one row of a partition may, under a key of no fields`;
  }
}
