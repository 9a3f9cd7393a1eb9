/**
 * Wing and Gong: whether some order of the operations on one key, in which each takes effect at a moment between its begin and its end,
 * explains all their results.
 */

/** An operation on one key. */
export interface Operation<State> {
  readonly begun: number;
  /** Infinity if nobody knows. */
  readonly ended: number;
  /** True if the operation may also have had no effect. */
  readonly isOptional: boolean;
  /** The state after it; undefined if its result contradicts the state. */
  apply(state: State): { readonly state: State } | undefined;
  readonly text: string;
}

export type Verdict = 'linearizable' | 'not linearizable' | 'undecided';

/** A history with many operations of an unknown outcome has too many orders. */
const MOST_VISITS = 20_000;

export function checkOrder<State>(
  operations: readonly Operation<State>[],
  first: State,
  nameState: (state: State) => string,
): Verdict {
  const sorted = operations.toSorted((one, other) => one.begun - other.begun);
  const visited = new Set<string>();
  let visits = 0;
  const isExplained = (done: readonly boolean[], state: State, latest: number): boolean => {
    const left = sorted.filter((_, index) => !done[index]);
    if (left.every(({ isOptional }) => isOptional)) return true;
    const name = `${done.map(Number).join('')} ${nameState(state)}`;
    if (visited.has(name)) return false;
    visited.add(name);
    visits += 1;
    if (visits > MOST_VISITS) return false;
    const soonest = Math.min(...left.filter(({ isOptional }) => !isOptional).map(({ ended }) => ended));
    return sorted.some((operation, index) => {
      if (done[index] || operation.begun > soonest || operation.ended < latest) return false;
      // One of several that are the same leads to the same orders as the first of them.
      if (sorted[index - 1] === operation && !done[index - 1]) return false;
      const after = operation.apply(state);
      return after !== undefined && isExplained(done.with(index, true), after.state, Math.max(latest, operation.begun));
    });
  };
  const found = isExplained(
    sorted.map(() => false),
    first,
    Number.NEGATIVE_INFINITY,
  );
  if (found) return 'linearizable';
  return visits > MOST_VISITS ? 'undecided' : 'not linearizable';
}
