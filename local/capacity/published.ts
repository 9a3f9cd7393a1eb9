import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';

const PUBLISHED = new URL('published.yaml', import.meta.url);

const Figure = z.strictObject({
  value: z.number().positive(),
  unit: z.string(),
  source: z.url(),
  asOf: z.union([z.int(), z.string()]),
});
const Published = z.strictObject({
  targets: z.strictObject({
    accountRequests: Figure,
    accounts: Figure,
    partitionEntities: Figure,
    queueMessages: Figure,
    instances: Figure,
    gigabytesOfCore: Figure,
    billedSeconds: Figure,
  }),
  prices: z.strictObject({
    tableGigabyte: Figure,
    tableRequests: Figure,
    queueRequests: Figure,
    blobWrites: Figure,
    blobReads: Figure,
    blobGigabyte: Figure,
    gigabyteSecond: Figure,
    executions: Figure,
    freeGigabyteSeconds: Figure,
    freeExecutions: Figure,
  }),
});
export type Published = z.infer<typeof Published>;

/** Reads the published targets and prices, or a file of the same form. */
export async function readPublished(file: string | URL = PUBLISHED): Promise<Published> {
  return Published.parse(parse(await readFile(file, 'utf8')));
}
