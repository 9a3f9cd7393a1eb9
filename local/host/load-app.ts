import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import {
  type FunctionMetadata,
  getProgrammingModel,
  type Handler,
  resetFunctions,
  sealFunctions,
} from './functions-core.ts';

const HttpTrigger = z.object({
  type: z.literal('httpTrigger'),
  methods: z.array(z.string().toUpperCase()),
  route: z.string().optional(),
  authLevel: z.enum(['anonymous', 'function', 'system', 'admin']).default('function'),
});
const QueueTrigger = z.object({
  type: z.literal('queueTrigger'),
  queueName: z.string(),
  connection: z.string().default('AzureWebJobsStorage'),
});
const TimerTrigger = z.object({ type: z.literal('timerTrigger'), schedule: z.string() });
const Trigger = z.discriminatedUnion('type', [HttpTrigger, QueueTrigger, TimerTrigger]);

export type HttpTrigger = z.infer<typeof HttpTrigger>;
export type QueueTrigger = z.infer<typeof QueueTrigger>;
export type TimerTrigger = z.infer<typeof TimerTrigger>;
type Trigger = z.infer<typeof Trigger>;

export interface HostedFunction<T extends Trigger = Trigger> {
  readonly name: string;
  readonly trigger: T;
  /** The key of the trigger among the bindings, under which the library expects its input. */
  readonly triggerKey: string;
  readonly metadata: FunctionMetadata;
  readonly handler: Handler;
  /** The app setting `AzureWebJobs.NAME.Disabled` is true: nothing triggers the function but the admin route. */
  readonly isDisabled: boolean;
}

let loads = 0;

/**
 * Imports the files that match `main` in the app's package.json and returns the functions that they registered, in order of
 * name. A later call imports the files again, without their former state.
 */
export async function loadApp(folder: string): Promise<readonly HostedFunction[]> {
  resetFunctions();
  const query = loads === 0 ? '' : `?load=${loads}`;
  loads += 1;
  const { main } = z
    .object({ main: z.string() })
    .parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
  const files = globSync(main, { cwd: folder }).toSorted();
  if (files.length === 0) throw new Error(`No file matches ${main} in ${folder}: build the app first.`);
  for (const file of files)
    try {
      await import(`${pathToFileURL(join(folder, file)).href}${query}`);
    } catch (error) {
      throw new Error(`${file} could not be loaded: ${describeError(error)}`);
    }

  const functions = sealFunctions();
  if (functions.length === 0) throw new Error(`The app registered no function in ${main}.`);
  const capabilities = await getProgrammingModel().getCapabilities({});
  if (capabilities.HttpUri)
    throw new Error(
      'The app turns on enableHttpStream, but this host supports only buffered bodies: remove the option.',
    );
  return (
    functions
      .map(({ metadata, handler }) => toHostedFunction(metadata, handler))
      // The order is that of `StringComparer.OrdinalIgnoreCase` in the real host.
      .toSorted((one, other) => (one.name.toUpperCase() < other.name.toUpperCase() ? -1 : 1))
  );
}

/** Node tells only in the stack where a mistake is. The errors of a declaration say what to change, and their place is in the engine. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'DeclarationError') return error.message;
  const [head = '', ...frames] = (error.stack ?? error.message).replaceAll(/\?load=\d+/g, '').split('\n    at ');
  const place = frames.find((frame) => frame.includes('file:') && !frame.includes('node_modules'));
  if (head.startsWith('file:')) return head.trim();
  return place === undefined ? error.message : `${error.message}\n    at ${place}`;
}

export function selectByTrigger<Type extends Trigger['type']>(functions: readonly HostedFunction[], type: Type) {
  type Picked = HostedFunction<Extract<Trigger, { type: Type }>>;
  return functions.filter((candidate): candidate is Picked => candidate.trigger.type === type);
}

function toHostedFunction(metadata: FunctionMetadata, handler: Handler): HostedFunction {
  let found: Pick<HostedFunction, 'trigger' | 'triggerKey'> | undefined;
  for (const [key, binding] of Object.entries(metadata.bindings)) {
    if (key === '$return' && binding.type === 'http') continue;
    const parsed = Trigger.safeParse(binding);
    if (parsed.error?.issues.some(({ path }) => path[0] === 'authLevel'))
      throw new Error(
        `The function ${metadata.name} has the unknown authLevel ${JSON.stringify(binding.authLevel)}: anonymous, function, system and admin are accepted.`,
      );
    if (!parsed.success)
      throw new Error(
        `The function ${metadata.name} has the unsupported binding ${binding.type}: supported are HTTP, queue and timer triggers, and the response of HTTP.`,
      );
    found = { trigger: parsed.data, triggerKey: key };
  }
  if (!found) throw new Error(`The function ${metadata.name} has no trigger.`);
  const isDisabled = /^(true|1)$/i.test(process.env[`AzureWebJobs.${metadata.name}.Disabled`] ?? '');
  return { name: metadata.name, ...found, metadata, handler, isDisabled };
}
