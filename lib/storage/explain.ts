import { AsyncLocalStorage } from 'node:async_hooks';
import { z } from 'zod';
import type { Action } from './rows.ts';

const row = { table: z.string(), partition: z.string(), row: z.string() };

const ExplainedAction = z.object({
  kind: z.enum(['insert', 'upsert', 'upsert-merge', 'replace', 'merge', 'delete']),
  row: z.string(),
  conditional: z.boolean().describe('Under the ETag that was read'),
  properties: z.array(z.string()).readonly().describe('Names without values'),
});
export type ExplainedAction = z.infer<typeof ExplainedAction>;

/**
 * Explaining runs the same code as doing: what would be read is read, as it decides what follows, and what would be
 * written is noted in place of being written. So an explanation cannot differ from what is done.
 */
export const Step = z.union([
  z.object({ read: z.literal('row'), ...row }),
  z.object({
    read: z.literal('rows'),
    table: z.string(),
    filter: z.string(),
    select: z.array(z.string()).readonly().optional(),
  }),
  z.object({ read: z.literal('blob'), container: z.string(), name: z.string() }),
  z.object({ read: z.literal('blobs'), container: z.string(), prefix: z.string() }),
  z.object({
    write: z.literal('rows'),
    table: z.string(),
    partition: z.string(),
    actions: z.array(ExplainedAction).readonly(),
  }),
  z.object({ write: z.literal('message'), queue: z.string(), does: z.enum(['send', 'delete']) }),
  z.object({
    write: z.literal('blob'),
    container: z.string(),
    does: z.enum(['put', 'delete', 'create', 'append', 'describe']),
  }),
  z.object({ write: z.literal('table'), table: z.string(), does: z.enum(['create', 'drop']) }),
]);
export type Step = z.infer<typeof Step>;

const explanations = new AsyncLocalStorage<Step[]>();

/** Runs `work` without its writes, and answers the steps that it would have taken, each one storage transaction. */
export async function explain(work: () => Promise<unknown>): Promise<Step[]> {
  const steps: Step[] = [];
  await explanations.run(steps, work);
  return steps;
}

/** Runs what belongs to the process and not to the request: it is done in earnest and not told of. */
export function unexplained<Result>(work: () => Result): Result {
  return explanations.exit(work);
}

/** Whether this is an explanation. */
export function isExplaining(): boolean {
  return explanations.getStore() !== undefined;
}

/** Notes a step where this is an explanation, and says whether it is: then nothing is to be written. */
export function isExplained(step: () => Step): boolean {
  const steps = explanations.getStore();
  steps?.push(step());
  return steps !== undefined;
}

/** An action without what is in its properties. */
export function explainedAction(action: Action): ExplainedAction {
  const properties = action.kind === 'delete' ? [] : Object.keys(action.properties);
  return { kind: action.kind, row: action.row, conditional: 'etag' in action && action.etag !== undefined, properties };
}
