import type { Values } from '../base/values.ts';
import type { CallOptions, CreateOptions, WriteOptions } from './client-types.ts';
import type { EntityCalls } from './core.ts';
import type { EntityDescription } from './paths.ts';

/** Data series. Loaded at first use. */

export async function get({ core }: EntityCalls, entity: EntityDescription, key: Values, { signal }: CallOptions) {
  const path = core.tools.pathOf(entity, key);
  const found = await core.read(path, '', signal);
  // Increments change it all the time, so only an ETag that the caller gives is a precondition.
  core.noteEtag(path, null);
  if (!found) return undefined;
  const { counts, ...values } = found.values;
  return { etag: found.etag, values, counts };
}

export async function set(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  key: Values,
  counts: Values,
  { ifMatch, ifNoneMatch, signal }: WriteOptions = {},
): Promise<void> {
  const path = core.tools.pathOf(entity, key);
  core.forget(path);
  const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch };
  await send({ method: 'PATCH', path, body: { counts }, headers, signal });
}

export async function increment(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  key: Values,
  slot: number,
  by: number,
  { idempotencyKey, signal }: CreateOptions = {},
): Promise<number | undefined> {
  const { pathOf } = core.tools;
  core.forget(pathOf(entity, key));
  const path = pathOf(entity, key, slot, 'increments');
  const headers = { 'idempotency-key': idempotencyKey };
  const { text } = await send({ method: 'POST', path, body: { by }, headers, signal });
  return text === '' ? undefined : JSON.parse(text).count;
}

export async function span(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  key: Values,
  { from, to }: Values,
  { signal }: CallOptions = {},
): Promise<unknown> {
  const { toPath, toQuery, valuesOf } = core.tools;
  const fields = entity.key.fields.filter((field) => field in key);
  const path = toPath([entity.name, ...valuesOf(fields, key)]) + toQuery(Object.entries({ from, to }));
  return JSON.parse((await send({ method: 'GET', path, signal })).text).items;
}
