import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { omit, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { Problem } from '../../lib/http/problem.ts';
import { pathTo } from '../../lib/http/route.ts';
import type { ImportRow } from './csv-rows.ts';
import { readKeyField } from './one-per-key.ts';
import type { RowFile } from './row-files.ts';
import { ask, formatProblem, readProblem, type Target } from './target.ts';

/** The most entities that the API accepts in a batch. */
const MAX_BATCH = 100;
/** The API accepts a body of 1 MiB, and a UTF-16 unit has up to three bytes in UTF-8. A longer row is sent alone. */
const MAX_BATCH_CHARACTERS = 250_000;
/** Limits the rows that wait for others of their partition, and their memory. Above a limit, the oldest partitions are sent. */
const MAX_WAITING = 5_000;
const MAX_WAITING_CHARACTERS = 50_000_000;
const MAX_ATTEMPTS = 6;

/** A row with its files. */
export interface FiledRow extends ImportRow {
  readonly files: readonly RowFile[];
}

interface Waiting {
  readonly rows: FiledRow[];
  /** The length of the body that the rows make. */
  characters: number;
  /** The length of the rows with their files. */
  held: number;
}

/**
 * Groups rows by partition, because a transaction is limited to one partition. Equal rows are in different groups, whose requests have
 * different keys.
 */
export async function* groupIntoBatches(entity: Entity, rows: AsyncIterable<FiledRow>): AsyncGenerator<FiledRow[]> {
  const waiting = new Map<string, Waiting>();
  let [count, held] = [0, 0];
  const take = (partition: string) => {
    const batch = waiting.get(partition);
    waiting.delete(partition);
    count -= batch?.rows.length ?? 0;
    held -= batch?.held ?? 0;
    return batch?.rows ?? [];
  };
  for await (const row of rows) {
    const fields = entity.partition.fields.map((field) => readKeyField(entity, field, row.values));
    const partition = JSON.stringify([row.copy, ...fields]);
    const length = JSON.stringify(omitFiles(entity, row.values)).length;
    const size = row.files.length === 0 ? length : JSON.stringify(row.values).length;
    const before = waiting.get(partition)?.characters ?? 0;
    if (before > 0 && before + length > MAX_BATCH_CHARACTERS) yield take(partition);
    const batch = waiting.get(partition) ?? { rows: [], characters: 0, held: 0 };
    waiting.set(partition, batch);
    batch.rows.push(row);
    batch.characters += length;
    batch.held += size;
    count += 1;
    held += size;
    if (batch.rows.length === MAX_BATCH) yield take(partition);
    for (const oldest of waiting.keys()) {
      if (count <= MAX_WAITING && held <= MAX_WAITING_CHARACTERS) break;
      yield take(oldest);
    }
  }
  for (const partition of [...waiting.keys()]) yield take(partition);
}

const RouteResult = z.object({ results: z.array(z.object({ status: z.number(), problem: Problem.optional() })) });
type Results = z.infer<typeof RouteResult>['results'];

/** What the rows of a file are sent to. */
interface Receiver extends Target {
  readonly entity: Entity;
  /** Identifies the file: the API remembers for a day which key it has generated for a row of it. */
  readonly source: string;
  /** The path of the batch, by default that of the entity. */
  readonly path?: string;
}

/** Returns the result of each row, in order. Rows that other writers changed concurrently (503) are sent again. */
export async function sendBatch(to: Receiver, batch: readonly ImportRow[], attempt = 1): Promise<Results> {
  const results = await post(to, batch);
  const busy = results.flatMap(({ status }, index) => (status === 503 ? [index] : []));
  if (busy.length === 0 || attempt === MAX_ATTEMPTS) return results;
  await sleep(1_000 * attempt);
  const rows = busy.flatMap((index) => batch[index] ?? []);
  const again = await sendBatch(to, rows, attempt + 1);
  for (const [position, index] of busy.entries()) results[index] = again[position] ?? { status: 503 };
  return results;
}

function omitFiles({ attachments }: Entity, values: Values): Values {
  return omit(values, Object.keys(attachments));
}

async function post({ entity, source, path, ...target }: Receiver, batch: readonly ImportRow[]): Promise<Results> {
  const copy = batch[0]?.copy;
  const body = JSON.stringify({ actions: batch.map(({ values }) => ({ put: omitFiles(entity, values) })) });
  const headers = {
    'content-type': 'application/json',
    ...(copy === undefined ? {} : { 'idempotency-key': `import-${source}-${copy}` }),
  };
  const response = await ask(target, path ?? pathTo(target.root, entity.name, 'batch'), {
    method: 'POST',
    headers,
    body,
  });
  if (response.ok) return RouteResult.parse(await response.json()).results;
  const problem = await readProblem(response);
  // The only row is too large, so the error of the request is the error of the row.
  if (problem && (response.status === 400 || response.status === 413) && batch.length === 1)
    return [{ status: response.status, problem }];
  throw new Error(
    `The API at ${target.url} rejected ${batch.length} rows with status ${response.status}: ${formatProblem(problem)}`,
  );
}
