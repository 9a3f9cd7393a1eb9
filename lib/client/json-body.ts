import { findNotJson, MAX_BODY_DEPTH, sayNotJson } from '../base/json-value.ts';
import { mergePatch } from '../base/merge-patch.ts';
import type { Values } from '../base/values.ts';
import type { RowkeyClientError } from './errors.ts';
import type { EntityDescription } from './paths.ts';

/** The JSON of requests. Loaded at the first request with a body: most pages begin without. */

export interface Change {
  readonly method: 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: Values;
}

type InvalidInput = (message: string) => RowkeyClientError;

/** The text of a body. Throws `invalid-input`, which names the part that `JSON.stringify` would leave out, or send as null. */
export function toText(body: unknown, invalidInput: InvalidInput): string {
  const found = findNotJson(body, MAX_BODY_DEPTH);
  if (!found) return JSON.stringify(body);
  const name = found.path.length === 0 ? 'The body' : `"${found.path.join('.')}"`;
  throw invalidInput(`${name} ${sayNotJson(found)}.`);
}

/** True if the fields that a change sets have the wanted values. */
export function isApplied(entity: EntityDescription, { method, body = {} }: Change, current: Values): boolean {
  const isPatch = method === 'PATCH';
  const wanted = isPatch ? (mergePatch(current, body) as Values) : body;
  const fields = isPatch ? Object.keys(body) : Object.keys(entity.fields).filter((field) => isSet(entity, body, field));
  return fields.every((field) => JSON.stringify(wanted[field] ?? null) === JSON.stringify(current[field] ?? null));
}

/** True for a field that a PUT sets. */
function isSet({ fields, key }: EntityDescription, body: Values, field: string): boolean {
  const { derived, kept, generated } = fields[field] ?? {};
  return !derived && !kept && !(generated && body[field] === undefined) && !key.fields.includes(field);
}
