import { z } from 'zod';

/** What a deployment remembers of an index, to find the rows that it leaves when the declaration changes. */
export const IndexShape = z.object({
  kind: z.string(),
  table: z.string().optional(),
  partition: z.string().optional(),
  row: z.string(),
  holds: z.string().optional(),
  unique: z.boolean().optional(),
  copies: z.unknown().optional(),
});
export type IndexShape = z.infer<typeof IndexShape>;
