import type { CreateOptions, Explanation } from './client-types.ts';
import type { Core } from './core.ts';

/** Calls an operation of the app. Loaded at first use. */
export async function callOperation(
  core: Core,
  name: string,
  input: unknown,
  { idempotencyKey, signal, explains }: CreateOptions & { readonly explains: boolean },
): Promise<unknown | Explanation> {
  const { operations = {} } = await core.model();
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (!operation) throw core.tools.invalidInput(`The model of the API has no operation "${name}".`);
  const path = `/${name}${explains ? '?explain=true' : ''}`;
  const headers = { 'idempotency-key': idempotencyKey };
  const repeat = operation.kind === 'read' || operation.repeatable ? {} : ({ repeat: 'limited' } as const);
  try {
    return JSON.parse((await core.send({ method: 'POST', path, body: input, headers, signal, ...repeat })).text);
  } finally {
    // It may have changed any entity, even if the response is lost.
    if (operation.kind === 'write') core.forgetAll();
  }
}
