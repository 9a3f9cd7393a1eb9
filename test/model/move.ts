/**
 * Executable specification of the move of one slot between storage accounts A and B (docs/internals/moves.md): visits every state of a world
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
import {
  execute,
  initialState,
  isCurrent,
  isOwner,
  isStill,
  LEVELS,
  look,
  other,
  ownerOf,
  type Request,
  type Rule,
  type Script,
  type State,
  slotAt,
  type Writer,
} from './move-world.ts';
import { movesOf } from './mover.ts';

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
