import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Entity } from '../define/entity.ts';
import type { Index } from '../define/indexes.ts';
import { withoutPrototype } from '../define/without-prototype.ts';
import type { Engine } from '../engine/engine.ts';
import { SYSTEM_TABLE } from '../engine/read/continuation.ts';
import { RowkeyError } from '../errors.ts';
import { type Action, type Row, readRange, readRow, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * What the declaration was when it was last in use is kept, and compared with what it is: a change that would strand or
 * lose what is stored is refused, in every process, until an operator agrees to it by name.
 */

const PARTITION = 'model';

const IndexShape = z.object({
  kind: z.string(),
  table: z.string().optional(),
  partition: z.string().optional(),
  row: z.string(),
  holds: z.string().optional(),
  unique: z.boolean().optional(),
  copies: z.unknown().optional(),
});
export type IndexShape = z.infer<typeof IndexShape>;

/** By the names of fields and indexes, of which one may be asked for by a caller. */
function recordOf<Value extends z.ZodType>(value: Value) {
  return z.record(z.string(), value).transform((record) => withoutPrototype(record));
}

const Shape = z.object({
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  archive: z.string().optional(),
  perDay: z.object({ field: z.string(), keepDays: z.number() }).optional(),
  encrypted: z.array(z.string()),
  large: z.array(z.string()),
  // The type that each field is stored as, and the container of each attachment: what was kept earlier has neither.
  columns: recordOf(z.string()).prefault({}),
  attachments: recordOf(z.string()).prefault({}),
  version: z.number(),
  indexes: recordOf(IndexShape),
  /** Declared, and not built yet from what was there before. */
  unbuilt: z.array(z.string()),
  /** No longer declared, and still there. */
  leftOver: recordOf(IndexShape),
});
export type Shape = z.infer<typeof Shape>;

/** What has to be said of a change, and what an operator has to agree to. */
interface ModelChange {
  readonly refused: readonly string[];
  readonly shape: Shape;
}

/** The shape that a declaration has; `before` is what it was. */
function compareShapes(entity: Entity, before: Shape | undefined): ModelChange {
  const now = shapeOf(entity);
  if (!before) return { refused: [], shape: now };
  const refused: string[] = [];
  const refuse = (why: string) => refused.push(`${entity.name}: ${why}`);
  for (const part of ['table', 'partition', 'row', 'archive'] as const)
    if (before[part] !== now[part] && before[part] !== undefined)
      refuse(`its ${part} was ${before[part]}, and what is there would not be found any more`);
  const kept = before.perDay?.keepDays ?? Number.POSITIVE_INFINITY;
  if ((now.perDay?.keepDays ?? Number.POSITIVE_INFINITY) < kept && before.perDay)
    refuse(`its days were kept ${kept} days, and those before ${now.perDay?.keepDays} would be dropped`);
  if (before.perDay?.field !== now.perDay?.field) refuse('its tables were chosen by another field');
  for (const part of ['encrypted', 'large'] as const) {
    const other = [...before[part], ...now[part]].find(
      (field) => before[part].includes(field) !== now[part].includes(field),
    );
    // A field that becomes large is read as it was.
    if (other !== undefined && !(part === 'large' && now.large.includes(other)))
      refuse(`its field ${other} is stored ${before[part].includes(other) ? '' : 'not '}as one that is ${part}`);
  }
  for (const [field, type] of Object.entries(before.columns)) {
    const other = now.columns[field];
    // An upgrade says what to make of what is there.
    if (other !== undefined && other !== type && now.version <= before.version)
      refuse(`its field ${field} is stored as ${type}, and would be read as ${other}; a new version could upgrade it`);
  }
  for (const [field, container] of Object.entries(before.attachments))
    if (now.attachments[field] !== container)
      refuse(`its files of ${field} are in the container ${container}, and would not be found any more`);
  if (now.version < before.version) refuse(`its version was ${before.version}`);
  const unbuilt = new Set(before.unbuilt.filter((name) => name in now.indexes));
  const leftOver = withoutPrototype(before.leftOver);
  for (const [name, index] of Object.entries(before.indexes)) {
    const next = now.indexes[name];
    if (next && isDeepStrictEqual(next, index)) continue;
    if (next?.unique && !index.unique) refuse(`its index ${name} was not unique, and two may have one value`);
    if (next) unbuilt.add(name);
    if (!next || !haveSameRows(next, index)) leftOver[nameIn(leftOver, name, index)] = index;
  }
  for (const [name, index] of Object.entries(now.indexes)) {
    if (!(name in before.indexes)) unbuilt.add(name);
    for (const [former, there] of Object.entries(leftOver)) {
      if (!haveSameRows(index, there)) continue;
      delete leftOver[former];
      refuse(
        `its index ${name} would find what the former index ${former} kept and nobody kept up to date since; clean that up, or agree and run npm run verify -- ${entity.name} --repair`,
      );
    }
  }
  return { refused, shape: { ...now, unbuilt: [...unbuilt], leftOver } };
}

/**
 * Compares what is declared with what is stored, and keeps it. Throws `wrong-setting` with every change that is refused, and
 * the word that an operator sets AGREED_MODEL_CHANGES to in order to agree. Answers what an operator should know.
 */
export const guardModel = inPattern(
  'model guard',
  async (engine: Engine, entities: readonly Entity[], agreed: string | undefined): Promise<string[]> => {
    const { rows } = await readRange(engine.storage, { table: SYSTEM_TABLE, partition: PARTITION, from: '' });
    const before = new Map(rows.map((row) => [row.row, { row, shape: toShape(row) }]));
    const changes = entities.map((entity) => ({ entity, ...compareShapes(entity, before.get(entity.name)?.shape) }));
    const refused = changes.flatMap((change) => change.refused);
    const word = wordOf(refused);
    if (refused.length > 0 && agreed !== word)
      throw new RowkeyError(
        'wrong-setting',
        `The declaration has changed in a way that would strand or lose what is stored. ${refused.join('; ')}. Undo that, or set AGREED_MODEL_CHANGES to ${word}.`,
      );
    for (const { entity, shape } of changes) {
      const known = before.get(entity.name);
      if (known && isDeepStrictEqual(known.shape, shape)) continue;
      const properties = { EntityType: 'model', Shape: JSON.stringify(shape) };
      const action: Action = known
        ? { kind: 'replace', row: entity.name, properties, etag: known.row.etag }
        : { kind: 'insert', row: entity.name, properties };
      // Another process of the same deployment may have been first.
      await tryAction(engine.storage, { table: SYSTEM_TABLE, partition: PARTITION }, action);
    }
    const gone = [...before].filter(([name]) => !entities.some((entity) => entity.name === name));
    const left = gone.map(
      ([name, { shape }]) =>
        `The entity ${name} is not declared any more, and what it kept in ${tablesOf(shape).join(', ')} is still there. This is said until its row of the partition ${PARTITION} is taken out of the table ${SYSTEM_TABLE}.`,
    );
    const upkeep = changes.flatMap(({ entity, shape: { unbuilt, leftOver } }) => [
      ...unbuilt.map(
        (index) => `The index ${index} of ${entity.name} is not built: npm run reindex -- ${entity.name} ${index}`,
      ),
      ...Object.keys(leftOver).map(
        (index) =>
          `What the former index ${index} of ${entity.name} kept is still there: npm run reindex -- ${entity.name} ${index} --clean-up`,
      ),
    ]);
    return [...left, ...upkeep];
  },
);

function tablesOf({ table, archive, indexes }: Shape): string[] {
  const tables = [table, archive, ...Object.values(indexes).map((index) => index.table)];
  return [...new Set(tables.filter((used) => used !== undefined))];
}

function haveSameRows(one: IndexShape, other: IndexShape): boolean {
  return one.table === other.table && one.partition === other.partition && one.row === other.row;
}

/** Its own, or that with a number where another one of its name is left over already. */
function nameIn(leftOver: Shape['leftOver'], name: string, index: IndexShape): string {
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? name : `${name}-${number}`;
    const there = leftOver[free];
    if (!there || haveSameRows(there, index)) return free;
  }
}

/** An index that is declared no more and whose rows are still there. */
export async function readFormerIndex(engine: Engine, entity: Entity, index: string): Promise<IndexShape | undefined> {
  const row = await readRow(engine.storage, { table: SYSTEM_TABLE, partition: PARTITION, row: entity.name });
  return row && toShape(row).leftOver[index];
}

/** Notes that nothing is left of an index that is declared no more. */
export async function markCleanedUp(engine: Engine, entity: Entity, index: string): Promise<void> {
  await changeShape(engine, entity, ({ leftOver: { [index]: _, ...leftOver }, ...shape }) => ({ ...shape, leftOver }));
}

/** Notes that an index has been built from everything that was there. */
export async function markBuilt(engine: Engine, entity: Entity, index: string): Promise<void> {
  await changeShape(engine, entity, (shape) => ({
    ...shape,
    unbuilt: shape.unbuilt.filter((name) => name !== index),
  }));
}

/** Under its ETag, and again from what is there then where another process was first. */
async function changeShape({ storage }: Engine, entity: Entity, change: (shape: Shape) => Shape): Promise<void> {
  const address = { table: SYSTEM_TABLE, partition: PARTITION, row: entity.name };
  for (;;) {
    const row = await readRow(storage, address);
    if (!row) return;
    const properties = { EntityType: 'model', Shape: JSON.stringify(change(toShape(row))) };
    if (await tryAction(storage, address, { kind: 'replace', row: entity.name, properties, etag: row.etag })) return;
  }
}

function toShape({ properties }: Row): Shape {
  return Shape.parse(JSON.parse(String(properties.Shape)));
}

function shapeOf(entity: Entity): Shape {
  const { table, partition, row, archive, perDay, encrypted, large, columns, attachments, version, indexes } = entity;
  return Shape.parse(
    JSON.parse(
      JSON.stringify({
        table,
        partition: partition.template,
        row: row.template,
        archive: archive?.table,
        perDay,
        encrypted,
        large,
        columns,
        attachments: Object.fromEntries(
          Object.entries(attachments).map(([field, { container }]) => [field, container]),
        ),
        version,
        indexes: Object.fromEntries(Object.entries(indexes).map(([name, index]) => [name, indexShape(index)])),
        unbuilt: [],
        leftOver: {},
      }),
    ),
  );
}

function indexShape(index: Index): IndexShape {
  const { kind, remote, row } = index;
  const shape = { kind, table: remote?.table, partition: remote?.partition.template, row: row.template };
  if (kind === 'index-entity') return { ...shape, holds: index.holds.template };
  return { ...shape, copies: index.copies, ...(kind === 'inter-partition' ? { unique: index.unique } : {}) };
}

/** Another change takes another word. */
function wordOf(refused: readonly string[]): string {
  return createHash('sha256').update(refused.join('\n')).digest('hex').slice(0, 12);
}
