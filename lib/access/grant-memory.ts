import { LRUCache } from 'lru-cache';
import { MINUTE_MS } from '../base/time.ts';
import type { Engine } from '../engine/engine.ts';
import { isExplaining } from '../storage/explain.ts';
import type { Storage } from '../storage/storage.ts';

/**
 * Remembers issued grants, so that a repeated request takes no storage transaction. The caller gets the same signature with
 * the same expiry again, and so no right that the caller does not hold already: a revocation, another owner and the audit log
 * concern new grants only. After a move of the owner's row, the repeated grant is of the former row, so a caller whom storage
 * refuses asks for a new grant. Each process has its own memory, and a revocation in the process empties it.
 */

/** A grant is valid for 15 minutes, so a repeated one is valid for at least 10 more. */
export const GRANTS_KEPT_MS = 5 * MINUTE_MS;
/** Total length of the remembered keys and grants (characters): some thousand grants. */
const KEPT_LENGTH = 8_000_000;

interface Kept {
  readonly grant: unknown;
  /** When the grant began (milliseconds). */
  readonly since: number;
}

interface Memory {
  readonly grants: LRUCache<string, Kept>;
  revocations: number;
}

const memories = new WeakMap<Storage, Memory>();

function memoryOf(storage: Storage): Memory {
  const memory = memories.get(storage) ?? { grants: new LRUCache({ maxSize: KEPT_LENGTH }), revocations: 0 };
  memories.set(storage, memory);
  return memory;
}

/** Everything on which a grant depends: a request with another subject, claim or role gets another grant. */
type GrantKey = readonly unknown[];

/** The grant that was issued for the same key in the last minutes, if there is one. */
export function recallGrant<Grant>({ storage, now }: Engine, key: GrantKey): Grant | undefined {
  // An explanation shows the steps of a first request.
  if (isExplaining()) return undefined;
  const kept = memoryOf(storage).grants.get(JSON.stringify(key));
  const age = kept && now() - kept.since;
  return kept && age !== undefined && age >= 0 && age < GRANTS_KEPT_MS ? (kept.grant as Grant) : undefined;
}

/**
 * Begins to issue a grant. Returns the function that remembers the grant, to be called when the grant is in the audit log. It
 * does nothing if the process has revoked grants since, or in an explanation, whose grant nobody gets.
 */
export function beginGrant({ storage }: Engine, key: GrantKey): (grant: unknown, since: number) => void {
  const memory = memoryOf(storage);
  const { revocations } = memory;
  return (grant, since) => {
    if (memory.revocations !== revocations || isExplaining()) return;
    const id = JSON.stringify(key);
    memory.grants.set(id, { grant, since }, { size: id.length + JSON.stringify(grant).length });
  };
}

/** Forgets all grants of the process, so that it refuses the next request of a revoked identity. */
export function forgetGrants({ storage }: Engine): void {
  const memory = memoryOf(storage);
  memory.revocations += 1;
  memory.grants.clear();
}
