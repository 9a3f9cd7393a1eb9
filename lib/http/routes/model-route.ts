import { keptFields } from '../../define/codec/kept-fields.ts';
import type { Period, Slots } from '../../define/declaration/declaration.ts';
import { type Entity, isWrittenByClients, withArchives } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
import {
  type EntityDescription,
  type IndexDescription,
  ModelDescription,
  type RangeDescription,
  type TotalDescription,
} from '../../define/declaration/model-description.ts';
import { groupFields, periodFields, type Total, toIndex } from '../../define/declaration/totals.ts';
import type { LinkedModel } from '../../define/define-model.ts';
import type { KeyTemplate } from '../../define/keys/key-template.ts';
import { isUnique } from '../../define/places/index-entries.ts';
import { indexFields, isOfMany, rangeStarts } from '../../define/places/index-range.ts';
import { isOptional } from '../../define/schema/field-schema.ts';
import { lookupMaxAge } from '../../pattern-helpers/read-lookup.ts';
import { serveBuiltOnce } from '../built-once.ts';
import { toJsonSchema } from '../json-schema.ts';
import type { Route } from '../route.ts';

/** The model as data, for clients and consoles. It has the declaration and nothing of the deployment, so it is public. */
export function modelRoute(model: LinkedModel): Route {
  return {
    name: 'model',
    method: 'GET',
    path: 'model',
    roles: undefined,
    summary: 'Get the model: entities with their keys, fields, indexes, files and roles',
    cacheable: true,
    success: { status: 200, description: 'The model', body: () => ModelDescription, headers: ['ETag'] },
    handle: serveBuiltOnce({ build: () => describeModel(model) }),
  };
}

export function describeModel({ list, roles, operatorRole }: LinkedModel): ModelDescription {
  const archived = new Map(list.flatMap((entity) => (entity.archive ? [[entity.archive, entity.name]] : [])));
  const entities = withArchives(list).map((entity) => {
    const archiveOf = archived.get(entity);
    return [entity.name, { ...describeEntity(entity), ...(archiveOf === undefined ? {} : { archiveOf }) }] as const;
  });
  return { roles: [...roles], operatorRole, entities: Object.fromEntries(entities) };
}

function describeEntity(entity: Entity): EntityDescription {
  const { childOf, series, archive, period, expiry, maxAge, union } = entity;
  const kinds = union && toJsonSchema(entity.schema).properties?.kind;
  return {
    key: { fields: [...entity.keyFields], partition: describe(entity.partition), row: describe(entity.row) },
    fields: describeFields(entity),
    ...(typeof kinds === 'object' && kinds.enum ? { kinds: kinds.enum.map(String) } : {}),
    indexes: Object.fromEntries(
      Object.entries(entity.indexes).map(([name, index]) => [name, describeIndex(entity, index)]),
    ),
    totals: Object.fromEntries(
      Object.entries(entity.totals).map(([name, declared]) => [name, describeTotal(entity, declared)]),
    ),
    split: Object.fromEntries(Object.entries(entity.split).map(([group, fields]) => [group, [...fields]])),
    ...(childOf ? { parent: childOf.name } : {}),
    children: entity.children.map(({ name }) => name),
    references: Object.fromEntries(
      Object.entries(entity.references).map(([field, { to, by }]) => [field, { to: to.name, by }]),
    ),
    ...(series ? { series: describeSeries(series) } : {}),
    attachments: Object.fromEntries(
      Object.entries(entity.attachments).map(([field, { maxBytes, types, public: isPublic = false, maxAge: age }]) => [
        field,
        { maxBytes, types: [...types], public: isPublic, ...(age === undefined ? {} : { maxAge: age }) },
      ]),
    ),
    ...(archive ? { archive: archive.name } : {}),
    movable: [...entity.movable],
    ...(period ? { period: describePeriod(period) } : {}),
    ...(expiry ? { expiry: { days: expiry.days, clock: expiry.clock } } : {}),
    counts: Object.fromEntries(Object.entries(entity.counts).map(([field, { name }]) => [field, name])),
    ...(entity.lookup ? { lookup: { index: entity.lookup.index, maxAge: lookupMaxAge(entity) } } : {}),
    wide: entity.wide,
    version: entity.version,
    ...(maxAge === undefined ? {} : { maxAge }),
    access: describeAccess(entity),
  };
}

/** Without `verifiedBy`, which concerns the issuer of tokens and no client. */
function describeAccess(entity: Entity): EntityDescription['access'] {
  const { read, write, own } = entity.access;
  const owner = own && ('through' in own ? { through: own.through.name, permissions: own.permissions } : own);
  return {
    read: [...read],
    write: [...write],
    ...(owner ? { own: 'claim' in owner ? { claim: owner.claim, index: owner.index } : owner } : {}),
    writtenByClients: isWrittenByClients(entity),
  };
}

function describeFields(entity: Entity): EntityDescription['fields'] {
  const { properties = {}, required = [] } = toJsonSchema(entity.schema, 'input');
  const kept = keptFields(entity);
  // A field of a split has another row, so it is read on demand like a large text.
  const apart = [...entity.large, ...Object.values(entity.split).flat()];
  return Object.fromEntries(
    Object.entries(entity.columns).map(([field, type]) => {
      const restricted = entity.access.restricted?.[field];
      const optional = isOptional(entity.schema, field);
      return [
        field,
        {
          ...{ type, optional, generated: !optional && !required.includes(field) },
          ...{ encrypted: entity.encrypted.includes(field), large: apart.includes(field) },
          ...{ derived: Object.hasOwn(entity.derived, field), kept: kept.includes(field) },
          ...(restricted ? { restricted: [...restricted] } : {}),
          schema: Object(properties[field]),
        },
      ];
    }),
  );
}

function describePeriod({ per, field, keep, archiveTo }: Period): EntityDescription['period'] {
  return { per, field, keep, ...(archiveTo ? { archiveTo } : {}) };
}

function describeIndex(entity: Entity, index: Index): IndexDescription {
  const copies = index.kind === 'index-entity' ? 'keys' : index.copies;
  return {
    kind: index.kind,
    of: isOfMany(entity, index) ? 'many' : 'one',
    fields: indexFields(entity, index),
    ranges: describeRanges(entity, index),
    unique: isUnique(index),
    sparse: index.when !== undefined,
    copies: typeof copies === 'string' ? copies : [...copies],
    ...(index.remote ? { partition: describe(index.remote.partition), settle: index.settle } : {}),
    row: describe(index.row),
  };
}

function describeRanges(entity: Entity, index: Index): RangeDescription[] {
  return rangeStarts(entity, index).map((fields) => {
    const next = index.row.parts.find(({ field }) => !fields.includes(field));
    return { fields, bounded: next?.field ?? '', order: next?.newestFirst ? 'descending' : 'ascending' };
  });
}

function describeTotal(entity: Entity, declared: Total): TotalDescription {
  const { sum, min, max, when } = declared;
  return {
    fields: groupFields(declared),
    periods: Object.fromEntries(periodFields(declared)),
    ranges: describeRanges(entity, toIndex(declared)),
    sum: [...sum],
    min: [...min],
    max: [...max],
    sparse: when !== undefined,
  };
}

function describe({ template, fields }: KeyTemplate) {
  return { template, fields: [...fields] };
}

function describeSeries({ name, first, last, span }: Slots) {
  return { name, first, last, ...(span ? { span } : {}) };
}
