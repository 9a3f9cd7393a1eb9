import { AsyncLocalStorage } from 'node:async_hooks';
import { z } from 'zod';

/** The properties that are read; all without it. */
const select = z.array(z.string()).readonly().optional();
const row = { table: z.string(), partition: z.string(), row: z.string() };

const ExplainedAction = z
  .object({
    kind: z.enum(['insert', 'upsert', 'upsert-merge', 'replace', 'merge', 'delete']),
    row: z.string(),
    conditional: z.boolean().describe('Only if the ETag is the one that was read'),
    properties: z.array(z.string()).readonly().describe('Names without values'),
  })
  .meta({ title: 'write-action' });

/**
 * An explanation runs the same code as the request itself, so the two cannot differ: reads are done, because they decide
 * what follows, and writes are recorded instead of sent.
 */
export const Step = z.union([
  z.object({ read: z.literal('row'), ...row, select }).meta({ title: 'read-row' }),
  z.object({ read: z.literal('rows'), table: z.string(), filter: z.string(), select }).meta({ title: 'read-rows' }),
  z.object({ read: z.literal('blob'), container: z.string(), name: z.string() }),
  z.object({ read: z.literal('blobs'), container: z.string(), prefix: z.string() }).meta({ title: 'read-blobs' }),
  z
    .object({
      write: z.literal('rows'),
      table: z.string(),
      partition: z.string(),
      actions: z.array(ExplainedAction).readonly(),
    })
    .meta({ title: 'write-rows' }),
  z
    .object({ write: z.literal('message'), queue: z.string(), does: z.enum(['send', 'delete']) })
    .meta({ title: 'write-message' }),
  z
    .object({
      write: z.literal('blob'),
      container: z.string(),
      does: z.enum(['put', 'copy', 'delete', 'create', 'append', 'describe']),
    })
    .meta({ title: 'write-blob' }),
  z
    .object({ write: z.literal('table'), table: z.string(), does: z.enum(['create', 'drop']) })
    .meta({ title: 'write-table' }),
]);
export type Step = z.infer<typeof Step>;

const explanations = new AsyncLocalStorage<Step[]>();

/** Runs `work` without its writes and returns its steps, each of which is one storage transaction. */
export async function explain(work: () => Promise<unknown>): Promise<Step[]> {
  const steps: Step[] = [];
  await explanations.run(steps, work);
  return steps;
}

/** Runs `work`, and leaves its steps out of the explanation if it throws an error that `isHidden`. */
export async function explainApart<Result>(
  work: () => Promise<Result>,
  isHidden: (error: unknown) => boolean,
): Promise<Result> {
  const whole = explanations.getStore();
  if (!whole) return work();
  const steps: Step[] = [];
  let isTold = true;
  try {
    return await explanations.run(steps, work);
  } catch (error) {
    isTold = !isHidden(error);
    throw error;
  } finally {
    if (isTold) whole.push(...steps);
  }
}

/** Runs work of the process, not of the request: executed for real and left out of the explanation. */
export function runUnexplained<Result>(work: () => Result): Result {
  return explanations.exit(work);
}

export function isExplaining(): boolean {
  return explanations.getStore() !== undefined;
}

/** In an explanation, records the step and returns true: the caller must then write nothing. */
export function recordIfExplaining(step: () => Step): boolean {
  const steps = explanations.getStore();
  steps?.push(step());
  return steps !== undefined;
}
