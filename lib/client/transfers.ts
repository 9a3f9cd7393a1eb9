import type { Values } from '../base/values.ts';
import type { CallOptions, CreateOptions, Operation, OperationStatus } from './client-types.ts';
import type { EntityCalls } from './core.ts';
import type { EntityDescription } from './paths.ts';
import type { Reply } from './transport.ts';

/** Archives, moves, and deletes of entities with many children. Loaded at first use. */

const FIRST_POLL_MS = 200;
const LONGEST_POLL_MS = 5_000;

export function archive(calls: EntityCalls, entity: EntityDescription, key: Values, options?: CreateOptions) {
  return transfer(calls, entity, 'archive', key, options);
}

export function move(calls: EntityCalls, entity: EntityDescription, key: Values, to: Values, options?: CreateOptions) {
  return transfer(calls, entity, 'move', key, { ...options, to });
}

async function transfer(
  calls: EntityCalls,
  entity: EntityDescription,
  kind: 'archive' | 'move',
  key: Values,
  { to, idempotencyKey, signal }: CreateOptions & { readonly to?: Values } = {},
): Promise<Operation> {
  const path = calls.core.tools.pathOf(entity, key);
  const headers = { 'idempotency-key': idempotencyKey };
  return follow(calls, path, await calls.send({ method: 'POST', path: `${path}/${kind}`, body: to, headers, signal }));
}

/** The operation on the entity at the path that the API has accepted. */
export function follow({ core }: Pick<EntityCalls, 'core'>, path: string, { text }: Pick<Reply, 'text'>): Operation {
  const { pause, RowkeyClientError } = core.tools;
  const { operationId, operation: kind } = JSON.parse(text);
  const status = async (options: CallOptions = {}): Promise<OperationStatus> => {
    const reply = await core.send({ method: 'GET', path: `${path}/${kind}/${operationId}`, signal: options.signal });
    return JSON.parse(reply.text);
  };
  const done = async (options: CallOptions = {}): Promise<OperationStatus> => {
    for (let wait = FIRST_POLL_MS; ; wait = Math.min(wait * 1.5, LONGEST_POLL_MS)) {
      const current = await status(options);
      if (current.status === 'failed')
        throw new RowkeyClientError('operation-failed', current.reason ?? `The ${kind} failed.`);
      if (current.status === 'succeeded') {
        core.forget(path);
        core.noteEtag(path, null);
        return current;
      }
      await pause(wait, options.signal);
    }
  };
  return { operationId, status, done };
}
