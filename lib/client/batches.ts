import type { Values } from '../base/values.ts';
import type {
  BatchOptions,
  BatchResult,
  CreateOptions,
  DeletedRange,
  DeleteRange,
  Explanation,
} from './client-types.ts';
import type { Core, EntityCalls, Tools } from './core.ts';
import type { Problem } from './errors.ts';
import type { EntityDescription } from './paths.ts';

/** Writes of many entities. Loaded at first use. */

interface ActionResult {
  readonly status: number;
  readonly etag?: string;
  readonly problem?: Problem;
}

const OUTCOMES = { 201: 'created', 200: 'stored', 304: 'unchanged', 204: 'deleted', 202: 'accepted' } as const;

export async function batch(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  actions: readonly Readonly<Record<string, Values>>[],
  { atomic, idempotencyKey, signal }: BatchOptions = {},
): Promise<readonly BatchResult[]> {
  const { hasKey, pathOf } = core.tools;
  const path = `/${entity.name}/batch`;
  const headers = { 'idempotency-key': idempotencyKey };
  // After a lost reply, a delete or a condition would fail because of the first attempt.
  const isRepeatable = actions.every((action) => !('delete' in action || 'ifMatch' in action));
  const repeat = isRepeatable ? {} : ({ repeat: 'limited' } as const);
  const reply = await send({ method: 'POST', path, body: { actions, atomic }, headers, signal, ...repeat });
  const { results }: { results: readonly ActionResult[] } = JSON.parse(reply.text);
  return results.map((result, index) => {
    const [values = {}] = Object.values(actions[index] ?? {});
    // An action whose values are rejected changes nothing, and its key may be one that no path has.
    if (hasKey(entity, values) && result.status !== 400) {
      core.forget(pathOf(entity, values));
      core.noteEtag(pathOf(entity, values), result.etag ?? null);
    }
    return toBatchResult(core.tools, result);
  });
}

/** Executes actions on entities of one partition in one transaction. The API recognizes a repeated request by an entity that it creates. */
export async function transact(
  core: Core,
  actions: readonly Readonly<Record<string, Readonly<Record<string, Values>>>>[],
  { idempotencyKey, signal, explains }: CreateOptions & { readonly explains: boolean },
): Promise<unknown> {
  const path = explains ? '/transact?explain=true' : '/transact';
  const headers = { 'idempotency-key': idempotencyKey };
  const isRepeatable = actions.some((named) => Object.values(named).some((action) => 'create' in action));
  const repeat = isRepeatable ? {} : ({ repeat: 'limited' } as const);
  const { text } = await core.send({ method: 'POST', path, body: { actions }, headers, signal, ...repeat });
  const response: Explanation | { readonly results: readonly (ActionResult & { readonly key: Values })[] } =
    JSON.parse(text);
  if (!('results' in response)) return response;
  return Promise.all(
    response.results.map(async ({ status, etag, key }, index) => {
      const [name = ''] = Object.keys(actions[index] ?? {});
      const entity = await core.entity(name);
      const entityPath = core.tools.pathOf(entity, key);
      core.forget(entityPath);
      core.noteEtag(entityPath, etag ?? null);
      return { outcome: OUTCOMES[status as keyof typeof OUTCOMES], key, ...(etag === undefined ? {} : { etag }) };
    }),
  );
}

function toBatchResult({ toProblemError }: Tools, { status, problem }: ActionResult): BatchResult {
  if (!problem) return { outcome: OUTCOMES[status as keyof typeof OUTCOMES] };
  return { outcome: 'failed', error: toProblemError(problem) };
}

/** Deletes a range by as many requests as it takes. A repeated request deletes what is left. */
export async function deleteRange(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  partition: Values,
  { from, to, all, signal, onProgress }: DeleteRange,
): Promise<DeletedRange> {
  const { nextOf, partitionPath, toProblemError, toQuery } = core.tools;
  const path = partitionPath(entity, partition);
  const problems: Problem[] = [];
  let [deleted, failed] = [0, 0];
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const query = toQuery(Object.entries({ from, to, all, continuation: after }));
    const { text, headers } = await send({ method: 'DELETE', path: path + query, signal });
    const page = JSON.parse(text);
    deleted += page.deleted;
    failed += page.failed;
    problems.push(...page.problems);
    core.forgetPartition(path);
    onProgress?.(deleted);
    after = nextOf(headers);
  }
  return { deleted, failed, errors: problems.map(toProblemError) };
}
