import { readFile } from 'node:fs/promises';
import type { z } from 'zod';

/**
 * Reads a JSON file and validates it. Undefined if the file is missing. Throws for invalid content; `unusable` completes
 * the sentence that starts with the file name.
 */
export async function readJsonFile<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  unusable: string,
): Promise<z.output<Schema> | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
  if (text === undefined) return undefined;
  const parsed = schema.safeParse(toJson(text));
  if (!parsed.success) throw new Error(`${file} ${unusable}`);
  return parsed.data;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
