import { AsyncLocalStorage } from 'node:async_hooks';
import type { Action } from './rows.ts';

/**
 * Explaining runs the same code as doing: what would be read is read, as it decides what follows, and what would be
 * written is noted in place of being written. So an explanation cannot differ from what is done.
 */
export type Step =
  | { readonly read: 'row'; readonly table: string; readonly partition: string; readonly row: string }
  | { readonly read: 'rows'; readonly table: string; readonly filter: string; readonly select?: readonly string[] }
  | { readonly read: 'blob'; readonly container: string; readonly name: string }
  | { readonly read: 'blobs'; readonly container: string; readonly prefix: string }
  | {
      readonly write: 'rows';
      readonly table: string;
      readonly partition: string;
      readonly actions: readonly ExplainedAction[];
    }
  | { readonly write: 'message'; readonly queue: string; readonly does: 'send' | 'show' | 'delete' }
  | { readonly write: 'blob'; readonly container: string; readonly does: BlobChange }
  | { readonly write: 'table'; readonly table: string; readonly does: 'create' | 'drop' };

type BlobChange = 'put' | 'delete' | 'create' | 'append' | 'describe';

export interface ExplainedAction {
  readonly kind: Action['kind'];
  readonly row: string;
  /** Under the ETag that was read. */
  readonly conditional: boolean;
  /** Their names, and not what is in them. */
  readonly properties: readonly string[];
}

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
