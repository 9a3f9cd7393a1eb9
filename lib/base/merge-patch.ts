import type { Values } from './values.ts';

/**
 * The target after a merge patch (RFC 7396): a member that is null is removed, objects are merged at every level, and any other value
 * replaces that of the target. The patch is JSON of limited depth: see `findNotJson`.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [name, member] of Object.entries(patch))
    if (member === null) delete merged[name];
    // The target may have a `constructor` from the prototype of objects.
    else if (member !== undefined)
      merged[name] = mergePatch(Object.hasOwn(merged, name) ? merged[name] : undefined, member);
  return merged;
}

/** True if a merge patch with this value depends on what it changes. */
export function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The merge patch that makes `to` of `from`. A member of an object that is null in `to` is removed, because a merge patch cannot set null. */
export function toMergePatch(from: unknown, to: unknown): unknown {
  if (!isObject(from) || !isObject(to)) return to;
  const removed = Object.keys(from).filter((name) => !Object.hasOwn(to, name));
  const changed = Object.entries(to).map(([name, member]) => [name, toMergePatch(from[name], member)]);
  return Object.fromEntries([...removed.map((name) => [name, null]), ...changed]);
}
