import { z } from 'zod';
import { HOUR_MS, isoSeconds } from '../../lib/base/time.ts';
import { importFromPacks } from './pack-modules.ts';

/** A request that shows a pattern. */
const Example = z.object({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']).default('GET'),
  path: z.string(),
  body: z.record(z.string(), z.unknown()).optional(),
  /** The expected storage transactions, according to the guide. */
  cost: z.string(),
  /** The storage transactions of the naive way. */
  naive: z.string(),
  role: z.literal('operator').optional(),
});
export type Example = z.infer<typeof Example>;

const ByPattern = z.record(z.string(), z.array(Example));
/** The exports of a pack's `pattern-examples.ts`. */
const ExamplesModule = z.object({ patternExamples: ByPattern });

/** Returns the examples of every pack, and those without an entity, by pattern name. */
export async function readPatternExamples(now: number): Promise<Map<string, Example[]>> {
  const modules = await importFromPacks('pattern-examples.ts');
  const examples = new Map(Object.entries(ByPattern.parse(makeGeneralExamples(now))));
  for (const module of modules)
    for (const [pattern, more] of Object.entries(ExamplesModule.parse(module).patternExamples))
      examples.set(pattern, [...(examples.get(pattern) ?? []), ...more]);
  return examples;
}

function makeGeneralExamples(now: number) {
  const hour = Math.floor(now / HOUR_MS);
  const at = (hours: number) => isoSeconds(hours * HOUR_MS);
  return {
    'Log data in blobs': [
      {
        path: `operations/audit?from=${at(hour)}&to=${at(hour + 1)}&top=2`,
        cost: '2 to list, 1 for each blob of the hours',
        naive: 'a table of changes: 1 per change to write, a scan to read an hour',
        role: 'operator',
      },
    ],
  };
}
