/**
 * Executable specification of the move of one slot between storage accounts A and B (docs/accounts.md): visits every state of a world
 * with one partition of one row, two writers, a reader, and a mover that may die, lose replies, abort, and move back.
 *   node test/model/move.ts [script] [broken rule]
 *
 * Time is not counted. A wait of the mover ends once nothing is left that the wait outlasts: maps whose lease has ended, and requests
 * that storage executes late. Until then such requests execute at any moment, or never.
 *
 * The partition may get a layer: slots of its own (lib/storage/slots.ts). The row of an account that has the layer says what it owns of it;
 * else the account owns of it what it owns of the slot of all. A mover carves the layer in one account after the other, moves either slot,
 * and removes the layer. It may carve a part of the layer that has the partition in the same way, with a slot of its own, and joins both again.
 *
 * In every state, a read at the owner returns a write at least as new as each acknowledged write and each value that was read. There is
 * never a second owner, and from every state the move can end. Each rule of `RULES`, dropped alone, breaks one of these.
 */

import { copyOf, type Explored, exploreStates, type Found, printExplored } from './explore.ts';

type Name = 'A' | 'B';
interface Slot {
  phase: 'none' | 'rest' | 'fencing' | 'draining' | 'gone';
  move: number;
}
/** What an account's own row says of the slot, of that of the layer, and of that of the part of the layer. Each change of it is a compare-and-swap under `version`. */
interface Owned extends Slot {
  layer: Slot | null;
  part: Slot | null;
  version: number;
}
type Level = 'base' | 'layer' | 'part';
const LEVELS: readonly Level[] = ['base', 'layer', 'part'];
/** One row, 0 if absent; and of which moves the partition has a fence row, and a mark that it was opened or sealed. */
interface Partition {
  value: number;
  fences: number[];
  marks: number[];
}
/** What a process read of the slot of the partition. */
interface Known extends Slot {
  version: number;
  /** Where it is registered. */
  level: Level;
  account: Name;
}
interface Writer {
  step: 'map' | 'put' | 'register' | 'look' | 'open' | 'done' | 'dead';
  value: number;
  known: Known | null;
}
interface Reader {
  step: 'map' | 'read' | 'verify';
  left: number;
  known: Known | null;
  /** The value that was read and the oldest write that it may be. */
  found: number;
  least: number;
}
interface Mover {
  step: keyof typeof MOVER | 'idle' | 'dead';
  move: number;
  from: Name;
  level: Level;
  plan: Request | null;
}
/** A request on its way, which executes late or never. `move` is that of its fence, 0 for none. */
type Request = { isOfDead?: boolean } & (
  | { kind: 'put'; by: 'writer'; at: Name; value: number; move: number; version: number }
  | { kind: 'register' | 'open'; by: 'writer'; at: Name; move: number; version: number; level: Level }
  | { kind: 'mark' | 'unfence'; by: 'mover'; at: Name; move: number }
  | { kind: 'copy'; by: 'mover'; at: Name; value: number }
  | {
      kind: 'phase';
      by: 'mover' | 'writer';
      at: Name;
      level: Level;
      phase: Slot['phase'];
      move: number;
      version: number;
    }
  /** The whole row as it was read, with the layer or without it. */
  | { kind: 'layer'; by: 'mover'; at: Name; row: Omit<Owned, 'version'>; version: number }
);

interface State {
  owned: Record<Name, Owned>;
  partitions: Record<Name, Partition>;
  /** The moves in whose registry the partition is: negative for that of the slot of the layer or its part. */
  registry: number[];
  writers: Writer[];
  reader: Reader;
  mover: Mover;
  late: Request[];
  /** Values in the order in which they were written, and the index of the newest that was acknowledged or read. */
  written: number[];
  least: number;
  left: {
    moves: number;
    crashes: number;
    moverCrashes: number;
    lost: number;
    aborts: number;
    cleans: number;
    opens: number;
    accepts: number;
    carves: number;
    removes: number;
    splits: number;
    joins: number;
  };
}

/** What each broken rule drops. */
export const RULES = {
  noWait: 'the mover does not wait until unfenced writes are over',
  noWaitForReads: 'the mover waits for unfenced writes, and not for reads',
  noWaitForFences: 'the mover waits for unfenced writes, and not for those of an earlier move',
  noFence: 'a write carries no fence',
  noSecondLook: 'a partition is opened without a second look at the phase',
  lateRegistry: 'a partition is registered after it was opened',
  noMark: 'a partition can be opened again after it was sealed',
  noDraining: 'partitions are sealed while others can be opened',
  sealAfterCopy: 'a partition is copied before it is sealed',
  unfenceFirst: 'a partition is sealed by the deletion of the fence, then marked',
  noLastCopy: 'a partition that was opened is not copied again',
  noDelete: 'a copy deletes nothing',
  noSettling: 'the target accepts while a copy with a lost reply is on its way',
  blindSwitch: 'the mover lets a slot go that a writer has opened again',
  blindPhase: 'a phase is written without a condition',
  blindAccept: 'a process gives a slot to the target by what it read before, without a condition',
  noTakeOverWait: 'a mover takes over without a wait',
  earlyAccept: 'the target accepts before the source lets go',
  noVerify: 'a read of a moving slot is not verified',
  verifyAnyMove: 'a read is verified by the owner, and not by the move',
  sameMove: 'a second attempt has the id of the first one',
  carveInMove: 'a layer is carved while a slot moves',
  halfCarved: 'a move begins while an account lacks the layer',
  fixedLayers: 'a process does not learn the layers from the row that it uses',
  removeApart: 'a layer is removed whose slots are elsewhere',
  partOfBase: 'a row without the part of a layer says of it what it says of the slot of all',
  joinApart: 'a part is joined with its layer whose slots are elsewhere',
} as const;
export type Rule = keyof typeof RULES;

export interface Script {
  /** The value at the start; 0 for a new partition. */
  initial: 0 | 1;
  /** What each writer writes: a value, or 0 to delete. */
  writes: readonly number[];
  reads?: number;
  moves?: number;
  crashes?: number;
  moverCrashes?: number;
  lost?: number;
  aborts?: number;
  cleans?: number;
  /** How often a writer opens a draining slot again. */
  opens?: number;
  /** How often a process gives a slot that its source has let go to the target. */
  accepts?: number;
  carves?: number;
  removes?: number;
  splits?: number;
  joins?: number;
}

const other = (name: Name): Name => (name === 'A' ? 'B' : 'A');
const isOwner = ({ phase }: Slot) => phase === 'rest' || phase === 'fencing' || phase === 'draining';
function slotAt(owned: Owned, level: Level, broken?: Rule): Slot {
  if (level === 'part') return owned.part ?? (broken === 'partOfBase' ? owned : slotAt(owned, 'layer'));
  return level === 'layer' ? (owned.layer ?? owned) : owned;
}
/** The slots that the rows of the accounts have. */
const levelsOf = ({ A }: State['owned']) =>
  LEVELS.filter((level) => level === 'base' || (level === 'layer' ? A.layer : A.part) !== null);
const ownerAt = ({ owned }: State, level: Level, broken?: Rule): Name | undefined =>
  (['A', 'B'] as const).find((name) => isOwner(slotAt(owned[name], level, broken)));
/** The slot of the partition, by the newest layers that any account has. */
const levelOf = ({ A, B }: State['owned'], broken?: Rule): Level =>
  broken === 'fixedLayers' ? 'base' : A.part || B.part ? 'part' : 'layer';
/** The owner of the partition. */
const ownerOf = (state: State, broken?: Rule) => ownerAt(state, levelOf(state.owned, broken), broken);

function initialState(script: Script): State {
  const {
    initial,
    writes,
    reads = 0,
    moves = 1,
    crashes = 0,
    moverCrashes = 0,
    lost = 0,
    aborts = 0,
    cleans = 0,
    opens = 0,
    accepts = 0,
    carves = 0,
    removes = 0,
    splits = 0,
    joins = 0,
  } = script;
  const partition = (value: number): Partition => ({ value, fences: [], marks: [] });
  return {
    owned: {
      A: { phase: 'rest', move: 0, layer: null, part: null, version: 0 },
      B: { phase: 'none', move: 0, layer: null, part: null, version: 0 },
    },
    partitions: { A: partition(initial), B: partition(0) },
    registry: [],
    writers: writes.map((value) => ({ step: 'map', value, known: null })),
    reader: { step: 'map', left: reads, known: null, found: 0, least: 0 },
    mover: { step: 'idle', move: 0, from: 'A', level: 'base', plan: null },
    late: [],
    written: [initial],
    least: 0,
    left: { moves, crashes, moverCrashes, lost, aborts, cleans, opens, accepts, carves, removes, splits, joins },
  };
}

const add = (to: number[], item: number) => {
  if (!to.includes(item)) to.push(item);
};

/** Executes a request in storage. False if its condition does not hold. */
function execute(state: State, request: Request, broken?: Rule): boolean {
  const partition = state.partitions[request.at];
  switch (request.kind) {
    case 'put':
      if (request.move && broken !== 'noFence' && !partition.fences.includes(request.move)) return false;
      state.written.push(request.value);
      partition.value = request.value;
      return true;
    case 'copy':
      partition.value = request.value;
      return true;
    case 'register':
      add(state.registry, registryOf(request));
      return true;
    case 'open':
      if (broken !== 'noMark' && partition.marks.includes(request.move)) return false;
      add(partition.marks, request.move);
      add(partition.fences, request.move);
      return true;
    case 'mark':
      add(partition.marks, request.move);
      return true;
    case 'unfence':
      partition.fences = partition.fences.filter((move) => move !== request.move);
      return true;
    case 'phase': {
      const owned = state.owned[request.at];
      const isBlind = broken === 'blindPhase' || (broken === 'blindAccept' && request.by === 'writer');
      if (!isBlind && owned.version !== request.version) return false;
      owned.version += 1;
      Object.assign(slotAt(owned, request.level), { phase: request.phase, move: request.move });
      return true;
    }
    case 'layer': {
      const owned = state.owned[request.at];
      if (broken !== 'blindPhase' && owned.version !== request.version) return false;
      Object.assign(owned, copyOf(request.row), { version: owned.version + 1 });
      return true;
    }
  }
}

const registryOf = ({ move, level }: { readonly move: number; readonly level: Level }) =>
  ({ base: move, layer: -move, part: -100 - move })[level];

function look(state: State, account: Name, broken?: Rule): Known {
  const owned = state.owned[account];
  const own = owned.part ? 'part' : owned.layer ? 'layer' : 'base';
  const level = broken === 'fixedLayers' ? 'base' : own;
  const { phase, move } = slotAt(owned, level);
  return { phase, move, level, version: owned.version, account };
}
const isCurrent = (state: State, known: Known) => state.owned[known.account].version === known.version;
function isStill(state: State, { account, move }: Known, phases: readonly string[], broken?: Rule): boolean {
  const now = look(state, account, broken);
  return now.move === move && phases.includes(now.phase);
}

/** The request that a writer sends in its step. */
function requestOf({ step, known, value }: Writer): Request | undefined {
  if (!known) return undefined;
  const at = known.account;
  const move = known.phase === 'rest' ? 0 : known.move;
  if (step === 'put') return { kind: 'put', by: 'writer', at, value, move, version: known.version };
  const { version, level } = known;
  if (step === 'register' || step === 'open') return { kind: step, by: 'writer', at, move, version, level };
  return undefined;
}

function acknowledge(state: State, index: number): void {
  state.least = Math.max(state.least, index);
}

/** One step of a live writer. False if it has to wait. */
function stepWriter(state: State, writer: Writer, broken?: Rule): boolean {
  const { step, known } = writer;
  const request = requestOf(writer);
  if (step === 'map') {
    const account = ownerOf(state, broken);
    const found = account && look(state, account, broken);
    if (!found || found.phase === 'draining') return false;
    Object.assign(writer, { known: found, step: 'put' });
    return true;
  }
  if (!known) return false;
  if (step === 'look') {
    const isFencing = isStill(state, known, ['fencing'], broken);
    Object.assign(writer, isFencing ? { step: 'open' } : { step: 'map', known: null });
    return true;
  }
  if (!request) return false;
  const isDone = execute(state, request, broken);
  if (step === 'put' && isDone) {
    acknowledge(state, state.written.length - 1);
    Object.assign(writer, { step: 'done', known: null });
  } else if (step === 'put') writer.step = broken === 'lateRegistry' ? 'look' : 'register';
  else if (step === 'register')
    writer.step = broken === 'noSecondLook' ? 'open' : broken === 'lateRegistry' ? 'put' : 'look';
  else if (isDone) writer.step = broken === 'lateRegistry' ? 'register' : 'put';
  else if (state.partitions[known.account].fences.includes(known.move)) writer.step = 'put';
  else Object.assign(writer, { step: 'map', known: null });
  return true;
}

const isAcceptable = (state: State, value: number, least: number) => state.written.indexOf(value, least) !== -1;

/** One step of the reader. A message if it read something too old. */
function stepReader(state: State, broken?: Rule): string | boolean {
  const { reader } = state;
  if (reader.step === 'map') {
    const account = ownerOf(state, broken);
    if (!account) return false;
    Object.assign(reader, { known: look(state, account, broken), step: 'read' });
    return true;
  }
  const { known } = reader;
  if (!known) return false;
  if (reader.step === 'read') {
    Object.assign(reader, { found: state.partitions[known.account].value, least: state.least, step: 'verify' });
    if (known.phase !== 'rest' && broken !== 'noVerify') return true;
  } else if (
    broken === 'verifyAnyMove'
      ? !isOwner(slotAt(state.owned[known.account], 'part'))
      : !isStill(state, known, ['fencing', 'draining'], broken)
  ) {
    Object.assign(reader, { step: 'map', known: null, found: 0, least: 0 });
    return true;
  }
  const { found, least } = reader;
  Object.assign(reader, { step: 'map', known: null, left: reader.left - 1, found: 0, least: 0 });
  if (!isAcceptable(state, found, least)) return `a read returned ${found}, which is too old`;
  acknowledge(state, state.written.indexOf(found, least));
  return true;
}

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
} as const;

type MoverStep = keyof typeof MOVER;

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

function* movesOf(state: State, broken?: Rule): Generator<Found<State>> {
  const { mover, left } = state;
  if (mover.step === 'idle') {
    const isCarved = state.owned.A.layer !== null;
    for (const level of levelsOf(state.owned)) {
      const from = ownerAt(state, level);
      if (left.moves === 0 || !from) continue;
      const next = copyOf(state);
      next.left.moves -= 1;
      const move = broken === 'sameMove' ? 1 : mover.move + 1;
      Object.assign(next.mover, { step: 'start', from, level, move });
      yield [`mover begins${level === 'base' ? '' : ` with the ${level}`}`, next];
    }
    const from = ownerOf(state);
    if (left.carves > 0 && !isCarved) {
      const next = copyOf(state);
      next.left.carves -= 1;
      next.mover.step = 'carve';
      yield ['mover carves', next];
    }
    const isSplit = state.owned.A.part !== null;
    if (left.splits > 0 && isCarved && !isSplit) {
      const next = copyOf(state);
      next.left.splits -= 1;
      next.mover.step = 'split';
      yield ['mover splits the layer', next];
    }
    if (left.joins > 0 && isSplit && (broken === 'joinApart' || !isElsewhere(state, 'part', 'layer'))) {
      const next = copyOf(state);
      next.left.joins -= 1;
      next.mover.step = 'join';
      yield ['mover joins the layers', next];
    }
    // The partitions of the rest of the layer come to the slot of all.
    if (left.removes > 0 && isCarved && (broken === 'removeApart' || !isElsewhere(state, 'layer', 'base'))) {
      const next = copyOf(state);
      next.left.removes -= 1;
      next.mover.step = 'remove';
      yield ['mover removes the layer', next];
    }
    if (left.cleans > 0 && mover.move > 0 && from === other(mover.from)) {
      const next = copyOf(state);
      next.left.cleans -= 1;
      next.mover.step = 'look';
      yield ['mover cleans up', next];
    }
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

function* nextStates(state: State, broken?: Rule): Generator<Found<State>> {
  if (state.left.opens > 0 && slotAt(state.owned[state.mover.from], state.mover.level).phase === 'draining') {
    const next = copyOf(state);
    next.left.opens -= 1;
    const { from, level, move } = state.mover;
    const { version } = state.owned[from];
    execute(next, { kind: 'phase', by: 'writer', at: from, level, phase: 'rest', move, version }, broken);
    yield ['a writer opens the slot again', next];
  }
  const { from, level, move } = state.mover;
  const target = other(from);
  const { phase, move: last } = slotAt(state.owned[from], level);
  if (state.left.accepts > 0 && phase === 'gone' && last === move && !isOwner(slotAt(state.owned[target], level))) {
    const next = copyOf(state);
    next.left.accepts -= 1;
    const { version } = state.owned[target];
    next.late.push({ kind: 'phase', by: 'writer', at: target, level, phase: 'rest', move, version });
    yield ['a process gives the slot to the target', next];
  }
  for (const [index, request] of state.late.entries())
    for (const isExecuted of [true, false]) {
      const next = copyOf(state);
      next.late.splice(index, 1);
      if (isExecuted) execute(next, request, broken);
      yield [`late ${request.kind} at ${request.at} ${isExecuted ? 'executes' : 'is never executed'}`, next];
    }
  for (const [index, writer] of state.writers.entries()) {
    const request = requestOf(writer);
    if (request && state.left.crashes > 0) {
      const next = copyOf(state);
      next.left.crashes -= 1;
      next.late.push(request);
      Object.assign(next.writers[index] ?? {}, { step: 'dead', known: null });
      yield [`writer ${index} dies in ${writer.step}`, next];
    }
    // A map may be used until its lease ends.
    if (writer.step === 'put' && writer.known?.phase === 'rest' && !isCurrent(state, writer.known)) {
      const next = copyOf(state);
      Object.assign(next.writers[index] ?? {}, { step: 'map', known: null });
      yield [`the lease of writer ${index} ends`, next];
    }
    if (writer.step === 'done' || writer.step === 'dead') continue;
    const next = copyOf(state);
    const stepped = next.writers[index];
    if (stepped && stepWriter(next, stepped, broken)) yield [`writer ${index}: ${writer.step}`, next];
  }
  if (state.reader.left > 0) {
    const read = copyOf(state);
    const result = stepReader(read, broken);
    if (result) yield [`reader: ${state.reader.step}`, read, typeof result === 'string' ? result : ''];
  }
  yield* movesOf(state, broken);
}

function violationIn(state: State, broken?: Rule): string | undefined {
  for (const level of LEVELS)
    if (isOwner(slotAt(state.owned.A, level, broken)) && isOwner(slotAt(state.owned.B, level, broken)))
      return 'the slot has two owners';
  const owner = ownerOf(state);
  if (owner && !isAcceptable(state, state.partitions[owner].value, state.least))
    return `${owner} has ${state.partitions[owner].value}, which is older than what was acknowledged`;
  return undefined;
}

const isOver = ({ mover, writers, reader, late, left }: State) =>
  mover.step === 'idle' &&
  left.moves === 0 &&
  late.length === 0 &&
  reader.left === 0 &&
  writers.every(({ step }) => step === 'done' || step === 'dead');

/** Visits the states of a script. */
export const explore = (
  script: Script,
  { broken, limit }: { broken?: Rule | undefined; limit?: number } = {},
): Explored =>
  exploreStates({
    first: initialState(script),
    *nextStates(state) {
      for (const [what, next, violation] of nextStates(state, broken))
        yield [what, next, violation || violationIn(next, broken) || ''];
    },
    isOver,
    limit,
  });

export const SCRIPTS = {
  existing: { initial: 1, writes: [2, 0], crashes: 1, moverCrashes: 1 },
  new: { initial: 0, writes: [2, 3], crashes: 1, moverCrashes: 1 },
  reads: { initial: 1, writes: [2], reads: 2, moverCrashes: 1 },
  readsBack: { initial: 1, writes: [2], reads: 2, moves: 2 },
  lost: { initial: 1, writes: [2, 0], lost: 1, moverCrashes: 1 },
  aborts: { initial: 1, writes: [2, 0], crashes: 1, moves: 2, aborts: 1 },
  abortsLost: { initial: 1, writes: [2], lost: 1, moves: 2, aborts: 1 },
  back: { initial: 1, writes: [2, 0], crashes: 1, moves: 2 },
  backLost: { initial: 1, writes: [2, 0], lost: 1, moves: 2, cleans: 1 },
  backClean: { initial: 1, writes: [2], moverCrashes: 1, moves: 2, cleans: 1 },
  opens: { initial: 1, writes: [2], moverCrashes: 1, lost: 1, moves: 2, opens: 1 },
  accepts: { initial: 1, writes: [2], reads: 1, moverCrashes: 1, moves: 2, accepts: 1 },
  carves: { initial: 1, writes: [2], moverCrashes: 1, moves: 1, carves: 1 },
  carvesLost: { initial: 1, writes: [2], lost: 1, moves: 2, carves: 1 },
  carvesReads: { initial: 1, writes: [2], reads: 1, moves: 1, carves: 1, removes: 1 },
  splits: { initial: 1, writes: [2], moverCrashes: 1, moves: 2, carves: 1, splits: 1 },
  splitsReads: { initial: 1, writes: [2], reads: 1, moves: 2, carves: 1, splits: 1, joins: 1 },
  splitsRemoves: { initial: 1, writes: [2], moverCrashes: 1, moves: 2, carves: 1, splits: 1, joins: 1, removes: 1 },
  carvesBack: { initial: 1, writes: [2], moverCrashes: 1, moves: 2, carves: 1, removes: 1 },
  /** Every fault in one script. Takes minutes. */
  all: { initial: 1, writes: [2, 0], reads: 1, crashes: 1, moverCrashes: 1, lost: 1, moves: 2, aborts: 1 },
} satisfies Readonly<Record<string, Script>>;

if (import.meta.main) {
  const [only, broken] = process.argv.slice(2) as [keyof typeof SCRIPTS | undefined, Rule | undefined];
  const scripts = only ? [only] : (Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[]).filter((name) => name !== 'all');
  printExplored(scripts, (name) => explore(SCRIPTS[name], { broken, limit: Number(process.env.LIMIT ?? 2_000_000) }));
}
