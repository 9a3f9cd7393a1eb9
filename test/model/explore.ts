export interface Explored {
  readonly states: number;
  readonly isComplete: boolean;
  readonly violation?: string;
  readonly trace?: readonly string[];
}

export type Found<State> = readonly [what: string, next: State, violation?: string];

interface Model<State> {
  readonly first: State;
  readonly nextStates: (state: State) => Iterable<Found<State>>;
  readonly isOver: (state: State) => boolean;
  /** States with the same key are visited once. */
  readonly keyOf?: (state: State) => string;
  /** True to follow each path to its end first, which finds a violation sooner where it needs many steps. */
  readonly isDepthFirst?: boolean;
  readonly limit?: number | undefined;
}

/** Visits states, by default the nearest ones first, up to a violation or the limit. Fails if from one of them nothing can end. */
export function exploreStates<State>({
  first,
  nextStates,
  isOver,
  keyOf = JSON.stringify,
  isDepthFirst = false,
  limit = Number.POSITIVE_INFINITY,
}: Model<State>): Explored {
  const ids = new Map([[keyOf(first), 0]]);
  const open: (readonly [id: number, state: State])[] = [[0, first]];
  const cameFrom: (readonly [id: number, what: string])[] = [[-1, '']];
  const before: number[][] = [[]];
  const ends: number[] = [];
  const traceTo = (id: number): string[] => {
    const [previous, what] = cameFrom[id] ?? [-1, ''];
    return previous < 0 ? [] : [...traceTo(previous), what];
  };
  for (let at = 0; at < open.length; ) {
    const [id, state] = (isDepthFirst ? open.pop() : open[at]) as (typeof open)[0];
    // What was visited is not kept.
    if (!isDepthFirst) delete open[at++];
    if (isOver(state)) ends.push(id);
    for (const [what, next, violation] of nextStates(state)) {
      if (violation) return { states: ids.size, isComplete: false, violation, trace: [...traceTo(id), what] };
      const key = keyOf(next);
      let nextId = ids.get(key);
      if (nextId === undefined) {
        nextId = ids.size;
        ids.set(key, nextId);
        open.push([nextId, next]);
        cameFrom.push([id, what]);
        before.push([]);
      }
      before[nextId]?.push(id);
    }
    if (ids.size >= limit) return { states: ids.size, isComplete: false };
  }
  const canEnd = new Set(ends);
  for (const id of canEnd) for (const previous of before[id] ?? []) canEnd.add(previous);
  const stuck = before.findIndex((_, id) => !canEnd.has(id));
  if (stuck >= 0) return { states: ids.size, isComplete: true, violation: 'nothing can end', trace: traceTo(stuck) };
  return { states: ids.size, isComplete: true };
}

/** Copies states, which are small plain objects, several times faster than structuredClone does. */
export function copyOf<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  const copied: Record<string, unknown> = {};
  for (const name in value) copied[name] = copyOf(value[name]);
  return copied as T;
}

/** Prints what each script finds, with the steps to a violation. */
export function printExplored<Name extends string>(
  scripts: readonly Name[],
  explore: (script: Name) => Explored,
): void {
  for (const name of scripts) {
    const since = performance.now();
    const { states, isComplete, violation, trace = [] } = explore(name);
    const ms = Math.round(performance.now() - since);
    console.log(
      `${name}: ${states} states${isComplete ? '' : ', not all'}, ${ms} ms, ${violation ? `VIOLATION: ${violation}` : 'nothing is lost'}`,
    );
    for (const what of trace.filter(Boolean)) console.log(`  ${what}`);
  }
}
