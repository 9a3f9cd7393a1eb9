import pMap from 'p-map';
import { hideAbsent, limitOf, toFilter } from '../access/limit.ts';
import { requireFields, requireReader } from '../access/rule.ts';
import { RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import { pick, type Values } from '../base/values.ts';
import { isWithin, narrow } from '../define/codec/limit.ts';
import {
  type AskedFilter,
  askedFields,
  comparedFields,
  compileChildFilters,
  type Selection,
  toSelection,
} from '../define/codec/query.ts';
import { readableSchema } from '../define/codec/validation.ts';
import type { Limit } from '../define/declaration/comparison.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { indexFields } from '../define/places/index-range.ts';
import { rolesTo, rolesToReadThrough } from '../define/places/reach.ts';
import { notFound } from '../engine/read/entity-rows.ts';
import { readByCopy } from '../engine/read/read-through-index.ts';
import { readEntity, readWithChildren } from '../engine/read/retrieve.ts';
import { hiddenIn, openPage, openValues, ruledValues } from './open.ts';
import type { Operation, View } from './operation.ts';
import { named, placeIn, selectionOf, withinNow } from './reads.ts';

/** The reads of one entity, by its key or through an index. Keys and values of indexes have been checked: only a binding knows their form. */

export interface GetInput {
  readonly key: Values;
  /** Names of children and of groups of fields. */
  readonly include?: readonly string[] | undefined;
  /** `email` is a field of the entity, `reviews.year` one of an included child. */
  readonly select?: readonly string[] | undefined;
  /** The filter of each included child, by its name. */
  readonly where?: Readonly<Record<string, AskedFilter>> | undefined;
  /** Reads the entity as it was at this ISO instant. */
  readonly at?: string | undefined;
  /** True for a state that the caller has already, of which nothing is opened. Not called for a read with children. */
  readonly isKnown?: ((found: Pick<Found, 'etag' | 'fields' | 'hidden'>) => boolean) | undefined;
}

interface Found {
  readonly etag: string;
  /** The fields of this row that the caller may not read. */
  readonly hidden: readonly string[];
  /** The fields of the entity that the read was limited to, if it was. */
  readonly fields: readonly string[] | undefined;
  /** Undefined for a known state. */
  readonly values: Values | undefined;
}

/** One point query; with children one range query (compound key pattern). Throws `not-found`. */
export const getEntity = onceFor(
  (entity: Entity): Operation<GetInput, Found> => ({
    name: `${entity.name}-get`,
    summary: `Get an entity of ${entity.name}`,
    kind: 'read',
    entity,
    roles: rolesTo(entity, 'read'),
    output: () => readableSchema(entity),
    at: ({ at }) => at,
    admit(caller, { include, where = {} }) {
      if (!include) return;
      for (const kind of includedOf(entity, include).kinds) {
        requireReader(kind, caller);
        requireFields(kind, caller, askedFields(where[kind.name]));
      }
    },
    async run(view, { key, include, select, where, isKnown }) {
      const { kinds, groups } = include ? includedOf(entity, include) : NOTHING_INCLUDED;
      const selection = select || groups.length > 0 ? toSelection(entity, select, { kinds, groups }) : {};
      // Throws for a filter of a child that is not included.
      const filters = where ? compileChildFilters(entity, kinds, where) : {};
      const fields = selection[entity.name];
      const { rules, unveiled } = entity.access;
      const limit = rules && narrow(await limitOf(view, entity, 'read'), key);
      if (limit?.length === 0) throw notFound(entity, key);
      const read = fields && (limit || unveiled) ? withLimited(entity, fields, limit) : fields;
      const work = async () => {
        if (kinds.length === 0) {
          const { etag, values } = await readEntity(view.engine, entity, key, { select: read });
          await requireWithin(view, entity, { limit, key, values });
          const hidden = await hiddenIn(view, entity, { ...values, ...key });
          if (isKnown?.({ etag, fields, hidden })) return { etag, fields, hidden, values: undefined };
          const opened = await openValues(view, entity, values, { select: fields, hidden });
          return { etag, fields, hidden, values: opened };
        }
        const reaches = await pMap(
          kinds,
          async (kind) => [kind, narrow(await limitOf(view, kind, 'read'), key)] as const,
        );
        const reached = reaches.filter(([, reach]) => reach?.length !== 0);
        const kindsToRead = reached.map(([kind]) => kind);
        const { present } = view.engine;
        const filtersToRead = reached.map(([{ name }, reach]) => [
          name,
          [...(filters[name] ?? []), ...(present ? [] : toFilter(reach))],
        ]);
        const { etag, values } = await readWithChildren(view.engine, entity, key, kindsToRead, {
          select: {
            ...(present ? withKeys(kindsToRead, selection) : selection),
            ...(read ? { [entity.name]: read } : {}),
          },
          where: Object.fromEntries(filtersToRead),
          check: (found) => requireWithin(view, entity, { limit, key, values: found }),
        });
        const children = await pMap(reaches, async ([kind, reach]) => {
          const list = values[kind.name];
          const items = await withinNow(view, kind, reach, Array.isArray(list) ? list : []);
          const page = { items, next: undefined };
          return [kind.name, (await openPage(view, kind, page, selection[kind.name])).items];
        });
        const hidden = await hiddenIn(view, entity, { ...values, ...key });
        const own = await openValues(view, entity, values, { select: fields, hidden });
        return { etag, fields, hidden, values: { ...own, ...Object.fromEntries(children) } };
      };
      return limit ? hideAbsent(limit, work) : work();
    },
  }),
);

async function requireWithin(
  view: View,
  entity: Entity,
  { limit, key, values }: { readonly limit: Limit | undefined; readonly key: Values; readonly values: Values },
): Promise<void> {
  if (limit && !isWithin(limit, await ruledValues(view, entity, { ...values, ...key }))) throw notFound(entity, key);
}

/** The selection with the keys of children, by which their present rows are found. */
function withKeys(kinds: readonly Entity[], selection: Selection): Selection {
  const selected = kinds.flatMap(({ name, keyFields }) => {
    const fields = selection[name];
    return fields ? [[name, [...new Set([...fields, ...keyFields])]] as const] : [];
  });
  return { ...selection, ...Object.fromEntries(selected) };
}

const NOTHING_INCLUDED = { kinds: [], groups: [] };

/** The fields to read for these, with those that decide whether the row, and its restricted fields, are within reach. */
function withLimited(
  { access: { unveiled = {} } }: Entity,
  fields: readonly string[],
  limit: Limit | undefined,
): readonly string[] {
  const shown = Object.entries(unveiled).flatMap(([field, rule]) => (fields.includes(field) ? rule : []));
  const deciding = shown.flatMap(({ where = {} }) => Object.keys(where));
  return [...new Set([...fields, ...deciding, ...comparedFields(toFilter(limit))])];
}

/** Sorts the included names. Throws `invalid-input`. */
function includedOf(entity: Entity, include: readonly string[]) {
  const names = [...new Set(include)];
  const groups = names.filter((name) => Object.hasOwn(entity.split, name));
  const kinds = names.filter((name) => !groups.includes(name)).map((name) => childOf(entity, name));
  return { kinds, groups };
}

function childOf(entity: Entity, name: string): Entity {
  const child = entity.children.find((kind) => kind.name === name);
  if (child) return child;
  const groups = Object.keys(entity.split);
  const what = [...(entity.children.length > 0 ? ['child'] : []), ...(groups.length > 0 ? ['group'] : [])].join(' or ');
  throw new RowkeyError(
    'invalid-input',
    `"include" names "${name.slice(0, 100)}", which is not a ${what} of ${entity.name}.`,
    {
      field: 'include',
      accepted: [...entity.children.map((kind) => kind.name), ...groups].join(', '),
    },
  );
}

interface OneInput {
  readonly given: Values;
  readonly select?: readonly string[] | undefined;
}

/** The only entity with the given values: its key and the selected fields. Throws `not-found`. */
export function getThroughIndex(entity: Entity, name: string): Operation<OneInput, { key: Values; values: Values }> {
  const index = named(entity.indexes, name);
  return {
    name: `${entity.name}-by-${name}`,
    summary: `Get the entity of ${entity.name} with this ${indexFields(entity, index).join(', ')}`,
    kind: 'read',
    entity,
    roles: rolesToReadThrough(entity, index),
    place: ({ given }) => placeIn(entity, index, given),
    output: () => readableSchema(entity),
    async run(view, { given, ...input }) {
      const select = selectionOf(entity, input);
      if (index.kind === 'index-entity') throw new Error(`An index entity of ${entity.name} lists entities.`);
      const fields = select && [...new Set([...entity.keyFields, ...select])];
      const limit = narrow(await limitOf(view, entity, 'read'), given);
      if (limit?.length === 0) throw notFound(entity, given);
      const found = await hideAbsent(limit, async () => {
        const values = await readByCopy(
          view.engine,
          entity,
          index,
          given,
          fields && withLimited(entity, fields, limit),
        );
        if (!isWithin(limit, values)) throw notFound(entity, given);
        return values;
      });
      const values = await openValues(view, entity, found, { select: fields });
      return { key: pick(values, entity.keyFields), values: select ? pick(values, select) : values };
    },
  };
}
