import { z } from 'zod';
import { CALENDAR_UNITS } from '../keys/calendar.ts';

/** What `GET /api/model` returns. The client and the console use its types, and have no description of their own. */

const TemplateDescription = z.object({
  template: z.string(),
  fields: z.array(z.string()).describe('The fields that decide the key, in the order of a path'),
});
export type TemplateDescription = z.infer<typeof TemplateDescription>;

const FieldDescription = z.object({
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
export type FieldDescription = z.infer<typeof FieldDescription>;

const RangeDescription = z.object({
  fields: z.array(z.string()).describe('The fields in the path'),
  bounded: z.string().describe('The field of from, to and prefix'),
  order: z.enum(['ascending', 'descending']),
});
export type RangeDescription = z.infer<typeof RangeDescription>;
const Ranges = z.array(RangeDescription).describe('What a range may begin with');

const IndexDescription = z.object({
  kind: z.enum(['intra-partition', 'inter-partition', 'index-entity']),
  of: z.enum(['one', 'many']).describe('What a read by one value returns: an entity or a list'),
  fields: z.array(z.string()).describe('The fields of a read by one value, in the order of the path'),
  ranges: Ranges,
  unique: z.boolean(),
  sparse: z.boolean().describe('Only some entities are in the index'),
  copies: z.union([z.enum(['everything', 'keys']), z.array(z.string())]),
  partition: TemplateDescription.optional().describe("Absent if the index is in the entity's partition"),
  settle: z.enum(['inline', 'queue']).optional().describe('Who writes its entries in another partition'),
  row: TemplateDescription,
});
export type IndexDescription = z.infer<typeof IndexDescription>;

const TotalDescription = z.object({
  fields: z.array(z.string()).describe('The fields of a group, in the order of the path'),
  periods: z.record(z.string(), z.enum(CALENDAR_UNITS)).describe('The fields of which a group has only a period'),
  ranges: Ranges,
  sum: z.array(z.string()),
  min: z.array(z.string()),
  max: z.array(z.string()),
  sparse: z.boolean().describe('Only some entities count'),
});
export type TotalDescription = z.infer<typeof TotalDescription>;

const SeriesDescription = z.object({
  name: z.string(),
  first: z.int(),
  last: z.int(),
  span: z
    .object({ field: z.string(), per: z.string() })
    .optional()
    .describe('The key field with the period that the slots divide'),
});
export type SeriesDescription = z.infer<typeof SeriesDescription>;

const AttachmentDescription = z.object({
  maxBytes: z.int(),
  types: z.array(z.string()),
  public: z.boolean().describe('Readable without a token'),
  maxAge: z.int().optional(),
});
export type AttachmentDescription = z.infer<typeof AttachmentDescription>;

const ReferenceDescription = z.object({ to: z.string(), by: z.string() });
export type ReferenceDescription = z.infer<typeof ReferenceDescription>;

const EntityDescription = z.object({
  key: z.object({
    fields: z.array(z.string()).describe('In the order of the path'),
    partition: TemplateDescription,
    row: TemplateDescription,
  }),
  fields: z.record(z.string(), FieldDescription),
  kinds: z.array(z.string()).optional().describe('The values of the field kind, for an entity of several kinds'),
  indexes: z.record(z.string(), IndexDescription),
  totals: z.record(z.string(), TotalDescription),
  split: z.record(z.string(), z.array(z.string())).describe('The fields of each group, which a read returns on demand'),
  parent: z.string().optional(),
  children: z.array(z.string()),
  references: z
    .record(z.string(), z.object({ to: z.string(), by: z.string() }))
    .describe('The entity that a field refers to, and the field of that entity with the same value, by the field'),
  series: SeriesDescription.optional().describe('The slots of a data series'),
  attachments: z.record(z.string(), AttachmentDescription),
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
export type EntityDescription = z.infer<typeof EntityDescription>;

export const ModelDescription = z.object({
  roles: z.array(z.string()),
  operatorRole: z.string(),
  entities: z.record(z.string(), EntityDescription),
});
export type ModelDescription = z.infer<typeof ModelDescription>;
