import { hash } from 'node:crypto';
import type { Suspicion } from '../define/declaration/finding.ts';

/**
 * What a check has found and not repaired. Both sides of a difference may show it, and the total of a contribution that is missing is
 * not the sum of the others: such a difference is one finding, that of the side which is checked first.
 */
export interface KnownFindings {
  /** True if an earlier finding explains this one. */
  explains(suspicion: Suspicion): boolean;
  add(suspicion: Suspicion): void;
  /** The form in the position of the next page. */
  readonly texts: readonly string[];
  /** True if there were more findings than a position has room for: a total that looks wrong may then be right. */
  readonly isFull: boolean;
}

/** Characters of a hash. */
const LENGTH = 8;
/** A position is part of a URL. */
const MOST = 150;
/** Only the check of the entity shows these, and no total follows from them: they would take the room of others. */
const SHOWN_ONCE: readonly Suspicion['kind'][] = [
  'dangling',
  'failed-check',
  'invalid',
  'lost-blob',
  'not-derived',
  'stale-copy',
  'unfinished',
  'unreachable',
  'unreadable',
];

export function createKnownFindings(texts: readonly string[] = []): KnownFindings {
  const known = new Set(texts);
  const isFull = () => known.size >= MOST;
  return {
    explains(suspicion) {
      const { kind } = suspicion;
      if (isOfSum(kind)) return known.has(idOf(suspicion));
      return known.has(idOf(suspicion)) && !known.has(idOf(suspicion, kind));
    },
    add(suspicion) {
      const { of, sum, kind } = suspicion;
      if (!sum && SHOWN_ONCE.includes(kind)) return;
      const ids = [idOf(suspicion), idOf(suspicion, kind), ...(sum ? [idOf({ of, ...sum })] : [])];
      if (!isFull()) for (const id of ids) known.add(id);
    },
    get texts() {
      return [...known];
    },
    get isFull() {
      return isFull();
    },
  };
}

/** True for a finding on what several entities add up to. */
function isOfSum(kind: Suspicion['kind']): boolean {
  return kind === 'wrong-total' || kind === 'wrong-count';
}

function idOf({ of, table, partition, row, member }: Omit<Suspicion, 'kind'>, kind?: string): string {
  return hash('sha256', JSON.stringify([of, table, partition, row, member, kind]), 'base64url').slice(0, LENGTH);
}
