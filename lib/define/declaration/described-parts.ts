import { z } from 'zod';
import { CALENDAR_UNITS } from '../keys/calendar.ts';

/** Parts of what `GET /api/model` returns: how keys, indexes and totals are read. */

/** Describes an entity by its name, and accepts the name. */
export const nameOfEntity = z.preprocess((of) => (typeof of === 'string' ? of : Object(of).name), z.string());

export const TemplateDescription = z.object({
  template: z.string(),
  fields: z.array(z.string()).describe('The fields that decide the key, in the order of a path'),
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

export const IndexDescription = z.object({
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

export const TotalDescription = z.object({
  fields: z.array(z.string()).describe('The fields of a group, in the order of the path'),
  periods: z.record(z.string(), z.enum(CALENDAR_UNITS)).describe('The fields of which a group has only a period'),
  ranges: Ranges,
  sum: z.array(z.string()),
  min: z.array(z.string()),
  max: z.array(z.string()),
  sparse: z.boolean().describe('Only some entities count'),
});
