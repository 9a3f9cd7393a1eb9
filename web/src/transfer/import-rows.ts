import type { RowkeyClientError } from '../../../lib/client/index.ts';
import type { EntityClient } from '../api/entity-client.ts';
import type { Entity, Values } from '../api/model.ts';
import type { FileRow, RowChunk } from './read-rows.ts';

/** How a row that exists is treated. */
export type ImportMode = 'create' | 'put';

export interface RejectedRow extends FileRow {
  readonly reason: string;
}

export interface ImportProgress {
  readonly share: number;
  readonly read: number;
  readonly written: number;
  readonly unchanged: number;
  readonly rejected: readonly RejectedRow[];
}

interface BatchResult {
  readonly outcome: string;
  readonly error?: RowkeyClientError;
}

interface ImportOptions {
  readonly client: Pick<EntityClient, 'batch'>;
  readonly entity: Entity;
  readonly mode: ImportMode;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ImportProgress) => void;
  /** For tests. */
  readonly pauseMs?: number;
}

const MAX_BATCH = 100;
/** The API accepts a body of 1 MiB, and a UTF-16 unit has up to three bytes in UTF-8. */
const MAX_BATCH_CHARACTERS = 250_000;
const CONCURRENCY = 4;
const MAX_ATTEMPTS = 5;
const PAUSE_MS = 1_000;

/**
 * Sends the rows in batches, each of one partition. A row that is busy, and a batch without a response, is sent again. The API recognizes a
 * batch without a response.
 */
export async function importRows(chunks: AsyncIterable<RowChunk>, options: ImportOptions): Promise<ImportProgress> {
  const { entity, signal, onProgress } = options;
  const rejected: RejectedRow[] = [];
  let progress: ImportProgress = { share: 0, read: 0, written: 0, unchanged: 0, rejected };
  const report = (part: Partial<ImportProgress>) => {
    // Concurrent batches end in any order.
    rejected.sort((one, other) => one.line - other.line);
    progress = { ...progress, ...part };
    onProgress(progress);
  };
  for await (const { rows, share } of chunks) {
    signal.throwIfAborted();
    rejected.push(...rows.filter((row): row is RejectedRow => row.reason !== undefined));
    const batches = groupIntoBatches(entity, rows);
    const work = async () => {
      for (let batch = batches.shift(); batch; batch = batches.shift()) {
        const results = await sendBatch(batch, options);
        const count = (outcomes: readonly string[]) =>
          results.filter(({ outcome }) => outcomes.includes(outcome)).length;
        for (const [index, { error }] of results.entries()) {
          const row = batch[index];
          if (error && row) rejected.push({ ...row, reason: reasonOf(error) });
        }
        report({
          written: progress.written + count(['created', 'stored']),
          unchanged: progress.unchanged + count(['unchanged']),
        });
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    report({ share, read: progress.read + rows.length });
  }
  return progress;
}

function groupIntoBatches({ key }: Entity, rows: readonly FileRow[]): (readonly FileRow[])[] {
  const batches: FileRow[][] = [];
  const open = new Map<string, { readonly batch: FileRow[]; readonly length: number }>();
  for (const row of rows) {
    const { values } = row;
    if (!values) continue;
    const partition = JSON.stringify(key.partition.fields.map((field) => values[field]));
    const length = JSON.stringify(values).length;
    const last = open.get(partition);
    const isFull = !last || last.batch.length === MAX_BATCH || last.length + length > MAX_BATCH_CHARACTERS;
    const batch = isFull ? [] : last.batch;
    if (isFull) batches.push(batch);
    batch.push(row);
    open.set(partition, { batch, length: (isFull ? 0 : last.length) + length });
  }
  return batches;
}

interface Attempt {
  readonly attempt: number;
  /** Repeats of a batch without a response have the same. */
  readonly idempotencyKey: string;
}

/** `crypto.randomUUID` exists only in secure contexts. */
function randomKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

async function sendBatch(
  batch: readonly FileRow[],
  options: ImportOptions,
  { attempt, idempotencyKey }: Attempt = { attempt: 1, idempotencyKey: randomKey() },
): Promise<BatchResult[]> {
  const { client, mode, signal, pauseMs = PAUSE_MS } = options;
  const actions = batch.map(({ values = {} }): Values => ({ [mode]: values }));
  const again = async (rows: readonly FileRow[], key: string) => {
    await new Promise((resolve) => setTimeout(resolve, pauseMs * attempt));
    signal.throwIfAborted();
    return sendBatch(rows, options, { attempt: attempt + 1, idempotencyKey: key });
  };
  let results: BatchResult[];
  try {
    results = (await client.batch(actions, { signal, idempotencyKey })) as unknown as BatchResult[];
  } catch (error) {
    if (signal.aborted) throw error;
    const failed = error as RowkeyClientError;
    const isWorthRepeating = failed.code === 'network' || failed.status === 502 || failed.status >= 503;
    if (!isWorthRepeating || attempt === MAX_ATTEMPTS) return batch.map(() => ({ outcome: 'failed', error: failed }));
    return again(batch, idempotencyKey);
  }
  const busy = results.flatMap(({ error }, index) => (error?.status === 503 ? [index] : []));
  if (busy.length === 0 || attempt === MAX_ATTEMPTS) return results;
  // Nothing was done for these rows, and an equal row may have been stored under the key.
  const repeated = await again(
    busy.flatMap((index) => batch[index] ?? []),
    randomKey(),
  );
  for (const [position, index] of busy.entries()) results[index] = repeated[position] ?? { outcome: 'failed' };
  return results;
}

function reasonOf({ message, problem }: RowkeyClientError): string {
  const errors = problem?.errors ?? [];
  return errors.length > 1 ? errors.map((each) => `"${each.field}" ${each.message}`).join('; ') : message;
}
