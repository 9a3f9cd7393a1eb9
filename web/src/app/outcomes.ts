/** How an action ended whose page was left meanwhile. */
interface Outcome {
  readonly id: number;
  /** The name of the action, such as “Delete the row”. */
  readonly action: string;
  /** Absent if the action succeeded. */
  readonly error?: unknown;
  /** The page where the action began. */
  readonly page: { readonly title: string; readonly address: string };
}

/** The outcomes of a session that the user has not dismissed. */
export interface Outcomes {
  list(): readonly Outcome[];
  add(outcome: Omit<Outcome, 'id'>): void;
  dismiss(id: number): void;
  /** Calls `listener` after each change. Returns how to stop. */
  subscribe(listener: () => void): () => void;
}

export function createOutcomes(): Outcomes {
  let outcomes: readonly Outcome[] = [];
  let added = 0;
  const listeners = new Set<() => void>();
  const set = (changed: readonly Outcome[]) => {
    outcomes = changed;
    for (const listener of listeners) listener();
  };
  return {
    list: () => outcomes,
    add(outcome) {
      added += 1;
      set([...outcomes, { ...outcome, id: added }]);
    },
    dismiss: (id) => set(outcomes.filter((outcome) => outcome.id !== id)),
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
