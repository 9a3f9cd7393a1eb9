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

const MIN_POLLING_MS = 100;

/** The defaults are those of the real host; 2 s for `maxPollingInterval` is its default in Development. */
const Queues = z
  .object({
    messageEncoding: z
      .string()
      .toLowerCase()
      .pipe(z.enum(['base64', 'none']))
      .default('base64'),
    batchSize: z.int().min(1).max(32).default(16),
    newBatchThreshold: z.int().min(0).optional(),
    maxDequeueCount: z.int().min(1).default(5),
    visibilityTimeout: TimeSpan.default(0),
    maxPollingInterval: TimeSpan.pipe(z.number().min(MIN_POLLING_MS, 'expected at least 00:00:00.1')).default(2000),
  })
  .transform((queues) => ({
    ...queues,
    newBatchThreshold: queues.newBatchThreshold ?? Math.floor(queues.batchSize / 2),
  }));

const LogLevel = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['trace', 'debug', 'information', 'warning', 'error', 'critical', 'none']));

/** A NuGet version, which may float (`4.*`), or a range of versions such as `[4.0.0, 5.0.0)`. */
const VERSION = String.raw`\s*\d+(?:\.(?:\d+|\*)){0,3}(?:-[\w.*-]+)?\s*`;
const ExtensionBundle = z.object({
  id: z
    .string()
    .max(100)
    .regex(/^\w+(?:[.-]\w+)*$/, 'expected the id of a NuGet package'),
  version: z
    .string()
    .regex(
      new RegExp(`^(?:${VERSION}|\\*|\\[${VERSION}\\]|[[(](?:${VERSION})?,(?:${VERSION})?[\\])])$`),
      'expected a version or a range of versions such as [4.0.0, 5.0.0)',
    ),
});

const HostJson = z.object({
  version: z.literal('2.0'),
  functionTimeout: z
    .union([z.literal('-1'), TimeSpan.pipe(z.number().min(1_000, 'expected at least 00:00:01'))])
    .optional(),
  logging: z.object({ logLevel: z.record(z.string(), LogLevel).optional() }).optional(),
  extensionBundle: ExtensionBundle.optional(),
  extensions: z
    .object({
      http: z
        .object({
          routePrefix: z
            .string()
            .regex(/^(?!.*\/$)/, 'expected no / at the end')
            .default('api'),
        })
        .prefault({}),
      queues: Queues.prefault({}),
    })
    .prefault({}),
});

export type HostSettings = z.output<typeof HostJson>['extensions'] & { readonly hasExtensionBundle: boolean };
export type QueueSettings = HostSettings['queues'];

/**
 * Reads an app's host.json. Throws a plain error for a value with which the real host does not start, in the properties that this
 * host knows. Other properties are not checked.
 */
export async function readHostSettings(folder: string): Promise<HostSettings> {
  const file = join(folder, 'host.json');
  const parsed = HostJson.safeParse(parseJson(await readFile(file, 'utf8'), file));
  if (parsed.success) {
    const { extensions, extensionBundle } = parsed.data;
    return { ...extensions, hasExtensionBundle: extensionBundle !== undefined };
  }
  const list = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new Error(`${file} is not valid: ${list}.`);
}

/** The real host also accepts comments and commas at the end of lists. */
function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not valid: it is not JSON: ${(error as Error).message}.`);
  }
}
