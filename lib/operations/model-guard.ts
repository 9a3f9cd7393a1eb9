import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { RowkeyError } from '../base/errors.ts';
import { DAY_MS, isoInstant } from '../base/time.ts';
import { omit, pick, withoutPrototype } from '../base/values.ts';
import { commandLine } from '../command-line.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { IndexShape } from '../define/declaration/projection.ts';
import { shapesOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { noteBuilt, noteUnbuilt } from '../engine/read/unbuilt-indexes.ts';
import { noteRecorded } from '../engine/shared-tables.ts';
import { features } from '../features/features.ts';
import { askAccount } from '../storage/errors.ts';
import { listTables } from '../storage/provision.ts';
import { scanTable } from '../storage/rows.ts';
import { ACCOUNTS_PARTITION, SYSTEM_TABLE } from '../storage/slot-row.ts';
import { accountsOf } from '../storage/storage.ts';
import { inPattern } from '../telemetry/span.ts';
import { describeForeign } from './foreign-rows.ts';
import { isBuilt, isKey, readShapes, recordModel, type Shape, type Shapes, shapeOf, tablesOf } from './model-record.ts';
import { resourcesOf } from './resources.ts';

/**
 * The guard stores the shape of every declaration in use and compares it with the current one. A change that would make stored
 * data unreachable or lose it is rejected in every process until an operator agrees to it (AGREED_MODEL_CHANGES). Nobody can agree to
 * another key of an entity that has rows, because their index entries and unique values would stay for ever.
 */

/** The fields of the release before are accepted again for so long. */
const ROLL_BACK_WITHIN_DAYS = 7;

/** The rejected changes of one entity, and its new shape. */
interface ModelChange {
  readonly entity: Entity;
  /** Changes that nobody can agree to. */
  readonly blocked: readonly string[];
  readonly refused: readonly string[];
  readonly notes: readonly string[];
  readonly shape: Shape;
}

/** Compares a declaration with its stored shape; `before` is undefined for a new entity. */
async function compareShapes(
  engine: Engine,
  entity: Entity,
  before: Shape | undefined,
  path: string | undefined,
): Promise<ModelChange> {
  const now = shapeOf(entity, before ?? {});
  if (!before) {
    // Only a table of another program has rows before the model has the entity.
    const unbuilt = entity.existing ? Object.keys(now.indexes) : [];
    return { entity, blocked: [], refused: [], notes: [], shape: { ...now, unbuilt } };
  }
  const blocked: string[] = [];
  const refused: string[] = [];
  const refuse = (why: string) => refused.push(`${entity.name}: ${why}`);
  if (before.archive !== undefined && before.archive !== now.archive)
    refuse(`the archive changed from ${before.archive}; stored rows would not be found`);
  const [left = [], leaves = []] = [before.archiveWithout, now.archiveWithout];
  const others = Object.keys(before.columns).filter((field) => left.includes(field) !== leaves.includes(field));
  if (before.archive !== undefined && others.some((field) => field in now.columns))
    refuse(
      `archive.without changed: ${others.join(', ')}; archived entities would lose values and files, or lack some`,
    );
  const changed = (['table', 'partition', 'row'] as const).filter((part) => before[part] !== now[part]);
  // The command that moves the entities changes the stored key.
  const rows = changed.length === 0 ? 'none' : await findRows(engine, entity, before);
  const isToMove = rows !== 'none' && before.table === now.table && isKey(entity.formerKey, before);
  const keys = isToMove ? [] : changed;
  if (before.rekey && !changed.length && !isKey(entity.formerKey, before.rekey))
    blocked.push(
      `${entity.name}: entities are still at the key ${before.rekey.partition} / ${before.rekey.row}; name it as key.former until ${commandLine('rekey', entity.name, path)} has moved them`,
    );
  for (const part of keys) {
    const change = `the ${part} changed from ${before[part]}`;
    if (rows === 'live')
      blocked.push(
        `${entity.name}: ${change} to ${now[part]}, and the table ${before.table} has rows that no request would find, while their index entries and unique values stay; undo the change, name the former key as key.former to move them, or delete the rows with the former release: ${commandLine('purge', entity.name, path)}`,
      );
    else if (rows === 'unlisted') refuse(`${change}; stored rows would not be found`);
  }
  for (const { memory } of features) for (const why of memory?.refuse?.(entity, before) ?? []) refuse(why);
  for (const [field, type] of Object.entries(before.columns)) {
    const other = now.columns[field];
    // A new version has an upgrade function for stored values.
    if (other !== undefined && other !== type && now.version <= before.version)
      refuse(`the type of the field ${field} changed from ${type} to ${other} without a new version`);
  }
  const lost = now.version <= before.version ? [...changedFields(before, now)] : [];
  const isRollBack = lost.length > 0 && isFormer(before.former, now);
  if (!isRollBack) for (const why of lost) refuse(`${why.text}: ${why.wayOut}`);
  if (now.version < before.version) refuse(`the version decreased from ${before.version} to ${now.version}`);
  const unbuilt = new Set(before.unbuilt.filter((name) => name in now.indexes));
  const leftOver = withoutPrototype(before.leftOver);
  for (const [name, index] of Object.entries(before.indexes)) {
    const next = now.indexes[name];
    if (next && isDeepStrictEqual(next, index)) continue;
    if (next?.unique && !index.unique) refuse(`the index ${name} became unique; stored entities may share a value`);
    if (next) unbuilt.add(name);
    const hasRows = features.some(({ projections }) => projections?.former?.(index, name));
    if (hasRows && (!next || !haveSameRows(next, index))) leftOver[nameIn(leftOver, name, index)] = index;
  }
  for (const [name, index] of Object.entries(now.indexes)) {
    if (!(name in before.indexes)) unbuilt.add(name);
    for (const [former, there] of Object.entries(leftOver)) {
      if (!haveSameRows(index, there)) continue;
      delete leftOver[former];
      refuse(
        `the index ${name} would read stale rows of the former index ${former}; clean up that index, or agree and run ${commandLine('verify', `${entity.name} --repair`, path)}`,
      );
    }
  }
  const areSame = isDeepStrictEqual(fieldsOf(before), fieldsOf(now));
  const former = areSame ? before.former : { ...fieldsOf(before), until: isoInstant(Date.now()) };
  return {
    entity,
    blocked,
    refused,
    notes: isRollBack
      ? [`${entity.name} has the fields of an older release: ${lost.map(({ text }) => text).join('; ')}.`]
      : [],
    shape: {
      ...now,
      ...(isToMove ? pick(before, ['partition', 'row']) : {}),
      ...(before.rekey ? { rekey: before.rekey } : {}),
      ...(before.hasForeignRows && before.table === now.table && !entity.sharedTable ? { hasForeignRows: true } : {}),
      unbuilt: [...unbuilt],
      leftOver,
      ...(former ? { former } : {}),
    },
  };
}

function fieldsOf({ columns, required }: Pick<Shape, 'columns' | 'required'>) {
  return { columns, ...(required ? { required } : {}) };
}

/**
 * True for the fields of the release before, whose deployment is recent: it was rolled back, or instances of both releases run.
 * Both releases must serve.
 */
function isFormer(former: Shape['former'], now: Shape): boolean {
  if (!former || Date.now() > Date.parse(former.until) + ROLL_BACK_WITHIN_DAYS * DAY_MS) return false;
  return isDeepStrictEqual(fieldsOf(former), fieldsOf(now));
}

/** The changes of fields that need a new version, whose upgrade sees the values as they were stored. */
function* changedFields(before: Shape, now: Shape): Generator<{ readonly text: string; readonly wayOut: string }> {
  const { decided, required } = before;
  // Nobody but the engine knows what it decides, and it can be computed again.
  for (const field of decided ? Object.keys(before.columns) : [])
    if (!(field in now.columns) && !decided?.includes(field))
      yield {
        text: `the field ${field} was removed without a new version; each write of a stored entity deletes its value`,
        wayOut: 'keep the field as an optional one, or raise the version, with an upgrade if the field has a new name',
      };
  for (const field of required ? (now.required ?? []) : [])
    if (!required?.includes(field) && !decided?.includes(field))
      yield {
        text: `the field ${field} became required without a new version; a stored entity without a value cannot be changed`,
        wayOut: 'keep the field optional, or raise the version with an upgrade that sets it',
      };
}

/**
 * Compares the declarations with their stored shapes and stores the new shapes. Returns notes for operators. Throws
 * `wrong-setting` that lists every rejected change and the value of AGREED_MODEL_CHANGES by which an operator agrees. The
 * commands in both name `path`, the path of the instance.
 */
export const guardModel = inPattern(
  'model guard',
  async (engine: Engine, entities: readonly Entity[], agreed: string | undefined, path?: string): Promise<string[]> => {
    const compared = await recordModel(engine, entities, (before) =>
      compareModel(engine, { entities, before, agreed, path }),
    );
    if (!compared) return ['The account of the record is away. The model is the one of the copy in another account.'];
    const { before, changes } = compared;
    const stored = changes.map(({ entity, shape }) => ({ name: entity.name, entity, shape }));
    const gone = [...before].flatMap(([name, { shape }]) =>
      entities.some((entity) => entity.name === name) ? [] : [{ name, entity: undefined, shape }],
    );
    const leftTables = await findLeftTables(engine, entities, [...stored, ...gone]);
    const nameInAccount = (table: string) => engine.storage.table(table).tableName;
    const left = gone.map(({ name, shape }) => {
      const tables = [...new Set([...tablesOf(shape).map(nameInAccount), ...(leftTables.get(name) ?? [])])];
      return `The entity ${name} is no longer declared, but its rows in ${tables.join(', ')} still exist. To end this message, delete the row ${name} of the partition ${ACCOUNTS_PARTITION} from the table ${nameInAccount(SYSTEM_TABLE)}.`;
    });
    const unused = stored.flatMap(({ name }) => {
      const tables = leftTables.get(name) ?? [];
      return tables.length === 0
        ? []
        : `An earlier declaration of ${name} left tables that nothing reads or drops: ${tables.join(', ')}. Delete each: az storage table delete --name ${tables[0]}`;
    });
    for (const { entity, shape } of changes) if (shape.hasForeignRows) noteRecorded(engine, entity);
    for (const { entity, shape } of changes)
      for (const index of Object.keys(shapesOf(entity, features)))
        if (!shape.unbuilt.includes(index)) noteBuilt(engine, entity, index);
        else
          noteUnbuilt(engine, entity, {
            index,
            command: commandLine('reindex', `${entity.name} ${index}`, path),
            isBuilt: () => isBuilt(engine, entity, index),
          });
    const upkeep = changes.flatMap(
      ({ entity, shape: { unbuilt, leftOver, partition, row, rekey, hasForeignRows } }) => [
        ...(hasForeignRows ? [describeForeign(engine, entity)] : []),
        ...(rekey || partition !== entity.partition.template || row !== entity.row.template
          ? [`Entities of ${entity.name} are at their former key: ${commandLine('rekey', entity.name, path)}`]
          : []),
        ...unbuilt.map(
          (index) =>
            `The index ${index} of ${entity.name} is not built: ${commandLine('reindex', `${entity.name} ${index}`, path)}`,
        ),
        ...Object.keys(leftOver).map(
          (index) =>
            `The rows of the former index ${index} of ${entity.name} still exist: ${commandLine('reindex', `${entity.name} ${index} --clean-up`, path)}`,
        ),
      ],
    );
    return [...changes.flatMap(({ notes }) => notes), ...left, ...unused, ...upkeep];
  },
);

/** Throws as `guardModel` does, and stores nothing: another model may be in use. */
export async function checkModel(
  engine: Engine,
  entities: readonly Entity[],
  agreed: string | undefined,
): Promise<void> {
  const before: Shapes = await unlessTableMissing(readShapes(engine), new Map());
  await compareModel(engine, { entities, before, agreed, path: undefined });
}

/** Throws `wrong-setting` for changes that are rejected. */
async function compareModel(
  engine: Engine,
  {
    entities,
    before,
    agreed,
    path,
  }: {
    readonly entities: readonly Entity[];
    readonly before: Shapes;
    readonly agreed: string | undefined;
    readonly path: string | undefined;
  },
): Promise<readonly ModelChange[]> {
  const changes: ModelChange[] = [];
  for (const entity of entities)
    changes.push(await compareShapes(engine, entity, before.get(entity.name)?.shape, path));
  const blocked = changes.flatMap((change) => change.blocked);
  const refused = changes.flatMap((change) => change.refused);
  if (blocked.length > 0)
    throw new RowkeyError(
      'wrong-setting',
      `The model changed in a way that makes stored data unreachable: ${[...blocked, ...refused].join('; ')}.`,
    );
  const word = wordOf(refused);
  if (refused.length > 0 && agreed !== word)
    throw new RowkeyError(
      'wrong-setting',
      `The model changed in a way that makes stored data unreachable or loses it: ${refused.join('; ')}. Undo the change, or set AGREED_MODEL_CHANGES to ${word}.`,
    );
  return changes;
}

/** What the record has besides the declaration of an entity. */
const UPKEEP = ['partition', 'row', 'rekey', 'former', 'hasForeignRows', 'unbuilt', 'leftOver'];

/**
 * Throws `wrong-setting` if the app has recorded another declaration. For commands that write rows past the app: it would not find them, or
 * lack what follows from them. An app that has not started yet has recorded none.
 */
export async function requireRecorded(engine: Engine, entities: readonly Entity[]): Promise<void> {
  const recorded = await readShapes(engine);
  const others = entities.filter((entity) => {
    const { shape } = recorded.get(entity.name) ?? {};
    if (!shape) return false;
    const hasKey = isKey(entity, shape) || isKey(entity.formerKey, shape);
    return !hasKey || !isDeepStrictEqual(omit(shapeOf(entity, shape), UPKEEP), omit(shape, UPKEEP));
  });
  if (others.length === 0) return;
  const names = others.map(({ name }) => name).join(', ');
  throw new RowkeyError(
    'wrong-setting',
    `The app has recorded another declaration of ${names}. Deploy the model first, or use that of the release that runs.`,
  );
}

interface Stored {
  readonly name: string;
  readonly entity: Entity | undefined;
  readonly shape: Shape;
}

/** The existing tables that earlier declarations left, by the name of their entity. */
async function findLeftTables(
  { storage }: Engine,
  entities: readonly Entity[],
  stored: readonly Stored[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = stored.flatMap(({ name, entity, shape }) =>
    features.flatMap(({ memory }) => {
      const isLeft = memory?.leftTables?.(shape, entity);
      return isLeft ? [{ name, table: shape.table, isLeft }] : [];
    }),
  );
  if (found.length === 0) return new Map();
  const { tables: inUse } = resourcesOf(entities);
  // The tables of an account that is away are named at a later start.
  const listed = await Promise.all(accountsOf(storage).map((account) => askAccount(account, listTables(account, ''))));
  const all = [...new Set(listed.flatMap(({ result = [] }) => result))];
  const free = (storage.accounts ? all.sort() : all).filter((table) => !inUse.includes(table));
  // A name that begins with the longer table name of another entity belongs to that entity.
  const isOfOther = (table: string, own: string) =>
    entities.some((other) => other.table.length > own.length && table.startsWith(other.table));
  const byName = Map.groupBy(found, ({ name }) => name);
  return new Map(
    [...byName].map(([name, all]) => [
      name,
      free
        .filter((table) => all.some((one) => one.isLeft(table) && !isOfOther(table, one.table)))
        // The account has the names with the prefix.
        .map((table) => storage.table(table).tableName),
    ]),
  );
}

function haveSameRows(one: IndexShape, other: IndexShape): boolean {
  return one.table === other.table && one.partition === other.partition && one.row === other.row;
}

/** The index name, with a number if a different former index of that name is already recorded. */
function nameIn(leftOver: Shape['leftOver'], name: string, index: IndexShape): string {
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? name : `${name}-${number}`;
    const there = leftOver[free];
    if (!there || haveSameRows(there, index)) return free;
  }
}

/** A hash of the rejected changes, so that agreement to one change does not cover another. */
function wordOf(refused: readonly string[]): string {
  return hash('sha256', refused.join('\n')).slice(0, 12);
}

/**
 * Finds rows that another key of an entity would hide, in the tables of its former declaration: `live` ones, which can be purged, or
 * only `unlisted` ones, which no request lists and no index has: those of an archive, of periods and of a series.
 */
async function findRows(
  { storage }: Engine,
  entity: Entity,
  { table, archive }: { readonly table: string; readonly archive?: string | undefined },
): Promise<'live' | 'unlisted' | 'none'> {
  if (entity.period || entity.series) return 'unlisted';
  const has = async (name: string, type: string | undefined) => {
    const { rows } = await unlessTableMissing(scanTable(storage, { table: name, type, limit: 1 }), { rows: [] });
    return rows.length > 0;
  };
  // Clients may write any type.
  if (await has(table, entity.isWrittenByClients ? undefined : entity.name)) return 'live';
  return archive !== undefined && (await has(archive, undefined)) ? 'unlisted' : 'none';
}
