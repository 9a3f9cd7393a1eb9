import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../base/engine-names.ts';
import { isOutcomeUnknown } from '../base/errors.ts';
import { isoInstant } from '../base/time.ts';
import { pick, withoutPrototype } from '../base/values.ts';
import { optionsWith } from '../define/declaration/declaration.ts';
import type { Entity, Remembered } from '../define/declaration/entity.ts';
import { IndexShape } from '../define/declaration/projection.ts';
import { shapesOf } from '../define/places/index-entries.ts';
import { isOptional } from '../define/schema/field-schema.ts';
import type { Engine, RekeyPhase } from '../engine/engine.ts';
import { noteBuilt } from '../engine/read/unbuilt-indexes.ts';
import { features } from '../features/features.ts';
import { askAccount, ofAccount, unlessSlow } from '../storage/errors.ts';
import {
  type Action,
  mostActions,
  type Row,
  readRange,
  readRow,
  submit,
  tryAction,
  trySubmit,
} from '../storage/rows.ts';
import { ACCOUNTS_PARTITION, isOfApp, SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Account, Accounts, Storage } from '../storage/storage.ts';
import { requireAccounts, requireContainers } from './placement.ts';
import { resourcesOf } from './resources.ts';

/**
 * The record: the shape of every declaration in use, in a row for each entity, which the guard compares with the declarations of a process
 * that starts.
 *
 * With several accounts, a row of each has a copy: which model the guard has accepted and recorded. So a process with the same model starts
 * while the account is away that owns the record. A process that records a model,
 *
 * 1. reads the rows of the record,
 * 2. empties the copies in all accounts,
 * 3. writes the rows of all its entities under the ETags of the first step, also those that stay as they are,
 * 4. fills the copies, each if it is still as the second step left it,
 * 5. notes in the rows of the record that there are copies, so that a later start need not look.
 *
 * So a copy that has a model was filled after the last change of the record, whatever has crashed or is executed late: test/model/copies.ts
 * visits the interleavings. A release that knows no copies changes the record without emptying them. Its rows lack the note, so the next start
 * fills the copies again.
 *
 * A copy is in the partition of the account's own row, which a move neither copies nor deletes: an account whose slots have moved keeps its copy.
 */

const COPY = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.slots, row: SYSTEM_ROWS.copy } as const;
const RECORD = { table: SYSTEM_TABLE, partition: ACCOUNTS_PARTITION } as const;
/** The property of the note in a row of the record. */
const NOTE = 'Copied';

/** Without a prototype, because a caller chooses the key that is looked up. */
function recordOf<Value extends z.ZodType>(value: Value) {
  return z.record(z.string(), value).transform((record) => withoutPrototype(record));
}

/** Patterns add members of their own. */
const Shape = z.looseObject({
  ...optionsWith('remembered'),
  partition: z.string(),
  row: z.string(),
  /** While entities move to another key: the key from which they move, since when every process knows or soon will, and if all do. */
  rekey: z
    .object({
      partition: z.string(),
      row: z.string(),
      since: z.iso.datetime().optional(),
      isMoving: z.boolean().optional(),
    })
    .optional(),
  archive: z.string().optional(),
  /** The fields that archived entities do not have. */
  archiveWithout: z.array(z.string()).optional(),
  // The stored type of each field and the container of each attachment. Shapes of older releases have neither.
  columns: recordOf(z.string()).prefault({}),
  /** The fields without a value of which no entity is valid. Shapes of older releases do not have them. */
  required: z.array(z.string()).optional(),
  /** The fields that callers do not write, such as derived ones. Shapes of older releases do not have them. */
  decided: z.array(z.string()).optional(),
  /** The fields before they last changed, to which an older release returns. */
  former: z
    .object({ columns: recordOf(z.string()), required: z.array(z.string()).optional(), until: z.iso.datetime() })
    .optional(),
  /** True if clients write rows without marks, which a command of an older release cannot tell from those of other programs. */
  isWrittenByClients: z.boolean().optional(),
  /** True while another program has rows in the table, as far as is known: see foreign-rows.ts. */
  hasForeignRows: z.boolean().optional(),
  indexes: recordOf(IndexShape),
  /** Declared indexes that are not yet built from the existing entities. */
  unbuilt: z.array(z.string()),
  /** Indexes that are no longer declared and whose rows still exist. */
  leftOver: recordOf(IndexShape),
});
export type Shape = z.infer<typeof Shape>;

/** Reads the stored shapes by the name of their entity. One range query. */
export async function readShapes(engine: Engine): Promise<Shapes> {
  return toShapes(await readModelRows(engine));
}

/**
 * The tables of all declarations that the guard remembers, and those to which clients write: a former or later release has declared some of
 * them. One range query.
 */
export async function rememberedTables(
  storage: Storage,
): Promise<{ readonly tables: readonly string[]; readonly clientTables: readonly string[] }> {
  const shapes = [...toShapes(await readModelRows({ storage })).values()].map(({ shape }) => shape);
  return {
    tables: shapes.flatMap((shape) => [...tablesOf(shape), ...tablesOf({ ...shape, indexes: shape.leftOver })]),
    clientTables: shapes.flatMap(({ isWrittenByClients, table }) => (isWrittenByClients && table ? [table] : [])),
  };
}

export type Shapes = ReadonlyMap<string, { readonly row: Row; readonly shape: Shape }>;

async function readModelRows({ storage }: Pick<Engine, 'storage'>): Promise<readonly Row[]> {
  const { rows } = await readRange(storage, { ...RECORD, from: '' });
  return rows;
}

function toShapes(rows: readonly Row[]): Shapes {
  return new Map(rows.filter(isOfApp).map((row) => [row.row, { row, shape: toShape(row) }]));
}

export function tablesOf({ table, archive, indexes }: Shape): string[] {
  const tables = [table, archive, ...Object.values(indexes).map((index) => index.table)];
  return [...new Set(tables.filter((used) => used !== undefined))];
}

/** Reads the shape of an index that is no longer declared and whose rows still exist. */
export async function readFormerIndex(engine: Engine, entity: Entity, index: string): Promise<IndexShape | undefined> {
  const row = await readRow(engine.storage, { ...RECORD, row: entity.name });
  return row && toShape(row).leftOver[index];
}

/** Reads where the entities are whose key changes. One point query. `since`: when the command had recorded that it begins. */
export async function readRekey(
  { storage }: Engine,
  entity: Entity,
): Promise<{ readonly phase: NonNullable<RekeyPhase>; readonly since?: number | undefined } | undefined> {
  const row = await readRow(storage, { ...RECORD, row: entity.name });
  const shape = row && toShape(row);
  if (!shape) return undefined;
  const { rekey } = shape;
  // In the middle of a move, the way back begins with entities at both keys.
  if (!isKey(entity, shape)) return { phase: rekey || !isKey(entity.formerKey, shape) ? 'waiting' : 'former' };
  if (!rekey) return undefined;
  const since = rekey.since === undefined ? undefined : Date.parse(rekey.since);
  return { phase: rekey.isMoving ? 'moving' : 'waiting', since };
}

/** Records that the move begins. A process that reads this writes no more at the former key. Returns the time after the record was written. */
export async function startRekey(engine: Engine, entity: Entity): Promise<number> {
  const start = ({ partition, row, ...shape }: Shape): Shape =>
    isKey(entity, { partition, row })
      ? { ...shape, partition, row }
      : { ...shape, partition: entity.partition.template, row: entity.row.template, rekey: { partition, row } };
  // The guard does not accept the former key alone any more.
  await changeShape(engine, entity, start, { isNarrower: true });
  const since = engine.now();
  await changeShape(engine, entity, ({ rekey, ...shape }) =>
    rekey ? { ...shape, rekey: { since: isoInstant(since), ...rekey } } : shape,
  );
  return since;
}

/** Records that entities may be at the declared key from now on. */
export async function startMoves(engine: Engine, entity: Entity): Promise<void> {
  await changeShape(engine, entity, ({ rekey, ...shape }) =>
    rekey ? { ...shape, rekey: { ...rekey, isMoving: true } } : shape,
  );
}

/**
 * Records that entities move from their former key, as they have been restored to where nobody else writes yet: there is no writer to wait for.
 */
export async function startMovesOfRestored(engine: Engine, entity: Entity): Promise<void> {
  const { formerKey } = entity;
  if (!formerKey) return;
  const rekey = {
    partition: formerKey.partition.template,
    row: formerKey.row.template,
    since: isoInstant(engine.now()),
    isMoving: true,
  };
  await changeShape(engine, entity, (shape) => ({ ...shape, rekey }));
}

/** Records that no entity is at the former key. */
export async function endRekey(engine: Engine, entity: Entity): Promise<void> {
  await changeShape(engine, entity, ({ rekey: _, ...shape }) => shape);
}

export function isKey(
  key: Pick<Entity, 'partition' | 'row'> | undefined,
  { partition, row }: Pick<Shape, 'partition' | 'row'>,
): boolean {
  return key?.partition.template === partition && key.row.template === row;
}

/** Records that the rows of a former index are deleted. */
export async function markCleanedUp(engine: Engine, entity: Entity, index: string): Promise<void> {
  await changeShape(engine, entity, ({ leftOver: { [index]: _, ...leftOver }, ...shape }) => ({ ...shape, leftOver }));
}

/** Records whether another program has rows in the table of an entity. */
export async function markForeign(engine: Engine, entity: Entity, hasForeignRows: boolean): Promise<void> {
  await changeShape(engine, entity, ({ hasForeignRows: _, ...shape }) => ({
    ...shape,
    ...(hasForeignRows ? { hasForeignRows } : {}),
  }));
}

/** Records that an index is built from all existing entities. */
export async function markBuilt(engine: Engine, entity: Entity, index: string): Promise<void> {
  await changeShape(engine, entity, (shape) => ({
    ...shape,
    unbuilt: shape.unbuilt.filter((name) => name !== index),
  }));
  noteBuilt(engine, entity, index);
}

/** Reads whether an index is built. One point query. */
export async function isBuilt({ storage }: Engine, entity: Entity, index: string): Promise<boolean> {
  const row = await readRow(storage, { ...RECORD, row: entity.name });
  return !row || !toShape(row).unbuilt.includes(index);
}

/** Changes the stored shape under its ETag, and retries if another process changed it first. */
async function changeShape(
  { storage }: Engine,
  entity: Entity,
  change: (shape: Shape) => Shape,
  { isNarrower = false } = {},
): Promise<void> {
  const address = { ...RECORD, row: entity.name };
  for (;;) {
    const row = await readRow(storage, address);
    if (!row) return;
    const shape = toShape(row);
    const changed = change(shape);
    if (!isNarrower && isDeepStrictEqual(changed, shape)) return;
    if (isNarrower && storage.accounts) await emptyCopies(storage.accounts);
    const note = isNarrower ? {} : noteOf(row);
    const properties = { EntityType: ROW_TYPES.model, Shape: JSON.stringify(changed), ...note };
    if (await tryAction(storage, address, { kind: 'replace', row: entity.name, properties, etag: row.etag })) return;
  }
}

function toShape({ properties }: Row): Shape {
  return Shape.parse(JSON.parse(String(properties.Shape)));
}

export function shapeOf(entity: Entity, before: Remembered): Shape {
  const { partition, row, archive, schema, columns } = entity;
  const without = Object.keys(schema.shape).filter((field) => archive && !(field in archive.schema.shape));
  const indexes = shapesOf(entity, features);
  const memories = features.map(({ memory }) => memory?.remember(entity, before));
  const shape = {
    ...Object.assign({}, ...memories),
    ...pick({ ...entity }, Object.keys(optionsWith('remembered'))),
    partition: partition.template,
    row: row.template,
    archive: archive?.table,
    ...(without.length > 0 ? { archiveWithout: without } : {}),
    columns,
    required: requiredFields(entity),
    decided: entity.decidedFields,
    ...(entity.isWrittenByClients ? { isWrittenByClients: true } : {}),
    indexes,
    unbuilt: [],
    leftOver: {},
  };
  // Storage returns no property without a value.
  return Shape.parse(JSON.parse(JSON.stringify(shape)));
}

function requiredFields(entity: Entity): string[] {
  const filled = [...entity.decidedFields, ...Object.keys(entity.defaults)];
  // A write fills in the default of a field.
  const isRequired = (field: string) =>
    !isOptional(entity.schema, field) && entity.schema.shape[field]?.safeParse(undefined).success === false;
  return Object.keys(entity.columns)
    .filter((field) => !filled.includes(field) && isRequired(field))
    .sort();
}

/** Other processes of a deployment start at the same time. */
const RECORD_ATTEMPTS = 3;

/**
 * Compares the record with the declarations, and writes the shapes that `compare` returns. Returns undefined if the account of the record is away,
 * and another one has a copy that is exactly this model.
 */
export async function recordModel<Change extends { readonly entity: Entity; readonly shape: Shape }>(
  engine: Engine,
  entities: readonly Entity[],
  compare: (before: Shapes) => Promise<readonly Change[]>,
): Promise<{ readonly before: Shapes; readonly changes: readonly Change[] } | undefined> {
  const { storage } = engine;
  const { accounts } = storage;
  const model = describeModel(accounts ? entities.map(describeEntity) : []);
  for (let [attempt, isLost] = [1, false]; ; attempt += 1) {
    const reading = readModelRows(engine);
    const rows = await (accounts ? unlessCopied(reading, () => isCopied(accounts, model)) : reading);
    await Promise.all([
      requireAccounts(storage, rows ?? []),
      requireContainers(storage, resourcesOf(entities).containers),
    ]);
    if (!rows) return undefined;
    const before = toShapes(rows);
    const changes = await compare(before);
    const writes = changes.map(({ entity, shape }) => {
      const known = before.get(entity.name);
      const isSame = known !== undefined && isDeepStrictEqual(known.shape, shape);
      return { row: known?.row, isSame, action: isSame ? touch(known.row) : toAction(entity, shape, known?.row) };
    });
    const isChanged = writes.some(({ isSame }) => !isSame);
    if (!accounts) {
      // Another process of the same deployment may have stored the shape already. Only an operator deletes it.
      for (const { isSame, action } of writes)
        if (!isSame) await tryAction(storage, { ...RECORD, isRepeatable: true }, action);
      return { before, changes };
    }
    if (!isChanged && (isLost || writes.every(({ row }) => isNoted(row, model)))) return { before, changes };
    const recording = recordWithCopies(
      { ...storage, accounts },
      model,
      writes.map(({ action }) => action),
    );
    const recorded = await recording.catch((error) => {
      // A start without a change needs no other account.
      if (isChanged || !isOutcomeUnknown(error)) throw error;
      return 'done';
    });
    if (recorded === 'done' || attempt === RECORD_ATTEMPTS) return { before, changes };
    isLost = recorded === 'changed';
  }
}

/** Returns undefined if the account of the record does not respond in time, and another one has a copy. */
async function unlessCopied(
  reading: Promise<readonly Row[]>,
  hasCopy: () => Promise<boolean>,
): Promise<readonly Row[] | undefined> {
  const rows = await unlessSlow(reading);
  return rows || (await hasCopy()) ? rows : reading;
}

function describeEntity(entity: Entity): object {
  const { name, formerKey } = entity;
  const former = formerKey && { partition: formerKey.partition.template, row: formerKey.row.template };
  return { name, former, shape: shapeOf(entity, {}) };
}

function toAction(entity: Entity, shape: Shape, known: Row | undefined): Action {
  const written = { row: entity.name, properties: { EntityType: ROW_TYPES.model, Shape: JSON.stringify(shape) } };
  return known ? { kind: 'replace', ...written, etag: known.etag } : { kind: 'insert', ...written };
}

/** Describes a model by all that the guard compares of it. */
function describeModel(parts: readonly object[]): string {
  const texts = parts.map((part) => JSON.stringify(part)).sort();
  return hash('sha256', texts.join('\n')).slice(0, 32);
}

/** True if the row of the record says that each account has a copy which describes the model. */
function isNoted(row: Row | undefined, model: string): boolean {
  return row?.properties[NOTE] === model;
}

/** The note of a row, for a change of it after which the guard accepts all that it accepted before. */
function noteOf({ properties }: Row): Readonly<Record<string, string>> {
  return typeof properties[NOTE] === 'string' ? { [NOTE]: properties[NOTE] } : {};
}

/** True if the first account that responds and has a copy says exactly this model. One point query of each account until then. */
async function isCopied({ list }: Accounts, model: string): Promise<boolean> {
  for (const account of list) {
    const { result: row } = await askAccount(account, readRow(account, COPY));
    if (row) return row.properties.Model === model;
  }
  return false;
}

const copyOf = (model: string) => ({ row: COPY.row, properties: { EntityType: COPY.row, Model: model } });

/** Empties the copies of all accounts. Returns the ETag of each. Throws `storage-unavailable` if an account is away. */
async function emptyCopies({ list }: Accounts): Promise<ReadonlyMap<Account, string>> {
  const empty = async (account: Account) => {
    const actions = [{ kind: 'upsert', ...copyOf('') }] as const;
    const etags = await ofAccount(account, submit(account, { ...COPY, actions, isRepeatable: true }));
    return [account, etags.get(COPY.row) ?? ''] as const;
  };
  return new Map(await Promise.all(list.map(empty)));
}

/**
 * Writes the rows of the record and fills the copies. `writes` has an action for each entity of the model, under the ETag that was read, and
 * nothing for the note. Returns `changed` if another process has changed the record meanwhile, and `overtaken` if one has emptied the copies.
 */
async function recordWithCopies(
  storage: Storage & { readonly accounts: Accounts },
  model: string,
  writes: readonly Action[],
): Promise<'done' | 'changed' | 'overtaken'> {
  const emptied = await emptyCopies(storage.accounts);
  const etags = new Map<string, string>();
  for (let at = 0; at < writes.length; at += mostActions(storage)) {
    const actions = writes.slice(at, at + mostActions(storage));
    const written = await trySubmit(storage, { ...RECORD, actions });
    if (!written) return 'changed';
    for (const [row, etag] of written) etags.set(row, etag);
  }
  const fill = ([account, etag]: readonly [Account, string]) =>
    ofAccount(account, tryAction(account, COPY, { kind: 'replace', ...copyOf(model), etag }));
  const filled = await Promise.all([...emptied].map(fill));
  if (filled.includes(false)) return 'overtaken';
  const notes = [...etags].map(([row, etag]): Action => ({ kind: 'merge', row, properties: { [NOTE]: model }, etag }));
  for (let at = 0; at < notes.length; at += mostActions(storage))
    await trySubmit(storage, { ...RECORD, actions: notes.slice(at, at + mostActions(storage)) });
  return 'done';
}

/** Leaves a row of the record as it is, but for the note. */
const touch = ({ row, etag }: Row): Action => ({ kind: 'merge', row, properties: { [NOTE]: '' }, etag });
