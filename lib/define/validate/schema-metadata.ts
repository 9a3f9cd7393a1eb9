import { z } from 'zod';

/**
 * The metadata of schemas for `z.toJSONSchema`, with an id as the title. Zod would replace a schema with an id by a reference,
 * so that a text would not be known as a text, and would reject two schemas with one id.
 */
class SchemaMetadata extends z.core.$ZodRegistry<Record<string, unknown>> {
  override get(schema: z.core.$ZodType): Record<string, unknown> {
    const { id, ...metadata } = z.globalRegistry.get(schema) ?? {};
    return id === undefined ? metadata : { title: id, ...metadata };
  }
}

export const schemaMetadata = new SchemaMetadata();
