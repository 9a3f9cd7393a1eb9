import { copyOf } from './explore.ts';

/** The accounts, requests and processes of the model of a move (move.ts), and how storage executes a request. */

export type Name = 'A' | 'B';
export interface Slot {
  phase: 'none' | 'rest' | 'fencing' | 'draining' | 'gone';
  move: number;
}
/** What an account's own row says of the slot, of that of the layer, and of that of the part of the layer. Each change of it is a compare-and-swap under `version`. */
interface Owned extends Slot {
  layer: Slot | null;
  part: Slot | null;
  version: number;
}
export type Level = 'base' | 'layer' | 'part';
export const LEVELS: readonly Level[] = ['base', 'layer', 'part'];
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
export interface Writer {
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
/** The steps of a mover, in the order of a move, then those that follow or precede one. */
export type MoverStep =
  | 'start'
  | 'wait'
  | 'compare'
  | 'copy'
  | 'drain'
  | 'list'
  | 'mark'
  | 'unfence'
  | 'compareAgain'
  | 'copyAgain'
  | 'letGo'
  | 'accept'
  | 'look'
  | 'clean'
  | 'carve'
  | 'carveOther'
  | 'remove'
  | 'removeOther'
  | 'split'
  | 'splitOther'
  | 'join'
  | 'joinOther';
export interface Mover {
  step: MoverStep | 'idle' | 'dead';
  move: number;
  from: Name;
  level: Level;
  plan: Request | null;
}
/** A request on its way, which executes late or never. `move` is that of its fence, 0 for none. */
export type Request = { isOfDead?: boolean } & (
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

export interface State {
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

export const other = (name: Name): Name => (name === 'A' ? 'B' : 'A');
export const isOwner = ({ phase }: Slot) => phase === 'rest' || phase === 'fencing' || phase === 'draining';
export function slotAt(owned: Owned, level: Level, broken?: Rule): Slot {
  if (level === 'part') return owned.part ?? (broken === 'partOfBase' ? owned : slotAt(owned, 'layer'));
  return level === 'layer' ? (owned.layer ?? owned) : owned;
}
/** The slots that the rows of the accounts have. */
export const levelsOf = ({ A }: State['owned']) =>
  LEVELS.filter((level) => level === 'base' || (level === 'layer' ? A.layer : A.part) !== null);
export const ownerAt = ({ owned }: State, level: Level, broken?: Rule): Name | undefined =>
  (['A', 'B'] as const).find((name) => isOwner(slotAt(owned[name], level, broken)));
/** The slot of the partition, by the newest layers that any account has. */
const levelOf = ({ A, B }: State['owned'], broken?: Rule): Level =>
  broken === 'fixedLayers' ? 'base' : A.part || B.part ? 'part' : 'layer';
/** The owner of the partition. */
export const ownerOf = (state: State, broken?: Rule) => ownerAt(state, levelOf(state.owned, broken), broken);

export function initialState(script: Script): State {
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
export function execute(state: State, request: Request, broken?: Rule): boolean {
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

export const registryOf = ({ move, level }: { readonly move: number; readonly level: Level }) =>
  ({ base: move, layer: -move, part: -100 - move })[level];

export function look(state: State, account: Name, broken?: Rule): Known {
  const owned = state.owned[account];
  const own = owned.part ? 'part' : owned.layer ? 'layer' : 'base';
  const level = broken === 'fixedLayers' ? 'base' : own;
  const { phase, move } = slotAt(owned, level);
  return { phase, move, level, version: owned.version, account };
}
export const isCurrent = (state: State, known: Known) => state.owned[known.account].version === known.version;
export function isStill(state: State, { account, move }: Known, phases: readonly string[], broken?: Rule): boolean {
  const now = look(state, account, broken);
  return now.move === move && phases.includes(now.phase);
}
