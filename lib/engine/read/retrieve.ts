import { isDeepStrictEqual } from 'node:util';
import { fieldsToProperties, storedNames, storedVersion } from '../../define/codec/entity-codec.ts';
import { referenceFields } from '../../define/codec/kept-fields.ts';
import { type Entity, isWrittenByClients } from '../../define/entity.ts';
import { periodOfTable } from '../../define/keys/calendar.ts';
import { addressOf } from '../../define/keys/index-entries.ts';
import { buildKey, keyRange, prefixOfChildren, rangeOfPrefix } from '../../define/keys/key-template.ts';
import { omit, pick, type Stored, type Values } from '../../define/values.ts';
import { RowkeyError } from '../../errors.ts';
import { type Row, readRange, readRow, scanTable } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { notFound, readLive } from '../write/entity-store.ts';
import type { Position } from './continuation.ts';
import { entityIn } from './judge-row.ts';
import { PAGE_LENGTH, readBound, rowLength, valuesLength, withinPage } from './page-length.ts';
import { periodsToRead, readPeriods } from './read-periods.ts';

/** Reads by key and by range. Only `scanEntities` reads a whole table. */

export interface Page {
  readonly items: readonly Values[];
  /** The start of the next page, if there is one. */
  readonly next: Position | undefined;
}

/** The most items of a page of a range. */
const MAX_CHILDREN = 1_000;

export interface PageOptions {
  readonly after?: Position | undefined;
  readonly top: number;
}

export interface RangeOptions extends PageOptions {
  /** Inclusive bounds of the first field of the row key; each is a prefix. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly select?: readonly string[] | undefined;
  /** Only entities with these values. Storage reads every row of the range. */
  readonly where?: Values | undefined;
}

/** A point query: one transaction. Throws `not-found`. */
export const readEntity = inPattern(
  'point query',
  async (engine: Engine, entity: Entity, key: Values): Promise<Stored> => {
    const found = await readLive(engine, entity, addressOf(entity, key));
    if (!found) throw notFound(entity, key);
    return found;
  },
);

export interface ChildrenOptions {
  /** The fields of each kind by its name; without it all except large fields. */
  readonly select?: Readonly<Record<string, readonly string[] | undefined>>;
}

/**
 * Reads an entity with its children of these kinds in one range query. Throws `not-found`, and `too-large` if the children
 * exceed a page, because a caller could mistake a part of them for all.
 */
export const readWithChildren = inPattern(
  'compound key',
  async (
    { storage }: Engine,
    entity: Entity,
    key: Values,
    kinds: readonly Entity[],
    { select = {} }: ChildrenOptions = {},
  ): Promise<Stored> => {
    const { table, partition, row } = addressOf(entity, key);
    const prefix = prefixOfChildren(entity.row, row);
    const { before } = rangeOfPrefix(prefix);
    const fields = new Map(
      kinds.map((kind) => [kind, addKeyOfReferences(kind, select[kind.name] ?? listedFields(kind))]),
    );
    const all = [entity, ...kinds];
    // An upgrade needs the whole row.
    const isWhole =
      all.some(({ version }) => version > 1) || [...fields.values()].every((names) => names === undefined);
    const columns = ({ columns }: Entity) => Object.keys(columns);
    const stored = all.flatMap((kind) => storedNames(kind, fields.get(kind) ?? columns(kind)));
    // If the children's keys escape a `_` of the parent's key, they do not sort after the parent, which then takes its own read.
    const isBeside = prefix.startsWith(row);
    const { rows, more } = await readRange(storage, {
      table,
      partition,
      from: isBeside ? row : prefix,
      before,
      // Keys of other entities may lie between the two.
      without: isBeside ? { after: row, before: prefix } : undefined,
      type: all.map(({ name }) => name),
      select: isWhole ? undefined : [...new Set(stored)],
      limit: MAX_CHILDREN + 1,
      bound: readBound(all),
    });
    const own = isBeside ? rows.find((found) => found.row === row) : await readRow(storage, { table, partition, row });
    const snapshot = own && entityIn(entity, own);
    if (!snapshot) throw notFound(entity, key);
    const beside = rows.filter((each) => each.row.startsWith(prefix));
    const children = kinds.map((kind) => {
      const found = beside.map((each) => entityIn(kind, each)?.values).filter((values) => values !== undefined);
      const names = fields.get(kind);
      return { name: kind.name, list: names ? found.map((values) => pick(values, names)) : found };
    });
    const items = children.flatMap(({ list }) => list);
    if (more || withinPage(items, valuesLength).length < items.length)
      throw new RowkeyError(
        'too-large',
        `The children to include exceed ${MAX_CHILDREN} entities or ${PAGE_LENGTH} characters.`,
        { field: 'include', accepted: `GET on ${kinds.map(({ name }) => `/api/${name}`).join(' or ')}, page by page` },
      );
    const lists = Object.fromEntries(children.map(({ name, list }) => [name, list]));
    return { etag: snapshot.etag, values: { ...snapshot.values, ...lists } };
  },
);

/** The default fields of a list: all except those that patterns leave out. Undefined if it is all. */
export function listedFields(entity: Entity): string[] | undefined {
  const unlisted = entity.patterns.flatMap((pattern) => pattern.unlistedFields?.(entity) ?? []);
  return unlisted.length === 0 ? undefined : Object.keys(entity.columns).filter((field) => !unlisted.includes(field));
}

/** The fields to read for the selected ones. A reference may be bound to the key of its entity. */
function addKeyOfReferences(entity: Entity, select: readonly string[] | undefined): readonly string[] | undefined {
  const references = referenceFields(entity);
  return select?.some((field) => references.includes(field)) ? [...entity.keyFields, ...select] : select;
}

/** A range query within one partition; if each period has a table, within that partition of each table. */
export const readEntities = inPattern(
  'range query',
  async (engine: Engine, entity: Entity, key: Values, options: RangeOptions): Promise<Page> => {
    const { from, to, top, after } = options;
    const partition = buildKey(entity.partition, key);
    const bounds = keyRange(entity.row, { from, to });
    const isClients = isWrittenByClients(entity);
    const type = typeOf(entity);
    // In a row that a client wrote, only the keys may contain the key fields.
    const asked = isClients ? omit(options.where ?? {}, entity.keyFields) : options.where;
    const where = fieldsToProperties(entity, asked ?? {});
    const wanted = addKeyOfReferences(entity, options.select);
    // An upgrade, and the check of a row that a client wrote, need the whole row.
    const isWhole = entity.version > 1 || isClients;
    const select = wanted && !isWhole ? storedNames(entity, wanted) : undefined;
    // Storage would compare the stored values of older versions. So their rows are all read, and compared after the upgrade.
    const orVersionBefore = entity.version > 1 ? entity.version : undefined;
    const bound = readBound([entity], isWhole ? undefined : wanted);
    const common = { partition, where, orVersionBefore, select, limit: top, bound };
    const { rows, more } = entity.period
      ? await readPeriods(engine, entity, {
          ...common,
          bounds,
          periods: periodsToRead(entity, { key, from, to, now: engine.now() }),
          after: after?.period === undefined ? undefined : { period: after.period, row: after.row },
        })
      : await readRange(engine.storage, { table: entity.table, ...common, ...bounds, after: after?.row, type });
    return toPage(entity, rows, more, { where: options.where, select: wanted });
  },
);

/** A table scan: reads every row of the table. Nothing else calls this implicitly. */
export const scanEntities = inPattern(
  'table scan',
  async (engine: Engine, entity: Entity, { top, after }: PageOptions): Promise<Page> => {
    if (entity.period)
      throw new RowkeyError(
        'invalid-input',
        `${entity.name} has a table for each ${entity.period.per}; read it by partition.`,
      );
    const from = after?.partition === undefined ? undefined : { partition: after.partition, row: after.row };
    const scan = { table: entity.table, type: typeOf(entity), after: from, limit: top, bound: readBound([entity]) };
    const read = await scanTable(engine.storage, scan);
    const rows = withinPage(read.rows, rowLength);
    const more = read.more || rows.length < read.rows.length;
    const last = rows.at(-1);
    const items = rows.map((row) => entityIn(entity, row)?.values).filter((values) => values !== undefined);
    return { items, next: more && last ? { partition: last.partition, row: last.row } : undefined };
  },
);

/** The `EntityType` to filter by; undefined if clients write the rows, which may then have any type. */
function typeOf(entity: Entity): string | undefined {
  return isWrittenByClients(entity) ? undefined : entity.name;
}

function toPage(
  entity: Entity,
  read: readonly Row[],
  hasMore: boolean,
  { where = {}, select }: Pick<RangeOptions, 'where' | 'select'>,
): Page {
  const rows = withinPage(read, rowLength);
  const more = hasMore || rows.length < read.length;
  // Storage has already filtered the other rows.
  const isToCompare = ({ properties }: Row) =>
    isWrittenByClients(entity) || storedVersion(entity, properties) < entity.version;
  const items = rows
    .flatMap((row) => {
      const values = entityIn(entity, row)?.values;
      return values ? [{ row, values }] : [];
    })
    .filter(({ row, values }) => !isToCompare(row) || isDeepStrictEqual(pick(values, Object.keys(where)), where))
    .map(({ values }) => (select ? pick(values, select) : values));
  const last = rows.at(-1);
  if (!more || !last) return { items, next: undefined };
  const { period } = entity;
  const next = { row: last.row, period: period && periodOfTable(period.per, entity.table, last.table) };
  return { items, next };
}
