import pMap from 'p-map';
import { z } from 'zod';
import { limitOf, listLimitOf, toFilter } from '../access/limit.ts';
import { hiddenFields, nameAllReaders, requireFields, requireRole } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import { pick, type Values } from '../base/values.ts';
import { isWithin, narrow } from '../define/codec/limit.ts';
import {
  type AskedFilter,
  askedFields,
  compileFilter,
  type Filter,
  matches,
  onlyText,
  toSelection,
} from '../define/codec/query.ts';
import { compileOnce, maskOf, parse } from '../define/codec/validation.ts';
import type { Limit } from '../define/declaration/comparison.ts';
import { type Entity, nameOfKind } from '../define/declaration/entity.ts';
import type { Index } from '../define/declaration/indexes.ts';
import type { Total } from '../define/declaration/totals.ts';
import { buildKey } from '../define/keys/key-template.ts';
import { closedIndexReason, closedListReason } from '../define/places/closed-index.ts';
import { copiedFields, type IndexBounds, indexRange } from '../define/places/index-range.ts';
import { rolesToList, rolesToListThrough } from '../define/places/reach.ts';
import { rolesToReadBy } from '../define/places/readers.ts';
import type { Engine } from '../engine/engine.ts';
import { type IndexPageOptions, readByCopies, readByList, readByLists } from '../engine/read/read-through-index.ts';
import { listedFields, type Page, type PageOptions, readEntities, scanEntities } from '../engine/read/retrieve.ts';
import { scanSeries } from '../features/data-series/scan-series.ts';
import { wholeLists } from '../features/features.ts';
import { toListEtag } from '../features/lookup/lookup.ts';
import { readTotal, readTotals } from '../features/totals/read-totals.ts';
import { openPage, ruledValues } from './open.ts';
import type { Operation, View } from './operation.ts';

/** Lists of entities, and totals. Keys and values of indexes have been checked: only a binding knows their form. */

/** What every list accepts. */
export interface ListInput<Field extends string = string, Where = AskedFilter> {
  /** Names of fields; by default all but large ones. */
  readonly select?: readonly Field[] | undefined;
  /** Only entities that match. Storage reads all of the range. */
  readonly where?: Where | undefined;
}

/** The fields of an entity to return; undefined for the default. Throws `invalid-input`. */
export function selectionOf(
  entity: Entity,
  { select }: Pick<ListInput, 'select'>,
  available?: readonly string[],
): readonly string[] | undefined {
  return toSelection(entity, select, { available })[entity.name];
}

/** What the engine needs of the input of a list. Throws `invalid-input`. */
function compileList(entity: Entity, input: ListInput, available?: readonly string[]) {
  return {
    select: selectionOf(entity, input, available),
    where: compileFilter(entity, input.where, available),
  };
}

/** A page that storage is not asked for, because no row of the list is within reach. */
const EMPTY: Page = { items: [], next: undefined };

/** The filter of a list with the rows that the caller reaches; undefined if there are none. */
async function withinReach(
  view: View,
  entity: Entity,
  { given, index, where = [] }: { readonly given: Values; readonly index?: Index; readonly where?: Filter | undefined },
): Promise<Filter | undefined> {
  const limit = narrow(await listLimitOf(view, entity, index), given);
  return limit?.length === 0 ? undefined : [...where, ...toFilter(limit)];
}

/** A filter by a hidden field would disclose its value. */
export function admitFilterOf(entity: Entity): Pick<Operation<ListInput, unknown>, 'admit'> {
  return { admit: (caller, { where }) => requireFields(entity, caller, askedFields(where)) };
}

export interface RangeInput extends ListInput, PageOptions {
  readonly partition: Values;
  /** The first value of the first field of the row key, or a prefix. */
  readonly from?: string | undefined;
  /** The last value. All values that begin with it are included. */
  readonly to?: string | undefined;
  /** Reads the entities as they were at this ISO instant. */
  readonly at?: string | undefined;
}

/** A page of the entities of a partition. */
export const listRange = onceFor((entity: Entity): Operation<RangeInput, Page> => {
  const { fields } = entity.partition;
  return {
    name: `${entity.name}-range`,
    summary: `List ${entity.name}${fields.length > 0 ? ` of one ${fields.join(', ')}` : ''}`,
    kind: 'read',
    entity,
    roles: rolesToList(entity),
    closed: closedListReason(entity),
    at: ({ at }) => at,
    ...admitFilterOf(entity),
    async run(view, { partition, ...input }) {
      const { select = listedFields(entity), ...asked } = compileList(entity, input);
      if (view.engine.present) return listPast(view, entity, { ...input, ...asked, partition, select });
      const where = await withinReach(view, entity, { given: partition, ...asked });
      if (!where) return EMPTY;
      const { from, to } = input;
      const bounds = from === undefined && to === undefined ? boundsOf(entity, where) : { from, to };
      const page = await readEntities(view.engine, entity, partition, { ...input, ...bounds, select, where });
      return openPage(view, entity, page, select);
    },
  };
});

/** A page of a range as it was. A page of a caller whom rules on rows limit may have fewer entities than there are. */
async function listPast(
  view: View,
  entity: Entity,
  { partition, select, ...input }: Omit<RangeInput, 'where'> & { readonly where?: Filter | undefined },
): Promise<Page> {
  const limit = narrow(await listLimitOf(view, entity), partition);
  if (limit?.length === 0) return EMPTY;
  const read = select && [...new Set([...select, ...entity.keyFields])];
  const page = await readEntities(view.engine, entity, partition, { ...input, select: read });
  return openPage(view, entity, { ...page, items: await withinNow(view, entity, limit, page.items) }, select);
}

const PRESENT_CONCURRENCY = 8;

/** The entities of the past whose present rows are within the limit. Those of the present were read with it. */
export async function withinNow(
  view: View,
  entity: Entity,
  limit: Limit | undefined,
  items: readonly Values[],
): Promise<readonly Values[]> {
  if (!limit || !view.engine.present) return items;
  const ruled = await pMap(items, (values) => ruledValues(view, entity, values), { concurrency: PRESENT_CONCURRENCY });
  return items.filter((_, index) => isWithin(limit, ruled[index] ?? {}));
}

/** A page of one partition of the entity, or of one of its indexes. */
export function listIn(
  view: View,
  entity: Entity,
  {
    index,
    given,
    page,
  }: { readonly index: string | undefined; readonly given: Values; readonly page: ListInput & PageOptions },
): Promise<Page> {
  return index === undefined
    ? listRange(entity).run(view, { ...page, partition: given })
    : listIndex(entity, index).run(view, { ...page, given });
}

/** The range of row keys that begin with the only value that a rule allows, if it fixes the first field of the row key. */
function boundsOf({ row, columns }: Entity, where: Filter): Pick<RangeInput, 'from' | 'to'> {
  const [first] = row.parts;
  if (!first || first.hash || first.newestFirst || columns[first.field] !== 'String') return {};
  const value = onlyText(where, first.field);
  return value === undefined ? {} : { from: value, to: value };
}

/** A page of all entities: it reads the whole table, or those of all periods. For the steward, and for operators who may read the entity. */
export function scan(entity: Entity, operatorRole: string): Operation<ListInput & PageOptions, Page> {
  return {
    ...scanOf(entity, operatorRole),
    async admit(caller, { where }, view) {
      await requireAllRows(view, entity, caller);
      requireFields(entity, caller, askedFields(where));
    },
    async run(view, input) {
      // An export must not end at one entity.
      const options = { ...input, ...compileList(entity, input), marksLost: true };
      return openPage(view, entity, await scanEntities(view.engine, entity, options), options.select);
    },
  };
}

/** A page of all series with all counts: see `scan`. */
export function scanAllSeries(entity: Entity, operatorRole: string): Operation<PageOptions, Page> {
  return {
    ...scanOf(entity, operatorRole),
    output: () => z.object({ items: z.array(entity.schema.extend({ counts: z.array(z.int()).nullable() })) }),
    admit: (caller, _, view) => requireAllRows(view, entity, caller),
    run: ({ engine, isLastAttempt }, page) => scanSeries(engine, entity, { ...page, isLastAttempt }),
  };
}

function scanOf(entity: Entity, operatorRole: string) {
  const name = nameOfKind(entity);
  return {
    name: `operations-scan-${name.replace('/', '-')}`,
    summary: `List all of ${name} by reading the whole table; requires one of these roles too: ${entity.access.read.join(', ')}`,
    kind: 'read',
    entity,
    roles: [...new Set([operatorRole, entity.access.steward ?? operatorRole])],
  } as const;
}

async function requireAllRows(view: View, entity: Entity, caller: Caller): Promise<void> {
  requireRole(caller, entity.access.read);
  if (await limitOf(view, entity, 'read')) throw beyondReach(entity, 'a list of all rows');
}

export interface IndexInput extends ListInput, PageOptions, IndexBounds {
  /** The fields of one value, or the first ones of a range. */
  readonly given: Values;
}

/** The index or total with this name. A binding has checked the name. */
export function named<Declared>(all: Readonly<Record<string, Declared>>, name: string): Declared {
  const found = Object.hasOwn(all, name) ? all[name] : undefined;
  if (!found) throw new Error(`Nothing declared has the name "${name}".`);
  return found;
}

/** Where a read of an index looks: its partition, if all fields of the partition key are given. */
export function placeIn(entity: Entity, { remote }: Index, given: Values) {
  const { table, partition } = remote ?? entity;
  const isOne = partition.fields.every((field) => given[field] !== undefined);
  return { address: { table, partition: isOne ? buildKey(partition, given) : '' }, fields: Object.keys(given) };
}

/** A page of the entities that an index lists. */
export function listIndex(entity: Entity, name: string): Operation<IndexInput, Page> {
  const index = named(entity.indexes, name);
  const available = copiedFields(entity, index);
  return {
    name: `${entity.name}-by-${name}`,
    summary: `List ${entity.name} by ${name}`,
    kind: 'read',
    entity,
    roles: rolesToListThrough(entity, index),
    closed: closedIndexReason(entity, name, index),
    place: ({ given }) => placeIn(entity, index, given),
    ...admitFilterOf(entity),
    async run(view, input) {
      const { given } = input;
      const { select, ...asked } = compileList(entity, input, available);
      const where = await withinReach(view, entity, { given, index, ...asked });
      if (where) return readIndexPage(view, entity, index, { ...input, select, where });
      // Throws for bounds that the index does not have, as if there were something to read.
      indexRange(entity, index, given, pick({ ...input }, ['from', 'to', 'prefix', 'order']));
      return EMPTY;
    },
  };
}

/**
 * A page of the entities with the given values, or of a range over the rest of the row key. Large fields are omitted unless
 * selected.
 */
async function readIndexPage(
  view: View,
  entity: Entity,
  index: Index,
  { given, ...options }: IndexPageOptions & { readonly given: Values },
): Promise<Page> {
  const asked = { ...options, select: options.select ?? listedFields(entity) };
  return openPage(view, entity, await readPage(view.engine, entity, index, given, asked), asked.select);
}

function readPage(engine: Engine, entity: Entity, index: Index, given: Values, options: IndexPageOptions) {
  if (index.kind !== 'index-entity') return readByCopies(engine, entity, index, given, options);
  const isOneList = index.row.fields.every((field) => field in given);
  return (isOneList ? readByList : readByLists)(engine, entity, index, given, options);
}

export interface WholeInput extends ListInput {
  /** The next page of a list that is not whole. */
  readonly after?: PageOptions['after'];
  /** True for a list that the caller has already. */
  readonly isKnown?: ((found: { readonly etag: string } & Pick<WholeList, 'fields'>) => boolean) | undefined;
}

interface WholeList extends Page {
  /** Undefined if the list exceeds what a process keeps, so that this is one of its pages. */
  readonly etag: string | undefined;
  /** The fields that the list was limited to, if it was. */
  readonly fields: readonly string[] | undefined;
}

/** How an entity is listed as a whole; undefined if it is not. */
export function wholeListOf(entity: Entity) {
  return wholeLists.find(({ isUsed }) => isUsed(entity));
}

/** All entities, from memory; a page of them if they exceed what a process keeps. Only for an entity that is listed as a whole. */
export const listWhole = onceFor((entity: Entity): Operation<WholeInput, WholeList> => {
  const list = wholeListOf(entity);
  const index = list && entity.indexes[list.indexName(entity)];
  if (!index) throw new Error(`${entity.name} is not listed as a whole.`);
  const available = list.fields(entity);
  return {
    name: `${entity.name}-list`,
    summary: `List all of ${entity.name}`,
    kind: 'read',
    entity,
    roles: rolesToListThrough(entity, index),
    ...admitFilterOf(entity),
    async run(view, { after, isKnown, ...input }) {
      const { select, where } = compileList(entity, input, available);
      if (after) {
        const within = await withinReach(view, entity, { given: {}, index, where });
        if (!within) return { ...EMPTY, etag: undefined, fields: select };
        const page = { given: {}, select: select ?? available, where: within, top: list.pageEntities, after };
        return { ...(await readIndexPage(view, entity, index, page)), etag: undefined, fields: select };
      }
      const limit = await listLimitOf(view, entity, index);
      const all = await list.read(view.engine, entity);
      if (limit) {
        const items = all.items.filter((values) => isWithin(limit, values));
        const hidden = view.caller ? hiddenFields(entity, view.caller) : [];
        const etag = all.isWhole ? toListEtag(items, hidden) : undefined;
        if (etag !== undefined && isKnown?.({ etag, fields: select })) return { ...EMPTY, etag, fields: select };
        const asked = items.filter((values) => matches(where ?? [], values));
        return { ...(await openPage(view, entity, { items: asked, next: all.next }, select)), etag, fields: select };
      }
      const etag = all.isWhole ? all.etagWithout(view.caller ? hiddenFields(entity, view.caller) : []) : undefined;
      if (etag !== undefined && isKnown?.({ etag, fields: select }))
        return { items: [], next: undefined, etag, fields: select };
      // The list is shared by all readers.
      const items = all.items.filter((values) => matches(where ?? [], values));
      return { ...(await openPage(view, entity, { items, next: all.next }, select)), etag, fields: select };
    },
  };
});

/** Returns all entities. Throws `too-large` for a list that is not whole, for a caller who cannot ask for pages. */
export function requireWhole(entity: Entity, { items, etag }: WholeList): readonly Values[] {
  if (etag !== undefined) return items;
  throw new RowkeyError('too-large', `The list of ${entity.name} exceeds what a process keeps in memory.`, {
    field: 'list',
    accepted: `the pages of the index "${wholeListOf(entity)?.indexName(entity)}"`,
  });
}

interface GroupInput {
  /** The fields of a group, or the first ones of a range. */
  readonly group: Values;
}

/** Where a read of totals looks: at a row, in a partition, or in several, which buckets are. */
function placeOfGroup({ table, partition, totalRow }: Total, group: Values) {
  const hasAll = (fields: readonly string[]) => fields.every((field) => group[field] !== undefined);
  const address = {
    table,
    partition: hasAll(partition.fields) ? buildKey(partition, group) : '',
    ...(hasAll(totalRow.fields) ? { row: buildKey(totalRow, group) } : {}),
  };
  return { address, fields: Object.keys(group) };
}

/** The totals of one group. A total reveals the fields that it is made of, so a caller must be able to read all of them. */
export function getTotal(entity: Entity, name: string): Operation<GroupInput, Values> {
  const declared = named(entity.totals, name);
  const fields = declared.groupFields;
  return {
    name: `${entity.name}-by-totals-${name}`,
    summary: `Get the totals of ${entity.name}${fields.length > 0 ? ` with this ${fields.join(', ')}` : ''}`,
    kind: 'read',
    entity,
    roles: rolesToReadBy(entity, declared.uses),
    output: () => totalSchema(entity, declared),
    place: ({ group }) => placeOfGroup(declared, group),
    admit: (_, { group }, view) => requireGroup(view, entity, declared, group),
    run: ({ engine }, { group }) => readTotal(engine, entity, declared, group),
  };
}

/** A page of the totals of a range of groups. */
export function listTotals(entity: Entity, name: string): Operation<GroupInput & PageOptions & IndexBounds, Page> {
  const declared = named(entity.totals, name);
  return {
    name: `${entity.name}-by-totals-${name}-range`,
    summary: `List the totals of ${entity.name}`,
    kind: 'read',
    entity,
    roles: rolesToReadBy(entity, declared.uses),
    output: () => z.object({ items: z.array(totalSchema(entity, declared)) }),
    place: ({ group }) => placeOfGroup(declared, group),
    admit: (_, { group }, view) => requireGroup(view, entity, declared, group),
    run: ({ engine }, { group, ...page }) => readTotals(engine, entity, declared, group, page),
  };
}

/** A total discloses every entity of its group, so the terms of a rule must hold for all of them. Throws `forbidden`. */
async function requireGroup(view: View, entity: Entity, { groupFields, periods }: Total, group: Values): Promise<void> {
  const isInFull = (field: string) => !Object.hasOwn(periods, field) && entity.columns[field] !== 'Json';
  const given = pick(group, groupFields.filter(isInFull));
  if (narrow(await limitOf(view, entity, 'read'), given)) throw beyondReach(entity, 'these totals');
}

/** The error of a read that would disclose rows which the caller does not reach. */
function beyondReach(entity: Entity, what: string): RowkeyError {
  return new RowkeyError(
    'forbidden',
    `The rules of ${entity.name} let the caller read some rows only, and ${what} would tell of others.`,
    { accepted: nameAllReaders(entity) },
  );
}

function totalSchema(entity: Entity, declared: Total): z.ZodType {
  const lists = Object.keys(entity.columns).filter((field) => entity.columns[field] === 'Json');
  const fields = declared.groupFields;
  const inFull = fields.filter((field) => !Object.hasOwn(declared.periods, field) && !lists.includes(field));
  const asText = fields.filter((field) => !inFull.includes(field)).map((field) => [field, z.string()]);
  const group = entity.schema.pick(maskOf(inFull)).required().extend(Object.fromEntries(asText));
  const isText = (field: string) => entity.columns[field] === 'String';
  const extremes = (of: readonly string[]) =>
    z.object(Object.fromEntries(of.map((field) => [field, (isText(field) ? z.string() : z.number()).optional()])));
  const sum = z.object(Object.fromEntries(declared.sum.map((field) => [field, z.number()])));
  return z.object({ group, count: z.int(), sum, min: extremes(declared.min), max: extremes(declared.max) });
}

/** Validates the values of fields like those of an HTTP path. Throws `invalid-input`, which names the field. */
export function checkFields(entity: Entity, values: Values, fields: readonly string[]): Values {
  // A read through an index of list elements names one element.
  const isElement = (field: string) => entity.columns[field] === 'Json' && !Array.isArray(values[field]);
  const given = Object.fromEntries(
    Object.entries(values).map(([field, value]) => [field, isElement(field) ? [value] : value]),
  );
  const schema = compileOnce(entity, 'fields', fields, () => entity.schema.pick(maskOf(fields)).required().strict());
  const checked = parse(schema, given);
  return Object.fromEntries(
    Object.entries(checked).map(([field, value]) => [field, Array.isArray(value) ? value[0] : value]),
  );
}
