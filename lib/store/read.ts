import pMap from 'p-map';
import type { Entity } from '../define/entity.ts';
import type { Index } from '../define/indexes.ts';
import { pick, type Values } from '../define/values.ts';
import type { Page } from '../engine/read/retrieve.ts';
import {
  type ChildrenOptions,
  type PageOptions,
  type RangeOptions,
  readEntities,
  readWithChildren,
  smallFields,
} from '../engine/read/retrieve.ts';
import type { Stored } from '../engine/write/entity-store.ts';
import { isOfMany, readByCopies, readByCopy, readByList } from '../pattern-helpers/read-through-index.ts';
import { openList, openValues, type View } from './view.ts';

/** Reads for a caller, over HTTP or in process: decrypted, and without the fields that the caller may not see. */

/** One entity with its children of some kinds, in one query. Throws `not-found`. */
export async function readOneWithChildren(
  view: View,
  entity: Entity,
  key: Values,
  { kinds, select = {} }: ChildrenOptions & { readonly kinds: readonly Entity[] },
): Promise<Stored> {
  const { etag, values } = await readWithChildren(view.engine, entity, key, kinds, { select });
  const children = await pMap(kinds, async (kind) => {
    const list = values[kind.name];
    const fields = select[kind.name];
    const items = await openList(view, kind, Array.isArray(list) ? list : []);
    return [kind.name, fields ? items.map((item) => pick(item, fields)) : items];
  });
  return { etag, values: { ...(await openValues(view, entity, values)), ...Object.fromEntries(children) } };
}

/** A page of the entities of a partition. Large fields are omitted unless selected. */
export async function readRangePage(view: View, entity: Entity, key: Values, options: RangeOptions): Promise<Page> {
  const select = options.select ?? smallFields(entity);
  return openPage(view, entity, await readEntities(view.engine, entity, key, { ...options, select }), select);
}

/** True if a read through the index returns a list. */
export function isListing(entity: Entity, index: Index): boolean {
  return index.kind === 'index-entity' || isOfMany(entity, index);
}

/** A page of the entities with the given values. Large fields are omitted unless selected. */
export async function readIndexPage(
  view: View,
  entity: Entity,
  index: Index,
  { given, ...options }: PageOptions & { readonly given: Values; readonly select?: readonly string[] | undefined },
): Promise<Page> {
  const select = options.select ?? smallFields(entity);
  const { engine } = view;
  const page =
    index.kind === 'index-entity'
      ? await readByList(engine, entity, index, given, { ...options, select })
      : await readByCopies(engine, entity, index, given, { ...options, select });
  return openPage(view, entity, page, select);
}

/** The only entity with the given values. Throws `not-found`. */
export async function readThroughIndex(view: View, entity: Entity, index: Index, given: Values): Promise<Values> {
  if (index.kind === 'index-entity') throw new Error(`An index entity of ${entity.name} lists entities.`);
  return openValues(view, entity, await readByCopy(view.engine, entity, index, given));
}

/** Opens a page that was read from storage, with only the selected fields. */
export async function openPage(
  view: View,
  entity: Entity,
  { items, next }: Page,
  select?: readonly string[],
): Promise<Page> {
  const list = await openList(view, entity, items);
  return { items: select ? list.map((values) => pick(values, select)) : list, next };
}
