import type { Entity } from '../define/entity.ts';
import { compileChildFilters, compileFilter } from '../define/filter.ts';
import type { Index } from '../define/indexes.ts';
import { copiedFields, type IndexBounds, indexFields } from '../define/keys/index-range.ts';
import { toSelection } from '../define/select.ts';
import { compileOnce, maskOf, parse } from '../define/validate/validation.ts';
import { pick, type Stored, type Values } from '../define/values.ts';
import type { Page, PageOptions } from '../engine/read/retrieve.ts';
import { RowkeyError } from '../errors.ts';
import { lookupFields, readLookup } from '../pattern-helpers/read-lookup.ts';
import { openLookup, readIndexPage, readOne, readRangePage, readThroughIndex } from './read.ts';
import type { View } from './view.ts';

/** Reads with the arguments of the store, which may also arrive as JSON. All throw `invalid-input`, which names the field. */

export interface ListOptions {
  readonly select?: readonly string[] | undefined;
  readonly where?: Values | undefined;
}

export interface GetOptions {
  readonly select?: readonly string[] | undefined;
  readonly include?: readonly string[] | undefined;
  readonly where?: Readonly<Record<string, Values>> | undefined;
}

export interface RangeOptions extends ListOptions {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Throws `not-found`. */
export function getEntity(view: View, entity: Entity, key: Values, options: GetOptions): Promise<Stored> {
  const { include = [], where = {}, select } = options;
  const groups = include.filter((name) => Object.hasOwn(entity.split, name));
  const kinds = include.filter((name) => !groups.includes(name)).map((name) => childOf(entity, name));
  return readOne(view, entity, checkFields(entity, key, entity.keyFields), {
    kinds,
    where: compileChildFilters(entity, kinds, where),
    select: toSelection(entity, select, { kinds, groups }),
  });
}

export function listRange(
  view: View,
  entity: Entity,
  partition: Values,
  { where, select, ...options }: RangeOptions & PageOptions,
): Promise<Page> {
  return readRangePage(view, entity, checkFields(entity, partition, entity.partition.fields), {
    ...options,
    select: toSelection(entity, select)[entity.name],
    where: compileFilter(entity, where),
  });
}

/** `given` has a value for each of `fields`. */
export function listIndex(
  view: View,
  entity: Entity,
  index: Index,
  {
    given,
    fields,
    where,
    select,
    ...options
  }: ListOptions & PageOptions & IndexBounds & { readonly given: Values; readonly fields: readonly string[] },
): Promise<Page> {
  const available = copiedFields(entity, index);
  return readIndexPage(view, entity, index, {
    ...options,
    select: toSelection(entity, select, { available })[entity.name],
    where: compileFilter(entity, where, available),
    given: checkFields(entity, given, fields),
  });
}

/** The entities of a lookup table. Throws `too-large` if its list exceeds what a process keeps. */
export async function listLookup(view: View, entity: Entity, { where, select }: ListOptions): Promise<Page> {
  const available = lookupFields(entity);
  const options = {
    select: toSelection(entity, select, { available })[entity.name],
    where: compileFilter(entity, where, available),
  };
  const list = await readLookup(view.engine, entity);
  if (list.isWhole) return openLookup(view, entity, list, options);
  throw new RowkeyError('too-large', `The list of ${entity.name} exceeds what a process keeps in memory.`, {
    field: 'list',
    accepted: `the pages of the index "${entity.lookup?.index}"`,
  });
}

/** The only entity with the given values. Throws `not-found`. */
export async function getThroughIndex(
  view: View,
  entity: Entity,
  index: Index,
  given: Values,
  { select: names }: Pick<ListOptions, 'select'>,
): Promise<Values> {
  const select = toSelection(entity, names)[entity.name];
  const checked = checkFields(entity, given, indexFields(entity, index));
  const values = await readThroughIndex(view, entity, index, { given: checked, select });
  return select ? pick(values, select) : values;
}

export function childOf(entity: Entity, name: string): Entity {
  const child = entity.children.find((kind) => kind.name === name);
  if (child) return child;
  const groups = Object.keys(entity.split);
  const what = groups.length > 0 ? 'a child or group' : 'a child';
  throw new RowkeyError('invalid-input', `"${name.slice(0, 100)}" is not ${what} of ${entity.name}.`, {
    field: 'include',
    accepted: [...entity.children.map((kind) => kind.name), ...groups].join(', '),
  });
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
