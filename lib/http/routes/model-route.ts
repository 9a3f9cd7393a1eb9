import { listMine } from '../../api/mine.ts';
import { wholeListOf } from '../../api/reads.ts';
import { mapValues } from '../../base/values.ts';
import { optionsWith } from '../../define/declaration/declaration.ts';
import { type Entity, withArchives } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
import {
  EntityDescription,
  type IndexDescription,
  ModelDescription,
} from '../../define/declaration/model-description.ts';
import { toIndex } from '../../define/declaration/totals.ts';
import type { LinkedModel } from '../../define/define-model.ts';
import { isUnique } from '../../define/places/index-entries.ts';
import { indexFields, isOfMany, rangeStarts } from '../../define/places/index-range.ts';
import { describeRules } from '../../define/places/rule-words.ts';
import { userRowsOf } from '../../define/places/user-rows.ts';
import { hasConstantDefault, isOptional } from '../../define/schema/field-schema.ts';
import { serveBuiltOnce } from '../built-once.ts';
import { toJsonSchema } from '../json-schema.ts';
import type { Route } from '../route.ts';

/** The model as data, for clients and consoles. It has the declaration and nothing of the deployment, so it is public. */
export function modelRoute(model: LinkedModel): Route {
  return {
    name: 'model',
    method: 'GET',
    path: 'model',
    kind: 'read',
    roles: undefined,
    summary: 'Get the model: entities with their keys, fields, indexes, files and roles',
    cacheable: true,
    success: { status: 200, description: 'The model', body: () => ModelDescription, headers: ['ETag'] },
    handle: serveBuiltOnce({ build: () => describeModel(model) }),
  };
}

export function describeModel(model: LinkedModel): ModelDescription {
  const { list, operations, roles, operatorRole, steward, blocksUsers, backup } = model;
  const archived = new Map(list.flatMap((entity) => (entity.archive ? [[entity.archive, entity.name]] : [])));
  const entities = withArchives(list).map((entity) => {
    const archiveOf = archived.get(entity);
    return [entity.name, { ...describeEntity(entity), ...(archiveOf === undefined ? {} : { archiveOf }) }] as const;
  });
  const described = mapValues(operations, ({ summary, kind, roles: accepted, repeatable = false }) => {
    return { summary, kind, roles: [...accepted], repeatable };
  });
  return {
    roles: [...roles],
    operatorRole,
    ...(steward === undefined ? {} : { steward }),
    ...(blocksUsers ? { blocksUsers } : {}),
    ...(userRowsOf(list).length > 0 ? { erasesUsers: true } : {}),
    ...(backup ? { backup: { days: backup.days, roles: [...(backup.roles ?? [operatorRole])] } } : {}),
    entities: Object.fromEntries(entities),
    ...(Object.keys(described).length > 0 ? { operations: described } : {}),
  };
}

/** Most options are described as they are: the schema leaves out what clients do not need. */
function describeEntity(entity: Entity): EntityDescription {
  const kinds = entity.union && toJsonSchema(entity.schema).properties?.kind;
  return EntityDescription.parse({
    ...entity,
    ...describeReads(entity),
    ...describeLabel(entity),
    key: { fields: entity.keyFields, partition: entity.partition, row: entity.row },
    fields: describeFields(entity),
    kinds: typeof kinds === 'object' ? kinds.enum?.map(String) : undefined,
    parent: entity.childOf?.name,
    children: entity.children.map(({ name }) => name),
    access: {
      ...entity.access,
      writtenByClients: entity.isWrittenByClients,
      rules: describeRules(entity),
      mine: wholeListOf(entity) ? undefined : listMine(entity)?.roles,
    },
  });
}

const LABELS = ['name', 'title', 'email'];

/** The declared label, of an archive unless the field stays behind, or a field of a usual name that every reader sees. */
function describeLabel({ label, columns, encrypted, large, split, access }: Entity): object {
  if (label !== undefined && Object.hasOwn(columns, label)) return { label };
  const others: readonly string[] = [...encrypted, ...large, ...Object.values(split).flat()];
  const isSeen = (name: string) => !others.includes(name) && !Object.hasOwn(access.restricted ?? {}, name);
  return { label: LABELS.find((name) => columns[name] === 'String' && isSeen(name)) };
}

function describeReads(entity: Entity): object {
  return {
    indexes: mapValues(entity.indexes, (index) => describeIndex(entity, index)),
    totals: mapValues(entity.totals, (declared) => ({
      ...declared,
      fields: declared.groupFields,
      periods: declared.periods,
      ranges: describeRanges(entity, toIndex(declared)),
      sparse: declared.when !== undefined,
    })),
  };
}

/** The fields of an option: a list, lists by the name of a group, or something for each field. */
function namedFields(option: readonly string[] | Readonly<Record<string, unknown>>): readonly string[] {
  if (Array.isArray(option)) return option;
  const lists = Object.values(option).filter(Array.isArray);
  return lists.length > 0 ? lists.flat() : Object.keys(option);
}

function describeFields(entity: Entity): object {
  const { properties = {}, required = [] } = toJsonSchema(entity.schema, 'input');
  const kept = entity.keptFields;
  const { set = {} } = entity.access;
  const filled = { ...set, ...entity.defaults };
  const marked: Record<string, string[]> = {};
  for (const [option, marks] of Object.entries<object>(optionsWith('marks')))
    for (const mark of Object.keys(marks))
      marked[mark] = [...(marked[mark] ?? []), ...namedFields(Object(entity)[option])];
  return mapValues(entity.columns, (type, field) => {
    const optional = isOptional(entity.schema, field);
    const restricted = entity.access.restricted?.[field];
    return {
      type,
      optional,
      generated: (!optional && !required.includes(field)) || Object.hasOwn(filled, field),
      default: hasConstantDefault(entity.schema, field)
        ? entity.schema.shape[field]?.safeParse(undefined).data
        : undefined,
      fromCaller: Object.hasOwn(set, field) || undefined,
      ...mapValues(marked, (fields) => fields.includes(field)),
      kept: kept.includes(field),
      ...(restricted ? { restricted: [...restricted] } : {}),
      schema: Object(properties[field]),
    };
  });
}

function describeIndex(entity: Entity, index: Index): object {
  return {
    copies: 'keys',
    ...index,
    of: isOfMany(entity, index) ? 'many' : 'one',
    fields: indexFields(entity, index),
    ranges: describeRanges(entity, index),
    unique: isUnique(index),
    sparse: index.when !== undefined,
    partition: index.remote?.partition,
    settle: index.remote && index.settle,
  };
}

function describeRanges(entity: Entity, index: Index): IndexDescription['ranges'] {
  return rangeStarts(entity, index).map((fields) => {
    const next = index.row.parts.find(({ field }) => !fields.includes(field));
    return { fields, bounded: next?.field ?? '', order: next?.newestFirst ? 'descending' : 'ascending' };
  });
}
