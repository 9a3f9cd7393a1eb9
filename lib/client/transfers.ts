import type { Values } from '../base/values.ts';
import type { CallOptions, CreateOptions, Operation, OperationStatus } from './client-types.ts';
import type { EntityCalls } from './core.ts';
import type { EntityDescription } from './paths.ts';

/** Archives and moves. Loaded at first use. */

const FIRST_POLL_MS = 200;
const LONGEST_POLL_MS = 5_000;

export function archive(calls: EntityCalls, entity: EntityDescription, key: Values, options?: CreateOptions) {
  return transfer(calls, entity, 'archive', key, options);
}

export function move(calls: EntityCalls, entity: EntityDescription, key: Values, to: Values, options?: CreateOptions) {
  return transfer(calls, entity, 'move', key, { ...options, to });
}

async function transfer(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  kind: 'archive' | 'move',
  key: Values,
  { to, idempotencyKey, signal }: CreateOptions & { readonly to?: Values } = {},
): Promise<Operation> {
  const { pathOf, pause, RowkeyClientError } = core.tools;
  const path = pathOf(entity, key);
  const headers = { 'idempotency-key': idempotencyKey };
  const accepted = await send({ method: 'POST', path: `${path}/${kind}`, body: to, headers, signal });
  const { operationId } = JSON.parse(accepted.text);
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
