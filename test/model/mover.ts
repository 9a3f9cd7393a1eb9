import { copyOf, type Found } from './explore.ts';
import {
  execute,
  isOwner,
  type Level,
  levelsOf,
  type Mover,
  type MoverStep,
  type Name,
  other,
  ownerAt,
  ownerOf,
  type Request,
  type Rule,
  registryOf,
  type Slot,
  type State,
  slotAt,
} from './move-world.ts';

/** True while a process acts on a map, or storage has a request, that the wait of a mover outlasts. */
function isUnderWay(state: State, broken?: Rule): boolean {
  const { owned, mover, late } = state;
  const isOld = (move: number, version: number, at: Name) =>
    owned[at].version !== version && (move === 0 || (move !== mover.move && broken !== 'noWaitForFences'));
  return (
    // A phase that a process writes has a condition.
    late.some(
      (request) =>
        request.by === 'mover' || (request.kind !== 'phase' && isOld(request.move, request.version, request.at)),
    ) ||
    state.writers.some(
      ({ known }) => known && isOld(known.phase === 'rest' ? 0 : known.move, known.version, known.account),
    ) ||
    (broken !== 'noWaitForReads' &&
      state.reader.known?.phase === 'rest' &&
      isOld(0, state.reader.known.version, state.reader.known.account))
  );
}

/** True while a copy of this mover is on its way. What a dead one sent is over when another takes over. */
const isCopying = (state: State) => state.late.some(({ kind, isOfDead }) => kind === 'copy' && !isOfDead);

/** What makes the row at the target that of the source; null if it is. */
function difference({ partitions, owned, mover }: State, from: Name, broken?: Rule): Request | null {
  if (mover.level !== levelsOf(owned).at(-1)) return null;
  const { value } = partitions[from];
  if (value === partitions[other(from)].value || (value === 0 && broken === 'noDelete')) return null;
  return { kind: 'copy', by: 'mover', at: other(from), value };
}

const toPhase = (state: State, at: Name, phase: Slot['phase']): Request => ({
  kind: 'phase',
  by: 'mover',
  at,
  level: state.mover.level,
  phase,
  move: state.mover.move,
  version: state.owned[at].version,
});

/** False if a writer that waited for too long has opened the slot again. */
function isMoving({ owned, mover }: State, broken?: Rule): boolean {
  if (broken === 'blindSwitch' || broken === 'earlyAccept' || broken === 'noDraining') return true;
  const { phase, move } = slotAt(owned[mover.from], mover.level);
  return move === mover.move && phase !== 'rest';
}

/** Writes the row of an account again: with the layer, whose slot is in the same state as that of all, or without it. */
function toLayer({ owned }: State, at: Name, isCarved: boolean): Request | null {
  const { phase, move, layer, part, version } = owned[at];
  if ((layer !== null) === isCarved) return null;
  return {
    kind: 'layer',
    by: 'mover',
    at,
    row: { phase, move, layer: isCarved ? { phase, move } : null, part },
    version,
  };
}

/** The same for the part, whose slot is in the same state as that of the layer. */
function toPart({ owned }: State, at: Name, isSplit: boolean): Request | null {
  const { part, version, ...rest } = owned[at];
  if ((part !== null) === isSplit) return null;
  const { phase, move } = slotAt(owned[at], 'layer');
  return { kind: 'layer', by: 'mover', at, row: { ...rest, part: isSplit ? { phase, move } : null }, version };
}

/** A layer is carved in A first, and removed from A first: so the rows say what was begun. */
const isHalf = ({ owned: { A, B } }: State, level: 'layer' | 'part') => (A[level] === null) !== (B[level] === null);
const isElsewhere = ({ owned }: State, level: Level, other: Level) =>
  [owned.A, owned.B].some((each) => isOwner(slotAt(each, level)) !== isOwner(slotAt(each, other)));

/**
 * The steps of a mover. `request` is what the step sends, if anything; undefined if it has to wait. `next` is the step after it. Each step
 * reads what it needs, so it can be repeated.
 */
const MOVER = {
  start: {
    request: (state: State) => toPhase(state, state.mover.from, 'fencing'),
    next: 'wait',
  },
  wait: {
    request: (state: State, broken?: Rule) => (broken !== 'noWait' && isUnderWay(state, broken) ? undefined : null),
    next: 'compare',
  },
  compare: {
    request: (state: State, broken?: Rule) => {
      state.mover.plan = difference(state, state.mover.from, broken);
      return null;
    },
    next: 'copy',
  },
  copy: { request: ({ mover }: State) => mover.plan, next: 'drain' },
  drain: {
    request: (state: State, broken?: Rule) => {
      if (broken === 'noDraining') return null;
      if (!isMoving(state, broken)) return 'over';
      return isCopying(state) && broken !== 'noSettling' ? undefined : toPhase(state, state.mover.from, 'draining');
    },
    next: 'list',
  },
  list: { request: () => null, next: 'mark' },
  mark: {
    request: ({ mover: { from, move } }: State): Request => ({ kind: 'mark', by: 'mover', at: from, move }),
    next: 'unfence',
  },
  unfence: {
    request: ({ mover: { from, move } }: State): Request => ({ kind: 'unfence', by: 'mover', at: from, move }),
    next: 'compareAgain',
  },
  compareAgain: {
    request: (state: State, broken?: Rule) => {
      state.mover.plan = broken === 'noLastCopy' ? null : difference(state, state.mover.from, broken);
      return null;
    },
    next: 'copyAgain',
  },
  copyAgain: { request: ({ mover }: State) => mover.plan, next: 'letGo' },
  letGo: {
    request: (state: State, broken?: Rule) => {
      if (!isMoving(state, broken)) return 'over';
      return isCopying(state) && broken !== 'noSettling' ? undefined : toPhase(state, state.mover.from, 'gone');
    },
    next: 'accept',
  },
  accept: { request: (state: State) => toPhase(state, other(state.mover.from), 'rest'), next: 'idle' },
  /** After the switch: the row of the source is read, then deleted. */
  look: {
    request: (state: State) => {
      const { from } = state.mover;
      state.mover.plan = state.partitions[from].value === 0 ? null : { kind: 'copy', by: 'mover', at: from, value: 0 };
      return null;
    },
    next: 'clean',
  },
  clean: { request: ({ mover }: State) => mover.plan, next: 'idle' },
  carve: { request: (state: State) => toLayer(state, 'A', true), next: 'carveOther' },
  carveOther: { request: (state: State) => toLayer(state, 'B', true), next: 'idle' },
  remove: { request: (state: State) => toLayer(state, 'A', false), next: 'removeOther' },
  removeOther: { request: (state: State) => toLayer(state, 'B', false), next: 'idle' },
  split: { request: (state: State) => toPart(state, 'A', true), next: 'splitOther' },
  splitOther: { request: (state: State) => toPart(state, 'B', true), next: 'idle' },
  join: { request: (state: State) => toPart(state, 'A', false), next: 'joinOther' },
  joinOther: { request: (state: State) => toPart(state, 'B', false), next: 'idle' },
} as const satisfies Readonly<Record<MoverStep, unknown>>;

function nextOf(state: State, step: MoverStep, broken?: Rule): Mover['step'] {
  if (step === 'list' && !state.registry.includes(registryOf(state.mover)))
    return broken === 'earlyAccept' ? 'accept' : 'letGo';
  if (broken === 'earlyAccept') {
    if (step === 'copyAgain') return 'accept';
    if (step === 'accept') return 'letGo';
    if (step === 'letGo') return 'idle';
  }
  if (broken === 'sealAfterCopy') {
    if (step === 'list') return 'compareAgain';
    if (step === 'copyAgain') return 'mark';
    if (step === 'unfence') return 'letGo';
  }
  if (broken === 'unfenceFirst') {
    if (step === 'list') return 'unfence';
    if (step === 'unfence') return 'mark';
    if (step === 'mark') return 'compareAgain';
  }
  return MOVER[step].next;
}

/** Where a mover continues that knows only what the accounts say. */
function takeOver(state: State, broken?: Rule): void {
  const { mover, owned } = state;
  mover.plan = null;
  if (isHalf(state, 'layer') && broken !== 'halfCarved') {
    mover.step = owned.A.layer ? 'carve' : 'remove';
    return;
  }
  if (isHalf(state, 'part') && broken !== 'halfCarved') {
    mover.step = owned.A.part ? 'split' : 'join';
    return;
  }
  for (const level of levelsOf(owned))
    for (const name of ['A', 'B'] as const) {
      const { move, phase } = slotAt(owned[name], level);
      if (move === mover.move && phase !== 'rest') Object.assign(mover, { level, from: name });
    }
  const { phase, move } = slotAt(owned[mover.from], mover.level);
  const isOwned = isOwner(slotAt(owned[other(mover.from)], mover.level));
  if (phase === 'fencing') mover.step = 'wait';
  else if (phase === 'draining') mover.step = 'list';
  else if (phase === 'gone' && move === mover.move && !isOwned) mover.step = 'accept';
  else mover.step = 'idle';
}

/** A step after which a lost reply leaves the mover: it looks again, and repeats what was not executed. */
function afterLostReply(step: MoverStep): MoverStep {
  if (step === 'copy') return 'compare';
  if (step === 'copyAgain') return 'compareAgain';
  return step === 'clean' ? 'look' : step;
}

/** What a mover may do that has nothing to do. */
function* beginnings(state: State, broken?: Rule): Generator<Found<State>> {
  const { mover, left } = state;
  const begin = (spent: keyof State['left'], change: Partial<Mover>) => {
    const next = copyOf(state);
    next.left[spent] -= 1;
    Object.assign(next.mover, change);
    return next;
  };
  for (const level of levelsOf(state.owned)) {
    const from = ownerAt(state, level);
    if (left.moves === 0 || !from) continue;
    const move = broken === 'sameMove' ? 1 : mover.move + 1;
    const what = `mover begins${level === 'base' ? '' : ` with the ${level}`}`;
    yield [what, begin('moves', { step: 'start', from, level, move })];
  }
  const isCarved = state.owned.A.layer !== null;
  const isSplit = state.owned.A.part !== null;
  if (left.carves > 0 && !isCarved) yield ['mover carves', begin('carves', { step: 'carve' })];
  if (left.splits > 0 && isCarved && !isSplit) yield ['mover splits the layer', begin('splits', { step: 'split' })];
  if (left.joins > 0 && isSplit && (broken === 'joinApart' || !isElsewhere(state, 'part', 'layer')))
    yield ['mover joins the layers', begin('joins', { step: 'join' })];
  // The partitions of the rest of the layer come to the slot of all.
  if (left.removes > 0 && isCarved && (broken === 'removeApart' || !isElsewhere(state, 'layer', 'base')))
    yield ['mover removes the layer', begin('removes', { step: 'remove' })];
  if (left.cleans > 0 && mover.move > 0 && ownerOf(state) === other(mover.from))
    yield ['mover cleans up', begin('cleans', { step: 'look' })];
}

export function* movesOf(state: State, broken?: Rule): Generator<Found<State>> {
  const { mover, left } = state;
  if (mover.step === 'idle') {
    yield* beginnings(state, broken);
    return;
  }
  if (mover.step === 'dead') {
    if (broken !== 'noTakeOverWait' && state.late.some(({ by }) => by === 'mover')) return;
    const next = copyOf(state);
    if (broken === 'carveInMove' && left.carves > 0 && !state.owned.A.layer) {
      const carving = copyOf(state);
      carving.left.carves -= 1;
      carving.left.moverCrashes += 1;
      Object.assign(carving.mover, { step: 'carve', plan: null });
      yield ['another mover carves', carving];
    }
    takeOver(next, broken);
    yield ['another mover takes over', next];
    return;
  }
  const { step } = mover;
  const next = copyOf(state);
  const request = MOVER[step].request(next, broken);
  if (request === 'over') {
    Object.assign(next.mover, { step: 'idle', plan: null });
    yield ['mover: the slot was opened again', next];
    return;
  }
  const { phase } = slotAt(state.owned[mover.from], mover.level);
  if (left.aborts > 0 && step !== 'start' && (phase === 'fencing' || phase === 'draining')) {
    const aborted = copyOf(state);
    aborted.left.aborts -= 1;
    execute(aborted, toPhase(aborted, mover.from, 'rest'));
    if (broken === 'sameMove') aborted.registry = [];
    Object.assign(aborted.mover, { step: 'idle', plan: null });
    yield ['mover aborts', aborted];
    const target = other(mover.from);
    if (slotAt(state.owned[target], mover.level).phase !== 'gone') {
      const deleted = copyOf(aborted);
      deleted.partitions[target].value = 0;
      yield ['mover aborts and deletes what it has copied', deleted];
      if (left.lost > 0) {
        const late = copyOf(deleted);
        late.left.lost -= 1;
        late.late.push({ kind: 'copy', by: 'mover', at: target, value: 0 });
        yield ['mover aborts, and deletes late what it has copied', late];
      }
    }
  }
  if (request === undefined) return;
  if (request && left.moverCrashes > 0) {
    const crashed = copyOf(next);
    crashed.left.moverCrashes -= 1;
    crashed.late.push({ ...request, isOfDead: true });
    Object.assign(crashed.mover, { step: 'dead', plan: null });
    yield [`mover dies in ${step}`, crashed];
  }
  if (request && left.lost > 0) {
    const lost = copyOf(next);
    lost.left.lost -= 1;
    lost.late.push(request);
    Object.assign(lost.mover, { step: afterLostReply(step), plan: null });
    yield [`the reply of ${step} is lost`, lost];
  }
  // A phase that a late request has written already is not written again.
  const isThere = request?.kind === 'phase' && isPhase(state, request);
  const isDone = !request || isThere || execute(next, request, broken);
  next.mover.step = isDone ? nextOf(state, step, broken) : afterLostReply(step);
  if (next.mover.step !== 'copy' && next.mover.step !== 'copyAgain' && next.mover.step !== 'clean')
    next.mover.plan = null;
  yield [`mover: ${step}${step.startsWith('co') && !request ? ' (no difference)' : ''}`, next];
}

function isPhase(state: State, { at, level, phase, move }: Request & { kind: 'phase' }): boolean {
  const now = slotAt(state.owned[at], level);
  return now.phase === phase && now.move === move;
}
