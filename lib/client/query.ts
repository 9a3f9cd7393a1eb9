import type { Values } from '../base/values.ts';
import type { CallOptions, Explanation, Page, QueryResult } from './client-types.ts';
import type { Core, Tools } from './core.ts';
import type { Problem } from './errors.ts';

/** Several reads in one request. Loaded at first use. Its types are those of client-types.ts. */

/** A read as the API expects it. */
type Read = Values;

interface Result {
  readonly status: number;
  readonly transactions: number;
  readonly etag?: string;
  readonly entity?: Values;
  readonly items?: readonly Values[];
  readonly continuation?: string;
  readonly problem?: Problem;
}

export type RunQuery = (build: BuildReads, options?: CallOptions) => ReturnType<typeof runQuery>;
type BuildReads = (reads: unknown) => Readonly<Record<string, Read>>;

/** The reads of each entity, by name. */
function readsByEntity({ byName }: Tools): unknown {
  return byName((entity) => ({
    get: (key: Values, options: Values = {}): Read => ({ get: entity, key, ...options }),
    range: (partition: Values, options: Values = {}): Read => ({ range: entity, partition, ...options }),
    list: (options: Values = {}): Read => ({ list: entity, ...options }),
    by: byName((by) => {
      const read = (values: Values, options: Values = {}): Read => ({ by, entity, values, ...options });
      return Object.assign(read, { range: read });
    }),
  }));
}

export async function runQuery(
  core: Core,
  build: BuildReads,
  { signal, explains }: CallOptions & { readonly explains: boolean },
): Promise<Readonly<Record<string, QueryResult<unknown>>> | Explanation> {
  const reads = build(readsByEntity(core.tools));
  const path = explains ? '/query?explain=true' : '/query';
  const { text } = await core.send({ method: 'POST', path, body: { reads }, signal });
  const response = JSON.parse(text);
  if (explains) return response;
  const results = Object.entries<Result>(response.reads).map(async ([name, result]) => [
    name,
    await toQueryResult(core, reads[name] ?? {}, result),
  ]);
  return Object.fromEntries(await Promise.all(results));
}

async function toQueryResult(core: Core, read: Read, result: Result): Promise<QueryResult<unknown>> {
  const { toPath, toProblemError, valuesOf } = core.tools;
  const { transactions, problem, items, entity, etag, continuation } = result;
  if (problem?.code === 'not-found') return { value: undefined, transactions };
  if (problem) return { error: toProblemError(problem), transactions };
  if (items) return { value: { items, next: continuation } satisfies Page<Values>, transactions };
  if (read.get === undefined) return { value: entity, transactions };
  const { name, key } = await core.entity(String(read.get));
  core.noteEtag(toPath([name, ...valuesOf(key.fields, Object(read.key))]), etag ?? null);
  return { value: { etag: etag ?? '', values: entity }, transactions };
}
