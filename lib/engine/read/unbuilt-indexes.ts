import { AsyncLocalStorage } from 'node:async_hooks';
import { RowkeyError } from '../../base/errors.ts';
import { keptFor } from '../../base/once.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';

/**
 * Indexes and totals that are not built yet from the existing entities. Writes keep them, and reads through them fail: an answer would lack
 * every entity that was stored before the index was declared.
 *
 * The start of a process says what is not built, so a read of a built index costs nothing. Any process may build an index: a read through one
 * that is not built looks at the record again, at most once in a second.
 */

const LOOK_AGAIN_MS = 1_000;

interface Unbuilt {
  /** The command that builds the index. */
  readonly command: string;
  /** Reads the record. */
  readonly isBuilt: () => Promise<boolean>;
  lookedAt: number;
}

const unbuiltIn = keptFor((_: Storage) => new Map<string, Unbuilt>());
const keyOf = ({ name }: Pick<Entity, 'name'>, index: string) => `${name}/${index}`;

/** A look at the record belongs to the process, so it is no cost of the request that triggers it. */
const inProcess = AsyncLocalStorage.snapshot();

/** Remembers that an index is not built. */
export function noteUnbuilt(
  { storage, now }: Engine,
  entity: Entity,
  { index, ...how }: Pick<Unbuilt, 'command' | 'isBuilt'> & { readonly index: string },
): void {
  unbuiltIn(storage).set(keyOf(entity, index), { ...how, lookedAt: now() });
}

/** Remembers that an index is built. */
export function noteBuilt({ storage }: Pick<Engine, 'storage'>, entity: Entity, index: string): void {
  unbuiltIn(storage).delete(keyOf(entity, index));
}

/** Throws `not-built` if the index or the totals of this name are not built. */
export async function requireBuilt({ storage, now }: Engine, entity: Entity, index: string): Promise<void> {
  const all = unbuiltIn(storage);
  const key = keyOf(entity, index);
  const unbuilt = all.get(key);
  if (!unbuilt) return;
  if (now() - unbuilt.lookedAt >= LOOK_AGAIN_MS) {
    unbuilt.lookedAt = now();
    // Without an answer, the index counts as not built.
    if (await inProcess(unbuilt.isBuilt).catch(() => false)) {
      all.delete(key);
      return;
    }
  }
  throw new RowkeyError(
    'not-built',
    `The index ${index} of ${entity.name} is not built from the existing entities yet. An operator builds it: ${unbuilt.command}`,
  );
}
