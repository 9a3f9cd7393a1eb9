import { createHash } from 'node:crypto';

/** An id of a request in the engine's form, derived from its parts, so that a repeated request has the same id. */
export function toRequestId(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  const [, ...groups] = /^(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(hash.digest('hex')) ?? [];
  return groups.join('-');
}
