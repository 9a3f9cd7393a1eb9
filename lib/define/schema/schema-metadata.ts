import { z } from 'zod';

/**
 * The metadata of schemas for `z.toJSONSchema`, with an id as the title. Otherwise, zod replaces a schema with an id by a reference,
 * which hides its type, and rejects two schemas with one id.
 */
class SchemaMetadata extends z.core.$ZodRegistry<Record<string, unknown>> {
  override get(schema: z.core.$ZodType): Record<string, unknown> {
    const { id, ...metadata } = z.globalRegistry.get(schema) ?? {};
    return id === undefined ? metadata : { title: id, ...metadata };
  }
}

export const schemaMetadata = new SchemaMetadata();
