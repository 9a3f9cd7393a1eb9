import { z } from 'zod';
import { keptFields } from '../../define/codec/kept-fields.ts';
import type { Period, Slots } from '../../define/declaration.ts';
import type { Model } from '../../define/define-model.ts';
import { type Entity, isWrittenByClients, withArchives } from '../../define/entity.ts';
import type { Index } from '../../define/indexes.ts';
import { CALENDAR_UNITS } from '../../define/keys/calendar.ts';
import { isUnique } from '../../define/keys/index-entries.ts';
import { indexFields, isOfMany, rangeStarts } from '../../define/keys/index-range.ts';
import type { KeyTemplate } from '../../define/keys/key-template.ts';
import { groupFields, periodFields, type Total, toIndex } from '../../define/totals.ts';
import { isOptional } from '../../define/validate/field-schema.ts';
import { lookupMaxAge } from '../../pattern-helpers/read-lookup.ts';
import { serveBuiltOnce } from '../built-once.ts';
import { toJsonSchema } from '../json-schema.ts';
import type { Route } from '../route.ts';

const Template = z.object({
  template: z.string(),
  fields: z.array(z.string()).describe('The fields that decide the key, in the order of a path'),
});

const Field = z.object({
  type: z.enum(['String', 'Boolean', 'Int32', 'Int64', 'Double', 'Json']).describe('How storage stores the field'),
  optional: z.boolean().describe('An entity may be without it'),
  generated: z.boolean().describe('It has a default, so a create may leave it out'),
  encrypted: z.boolean(),
  large: z.boolean().describe('A large text, or a field of a split: stored apart'),
  derived: z.boolean().describe('Computed from other fields; cannot be written'),
  kept: z.boolean().describe('Set by the app; cannot be written'),
  restricted: z.array(z.string()).optional().describe('Only these roles read it'),
  schema: z.record(z.string(), z.unknown()).describe('The JSON Schema of its values'),
});

const Ranges = z
  .array(
    z.object({
      fields: z.array(z.string()).describe('The fields in the path'),
      bounded: z.string().describe('The field of from, to and prefix'),
      order: z.enum(['ascending', 'descending']),
    }),
  )
  .describe('What a range may begin with');

const IndexDescription = z.object({
  kind: z.enum(['intra-partition', 'inter-partition', 'index-entity']),
  of: z.enum(['one', 'many']).describe('What a read by one value returns: an entity or a list'),
  fields: z.array(z.string()).describe('The fields of a read by one value, in the order of the path'),
  ranges: Ranges,
  unique: z.boolean(),
  sparse: z.boolean().describe('Only some entities are in the index'),
  copies: z.union([z.enum(['everything', 'keys']), z.array(z.string())]),
  partition: Template.optional().describe("Absent if the index is in the entity's partition"),
  settle: z.enum(['inline', 'queue']).optional().describe('Who writes its entries in another partition'),
  row: Template,
});

const TotalDescription = z.object({
  fields: z.array(z.string()).describe('The fields of a group, in the order of the path'),
  periods: z.record(z.string(), z.enum(CALENDAR_UNITS)).describe('The fields of which a group has only a period'),
  ranges: Ranges,
  sum: z.array(z.string()),
  min: z.array(z.string()),
  max: z.array(z.string()),
  sparse: z.boolean().describe('Only some entities count'),
});

const EntityDescription = z.object({
  key: z.object({
    fields: z.array(z.string()).describe('In the order of the path'),
    partition: Template,
    row: Template,
  }),
  fields: z.record(z.string(), Field),
  kinds: z.array(z.string()).optional().describe('The values of the field kind, for an entity of several kinds'),
  indexes: z.record(z.string(), IndexDescription),
  totals: z.record(z.string(), TotalDescription),
  split: z.record(z.string(), z.array(z.string())).describe('The fields of each group, which a read returns on demand'),
  parent: z.string().optional(),
  children: z.array(z.string()),
  references: z
    .record(z.string(), z.object({ to: z.string(), by: z.string() }))
    .describe('The entity that a field refers to, and the field of that entity with the same value, by the field'),
  series: z
    .object({
      name: z.string(),
      first: z.int(),
      last: z.int(),
      span: z
        .object({ field: z.string(), per: z.string() })
        .optional()
        .describe('The key field with the period that the slots divide'),
    })
    .optional()
    .describe('The slots of a data series'),
  attachments: z.record(
    z.string(),
    z.object({
      maxBytes: z.int(),
      types: z.array(z.string()),
      public: z.boolean().describe('Readable without a token'),
      maxAge: z.int().optional(),
    }),
  ),
  archive: z.string().optional().describe('The name of the archive'),
  archiveOf: z.string().optional().describe('Set for an archive, which can only be read and deleted'),
  movable: z.array(z.string()).describe('The fields that a move may change'),
  period: z
    .object({
      per: z.string(),
      field: z.string(),
      keep: z.int(),
      archiveTo: z.literal('blob').optional().describe('Where tables past retention go before they are deleted'),
    })
    .optional(),
  expiry: z.object({ days: z.int(), clock: z.string() }).optional(),
  counts: z.record(z.string(), z.string()).describe('The counted entity, by the field with the count'),
  lookup: z
    .object({ index: z.string(), maxAge: z.int().describe('Seconds after which a process reads the list again') })
    .optional()
    .describe('Set for a lookup table, which is listed as a whole'),
  wide: z.boolean().describe('Its fields take several rows, so filters compare key fields only'),
  version: z.int(),
  maxAge: z.int().optional(),
  access: z.object({
    read: z.array(z.string()),
    write: z.array(z.string()),
    own: z
      .union([
        z.object({ claim: z.string(), index: z.string() }),
        z.object({ through: z.string(), permissions: z.string() }),
      ])
      .optional(),
    writtenByClients: z.boolean().describe('Clients with a grant write rows that nothing validates'),
  }),
});

export const ModelDescription = z.object({
  roles: z.array(z.string()),
  operatorRole: z.string(),
  entities: z.record(z.string(), EntityDescription),
});
export type ModelDescription = z.infer<typeof ModelDescription>;

/** The model as data, for clients and consoles. It has the declaration and nothing of the deployment, so it is public. */
export function modelRoute(model: Omit<Model, 'entities'>): Route {
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

export function describeModel({ list, roles, operatorRole }: Omit<Model, 'entities'>): ModelDescription {
  const archived = new Map(list.flatMap((entity) => (entity.archive ? [[entity.archive, entity.name]] : [])));
  const entities = withArchives(list).map((entity) => {
    const archiveOf = archived.get(entity);
    return [entity.name, { ...describeEntity(entity), ...(archiveOf === undefined ? {} : { archiveOf }) }] as const;
  });
  return { roles: [...roles], operatorRole, entities: Object.fromEntries(entities) };
}

function describeEntity(entity: Entity): ModelDescription['entities'][string] {
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
function describeAccess(entity: Entity): ModelDescription['entities'][string]['access'] {
  const { read, write, own } = entity.access;
  const owner = own && ('through' in own ? { through: own.through.name, permissions: own.permissions } : own);
  return {
    read: [...read],
    write: [...write],
    ...(owner ? { own: 'claim' in owner ? { claim: owner.claim, index: owner.index } : owner } : {}),
    writtenByClients: isWrittenByClients(entity),
  };
}

function describeFields(entity: Entity): ModelDescription['entities'][string]['fields'] {
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

function describePeriod({ per, field, keep, archiveTo }: Period): ModelDescription['entities'][string]['period'] {
  return { per, field, keep, ...(archiveTo ? { archiveTo } : {}) };
}

function describeIndex(entity: Entity, index: Index): ModelDescription['entities'][string]['indexes'][string] {
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

function describeRanges(entity: Entity, index: Index): z.infer<typeof Ranges> {
  return rangeStarts(entity, index).map((fields) => {
    const next = index.row.parts.find(({ field }) => !fields.includes(field));
    return { fields, bounded: next?.field ?? '', order: next?.newestFirst ? 'descending' : 'ascending' };
  });
}

function describeTotal(entity: Entity, declared: Total): ModelDescription['entities'][string]['totals'][string] {
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
