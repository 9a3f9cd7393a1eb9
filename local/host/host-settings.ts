import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseTimeSpan } from './time-span.ts';

const TimeSpan = z.string().transform((text, context) => {
  const milliseconds = parseTimeSpan(text);
  if (milliseconds !== undefined) return milliseconds;
  context.addIssue('expected a time span such as 00:00:05');
  return z.NEVER;
});

/** The defaults are those of the real host; 2 s for `maxPollingInterval` is its default in Development. */
const Queues = z
  .object({
    messageEncoding: z.enum(['base64', 'none']).default('base64'),
    batchSize: z.int().min(1).max(32).default(16),
    newBatchThreshold: z.int().min(0).optional(),
    maxDequeueCount: z.int().min(1).default(5),
    visibilityTimeout: TimeSpan.default(0),
    maxPollingInterval: TimeSpan.default(2000),
  })
  .transform((queues) => ({
    ...queues,
    newBatchThreshold: queues.newBatchThreshold ?? Math.floor(queues.batchSize / 2),
  }));

const HostJson = z.object({
  extensions: z
    .object({
      http: z.object({ routePrefix: z.string().default('api') }).prefault({}),
      queues: Queues.prefault({}),
    })
    .prefault({}),
});

export type HostSettings = z.output<typeof HostJson>['extensions'];
export type QueueSettings = HostSettings['queues'];

/** Reads the part of an app's host.json that this host supports. */
export async function readHostSettings(folder: string): Promise<HostSettings> {
  const file = join(folder, 'host.json');
  const parsed = HostJson.safeParse(JSON.parse(await readFile(file, 'utf8')));
  if (parsed.success) return parsed.data.extensions;
  const list = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new Error(`${file} is not valid: ${list}.`);
}
