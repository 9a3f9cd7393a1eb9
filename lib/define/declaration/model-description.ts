import { z } from 'zod';
import { type OptionsWith, optionsWith } from './declaration.ts';

/** What `GET /api/model` returns. The client and the console use its types, and have no description of their own. */

type MarkOf<Option> = Option extends unknown ? keyof Option & string : never;
type Marks = Record<MarkOf<OptionsWith<'marks'>[keyof OptionsWith<'marks'>]>, z.ZodBoolean>;
const marks: Marks = Object.assign({}, ...Object.values(optionsWith('marks')));

const FieldDescription = z.object({
  type: z.enum(['String', 'Boolean', 'Int32', 'Int64', 'Double', 'Json']).describe('How storage stores the field'),
  optional: z.boolean().describe('An entity may be without it'),
  generated: z.boolean().describe('It has a default, so a create may leave it out'),
  default: z.unknown().optional().describe('What a create without the field stores, if it is the same each time'),
  fromCaller: z.literal(true).optional().describe('A create takes it from the token of the caller; cannot be written'),
  ...marks,
  kept: z.boolean().describe('Set by the app; cannot be written'),
  restricted: z.array(z.string()).optional().describe('Only these roles read it'),
  schema: z.record(z.string(), z.unknown()).describe('The JSON Schema of its values'),
});
export type FieldDescription = z.infer<typeof FieldDescription>;

const SeriesDescription = z.object({
  name: z.string(),
  first: z.int(),
  last: z.int(),
  span: z
    .object({ field: z.string(), per: z.string() })
    .optional()
    .describe('The key field with the period that the slots divide'),
});

export const EntityDescription = z.object({
  ...optionsWith('described'),
  fields: z.record(z.string(), FieldDescription),
  kinds: z.array(z.string()).optional().describe('The values of the field kind, for an entity of several kinds'),
  parent: z.string().optional(),
  children: z.array(z.string()),
  series: SeriesDescription.optional().describe('The slots of a data series'),
  archiveOf: z.string().optional().describe('Set for an archive, which can only be read and deleted'),
});
export type EntityDescription = z.infer<typeof EntityDescription>;
export type IndexDescription = EntityDescription['indexes'][string];

const OperationDescription = z.object({
  summary: z.string(),
  kind: z.enum(['read', 'write']),
  roles: z.array(z.string()),
  repeatable: z.boolean().describe('A repeated write with the same Idempotency-Key has the effect of one'),
});

export const ModelDescription = z.object({
  roles: z.array(z.string()),
  operatorRole: z.string(),
  steward: z.string().optional().describe('The role that reads all rows'),
  blocksUsers: z.literal(true).optional().describe('Set if operators may block a user'),
  erasesUsers: z.literal(true).optional().describe('Set if the data of a user can be erased'),
  backup: z
    .object({ days: z.int().describe('The retention'), roles: z.array(z.string()).describe('They read the past') })
    .optional()
    .describe('Set if the app has a backup'),
  entities: z.record(z.string(), EntityDescription),
  operations: z.record(z.string(), OperationDescription).optional().describe('What the app does beside its entities'),
});
export type ModelDescription = z.infer<typeof ModelDescription>;
