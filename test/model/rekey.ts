/**
 * Executable specification of the move of one entity to another key (docs/internals/rekey.md): visits every state of the rows at its two
 * keys, with a command that may die, requests that write, create, delete and read by the new key, late requests of the previous release, and
 * requests of this one that have begun at the former key, before the command.
 *   node test/model/rekey.ts [script] [broken rule]
 *
 * Each storage request is one step. A request for a key moves the entity itself, with the steps of the command, before it goes on.
 *
 * Every request is as if it were executed at one moment between its begin and its end: a read returns a value that the entity had
 * meanwhile, and no write is lost. There is never an entity at both keys, and from every state all can end at the new key.
 */

import { copyOf, type Explored, exploreStates, type Found, printExplored } from './explore.ts';

type Cell =
  | { state: 'absent' }
  | { state: 'tombstone' | 'live' | 'arriving'; value: number; life: number; etag: number };
type Place = 'old' | 'new';
type Does = 'command' | 'patch' | 'create' | 'delete' | 'read';

interface Actor {
  does: Does;
  /** What it writes. */
  value: number;
  step:
    | 'look'
    | 'lookOld'
    | 'lookAgain'
    | 'settle'
    | 'write'
    | 'destination'
    | 'source'
    | 'copy'
    | 'leave'
    | 'open'
    | 'drop'
    | 'done'
    | 'dead';
  /** What it has read. */
  destination: Cell;
  source: Cell;
  found: Cell;
  /** The life of the entity that it moves. */
  life: number;
  /** The values that the entity has had since the request began; none before. */
  seen: number[];
}

/** A request that a process executes at the former key, because no move had begun when the process looked. */
interface Early {
  does: 'patch' | 'put' | 'create' | 'read';
  value: number;
  step: 'choose' | 'look' | 'confirm' | 'check' | 'sent' | 'done';
  /** True while the process uses what it has read: that no move has begun. */
  isSure: boolean;
  found: Cell;
  seen: number[];
}

interface State {
  /** True after the command has recorded that it begins. */
  isStarted: boolean;
  /** True if another move has been left with entities at both keys. */
  isMidway: boolean;
  isMoving: boolean;
  early: Early[];
  old: Cell;
  new: Cell;
  /** The owner of a row of an index in the partition of both keys, which the transactions of the entity write. */
  copy: Place | 'none';
  /** The value of the entity, 0 if there is none. */
  truth: number;
  /** Requests of the previous release, which are executed late or never. */
  late: ('put' | 'create')[];
  actors: Actor[];
  etags: number;
  lives: number;
  crashes: number;
}

/** What each broken rule drops. */
export const RULES = {
  noWait: 'the move begins while requests of the previous release may be executed',
  noLeaseWait: 'the move begins while a process uses what it has read before the command',
  noSentWait: 'the move begins while a write of such a process may be executed',
  noCheck: 'a process does not look again before it sends a write to the former key',
  noConfirm: 'a process does not look again after it has read at the former key',
  servedMidway: 'entities are served at the former key although another move has been left in the middle',
  noLookAtFormer: 'a create does not look at the former key',
  noLookAgain: 'a request that finds nothing at either key does not look at the new one again',
  openArrival: 'a request may write an entity that arrives',
  blindCopy: 'a copy replaces what is at the new key since it was read',
  openFirst: 'the entity is opened at the new key before it has left the former one',
  dropFirst: 'the tombstone is deleted before the entity is opened',
  noSettling: 'an entity is deleted before its tombstone at the former key',
  blindOpen: 'an entity that arrives is opened although the row has changed since it was read, before its source was',
  keepLate: 'a copy that was written after its entity had been moved by another process is opened',
  dropCopies: 'an entity that leaves its former key deletes the rows that it also has under the new one',
  trustArrival: 'a read returns an entity that arrives, without a look at the former key',
} as const;
export type Rule = keyof typeof RULES;

interface Script {
  readonly initial: number;
  readonly actors: readonly Does[];
  readonly late?: State['late'];
  readonly early?: readonly Early['does'][];
  /** The key of the entity, which another move has left there. */
  readonly leftAt?: Place;
  readonly crashes?: number;
}

export const SCRIPTS = {
  patch: { initial: 1, actors: ['command', 'patch'], crashes: 1 },
  read: { initial: 1, actors: ['command', 'read'], crashes: 1 },
  create: { initial: 1, actors: ['command', 'create'], crashes: 1 },
  none: { initial: 0, actors: ['command', 'create', 'create'] },
  late: { initial: 1, actors: ['command', 'patch'], late: ['put'], crashes: 1 },
  lateCreate: { initial: 0, actors: ['command', 'create'], late: ['create'], crashes: 1 },
  delete: { initial: 1, actors: ['command', 'delete', 'read'] },
  again: { initial: 1, actors: ['command', 'delete', 'create'] },
  patches: { initial: 1, actors: ['command', 'patch', 'patch'] },
  patchDies: { initial: 1, actors: ['command', 'patch', 'read'], crashes: 1 },
  deleteDies: { initial: 1, actors: ['command', 'delete', 'read'], crashes: 1 },
  againDies: { initial: 1, actors: ['command', 'delete', 'create'], crashes: 1 },
  early: { initial: 1, actors: ['command', 'patch'], early: ['patch', 'read'] },
  earlyPut: { initial: 1, actors: ['command', 'read'], early: ['put'], crashes: 1 },
  earlyCreate: { initial: 0, actors: ['command', 'create'], early: ['create'], crashes: 1 },
  earlyMidway: { initial: 1, actors: ['command'], early: ['create'], leftAt: 'new' },
} satisfies Readonly<Record<string, Script>>;

const ABSENT: Cell = { state: 'absent' };

function initialState({ initial, actors, late = [], early = [], leftAt, crashes = 0 }: Script): State {
  const cell: Cell = initial ? { state: 'live', value: initial, life: 1, etag: 1 } : ABSENT;
  const first = actors.map((does, at): Actor => {
    const read = { destination: ABSENT, source: ABSENT, found: ABSENT, life: 0, seen: [] };
    return { does, value: 10 + at, step: does === 'command' ? 'destination' : 'look', ...read };
  });
  return {
    isStarted: false,
    isMidway: leftAt !== undefined,
    isMoving: false,
    early: early.map((does, at) => ({ does, value: 20 + at, step: 'choose', isSure: false, found: ABSENT, seen: [] })),
    old: leftAt === 'new' ? ABSENT : cell,
    new: leftAt === 'new' ? cell : ABSENT,
    copy: initial ? (leftAt ?? 'old') : 'none',
    truth: initial,
    late: [...late],
    actors: first,
    etags: 1,
    lives: 1,
    crashes,
  };
}

function nextStates(state: State, broken: Rule | undefined): Found<State>[] {
  const found: Found<State>[] = [];
  const add = (what: string, change: (next: State) => string | undefined) => {
    const next = copyOf(state);
    const violation = change(next);
    for (const { seen } of [...next.actors, ...next.early])
      if (seen.length > 0 && !seen.includes(next.truth)) seen.push(next.truth);
    const wrong = violation ?? violationIn(next);
    found.push(wrong === undefined ? [what, next] : [what, next, wrong]);
  };
  if (!state.isStarted)
    add('the command begins', (next) => {
      next.isStarted = true;
      return undefined;
    });
  const mayCome = state.early.some(
    ({ isSure, step }) => (isSure && broken !== 'noLeaseWait') || (step === 'sent' && broken !== 'noSentWait'),
  );
  if (state.isStarted && !state.isMoving && !mayCome && (state.late.length === 0 || broken === 'noWait'))
    add('the move begins', (next) => {
      next.isMoving = true;
      return undefined;
    });
  for (const [at, kind] of state.late.entries()) {
    add(`a late ${kind} is executed`, (next) => {
      next.late.splice(at, 1);
      return executeLate(next, kind);
    });
    add(`a late ${kind} is lost`, (next) => void next.late.splice(at, 1));
  }
  for (const [at, { does, step, isSure }] of state.early.entries()) {
    const change = (what: string, how: (next: State, early: Early) => string | undefined) =>
      add(`early ${does} ${at}: ${what}`, (next) => how(next, next.early[at] as Early));
    if (step !== 'done') change(step, (next, early) => takeEarly(next, early, broken));
    if (step === 'sent') change('is lost', (_, early) => void endEarly(early));
    if (isSure)
      change('its time is over', (_, early) => {
        early.isSure = false;
        return undefined;
      });
  }
  if (!state.isMoving) return found;
  for (const [at, actor] of state.actors.entries()) {
    if (actor.step === 'done' || actor.step === 'dead') continue;
    const name = `${actor.does} ${at}: ${actor.step}`;
    add(name, (next) => take(next, next.actors[at] as Actor, broken));
    // A request that dies is one that nobody waits for; another command takes over from a dead one.
    if (state.crashes > 0)
      add(`${actor.does} ${at} dies`, (next) => {
        const dying = next.actors[at] as Actor;
        next.crashes -= 1;
        dying.step = dying.does === 'command' ? 'destination' : 'dead';
        return undefined;
      });
  }
  return found;
}

function executeLate(state: State, kind: 'put' | 'create'): string | undefined {
  const { old } = state;
  if (kind === 'put' && old.state === 'live' && old.etag === 1) return put(state, 'old', { ...old, value: 2 });
  if (kind === 'create' && old.state === 'absent') return put(state, 'old', newLife(state, 2));
  return undefined;
}

/** The next step of a request at the former key. Returns a violation. */
function takeEarly(state: State, early: Early, broken: Rule | undefined): string | undefined {
  const { does, found, value } = early;
  const isKnown = () => {
    // A process that does not know reads the phase.
    early.isSure ||= !state.isStarted && (!state.isMidway || broken === 'servedMidway');
    return early.isSure;
  };
  if (early.seen.length === 0) early.seen.push(state.truth);
  switch (early.step) {
    case 'choose':
      if (!isKnown()) return endEarly(early);
      early.step = does === 'patch' || does === 'read' ? 'look' : 'check';
      return undefined;
    case 'look':
      early.found = state.old;
      early.step = 'confirm';
      return undefined;
    case 'confirm': {
      if (broken !== 'noConfirm' && !isKnown()) return endEarly(early);
      early.step = 'check';
      if (does === 'patch' && found.state === 'live') return undefined;
      endEarly(early);
      const read = found.state === 'live' ? found.value : 0;
      return early.seen.includes(read) ? undefined : `a ${does} found ${read}, not one of ${early.seen.join(', ')}`;
    }
    case 'check':
      if (broken !== 'noCheck' && !isKnown()) return endEarly(early);
      early.step = 'sent';
      return undefined;
    default: {
      const { old } = state;
      endEarly(early);
      if (does === 'patch')
        return old.state === 'live' && isSame(old, found) ? put(state, 'old', { ...old, value }) : undefined;
      if (does === 'put' && old.state === 'live') return put(state, 'old', { ...old, value });
      if (old.state === 'live' || (does === 'create' && old.state !== 'absent')) return undefined;
      if (state.truth !== 0) return 'a second entity is created';
      return put(state, 'old', newLife(state, value));
    }
  }
}

function endEarly(early: Early): undefined {
  Object.assign(early, { step: 'done', isSure: false, found: ABSENT });
}

const newLife = (state: State, value: number) => {
  state.lives += 1;
  return { state: 'live', value, life: state.lives } as const;
};

/** Writes an entity for a request, which is its new value. */
function put(state: State, place: Place, cell: Omit<Exclude<Cell, { state: 'absent' }>, 'etag'>): undefined {
  store(state, place, cell);
  state.copy = place;
  state.truth = cell.value;
}

function store(state: State, place: Place, cell: Omit<Exclude<Cell, { state: 'absent' }>, 'etag'>): void {
  state.etags += 1;
  state[place] = { ...cell, etag: state.etags };
}

const isSame = (one: Cell, other: Cell) =>
  one.state === 'absent' ? other.state === 'absent' : other.state !== 'absent' && one.etag === other.etag;

/** The next storage request of an actor. Returns a violation. */
function take(state: State, actor: Actor, broken: Rule | undefined): string | undefined {
  if (actor.seen.length === 0) actor.seen.push(state.truth);
  const move = () => {
    actor.step = 'destination';
  };
  switch (actor.step) {
    case 'look':
    case 'lookAgain': {
      actor.found = state.new;
      const { found } = actor;
      const isTrusted = actor.does === 'read' ? broken === 'trustArrival' : broken === 'openArrival';
      if (found.state === 'live' || (found.state === 'arriving' && isTrusted)) actor.step = 'write';
      else if (found.state === 'arriving') move();
      else if (actor.step === 'lookAgain' || (actor.does === 'create' && broken === 'noLookAtFormer'))
        actor.step = 'write';
      else actor.step = 'lookOld';
      if (actor.step === 'write' && actor.does === 'delete' && broken !== 'noSettling') actor.step = 'settle';
      return actor.step === 'write' && actor.does === 'read' ? end(actor) : undefined;
    }
    case 'settle':
      if (state.old.state === 'tombstone') move();
      else actor.step = 'write';
      return undefined;
    case 'lookOld':
      if (state.old.state === 'live') move();
      else actor.step = broken === 'noLookAgain' ? 'write' : 'lookAgain';
      return actor.step === 'write' && actor.does === 'read' ? end(actor) : undefined;
    case 'write':
      return write(state, actor);
    default:
      return moveOn(state, actor, broken);
  }
}

/** Ends a request with what it has found. */
function end(actor: Actor): string | undefined {
  actor.step = 'done';
  const value = actor.found.state === 'absent' ? 0 : actor.found.state === 'tombstone' ? 0 : actor.found.value;
  return actor.seen.includes(value) ? undefined : `a ${actor.does} found ${value}, not one of ${actor.seen.join(', ')}`;
}

function write(state: State, actor: Actor): string | undefined {
  const { found, does, value } = actor;
  if (does === 'create' ? found.state !== 'absent' : found.state === 'absent') return end(actor);
  if (!isSame(state.new, found)) {
    actor.step = 'look';
    return undefined;
  }
  actor.step = 'done';
  if (does === 'create') {
    if (state.truth !== 0) return 'a second entity is created';
    return put(state, 'new', newLife(state, value));
  }
  if (found.state === 'absent') return undefined;
  if (does === 'patch') return put(state, 'new', { ...found, value });
  state.new = ABSENT;
  state.copy = 'none';
  state.truth = 0;
  return undefined;
}

/** A step of the move (lib/engine/transfer/transfer-entity.ts), which several actors may do for one entity. */
function moveOn(state: State, actor: Actor, broken: Rule | undefined): string | undefined {
  const { destination, source } = actor;
  const again = () => {
    actor.step = 'destination';
  };
  switch (actor.step) {
    case 'destination':
      actor.destination = state.new;
      actor.step = 'source';
      return undefined;
    case 'source':
      actor.source = state.old;
      if (actor.source.state === 'live') {
        actor.life = actor.source.life;
        actor.step = 'copy';
        if (destination.state === 'live' && broken !== 'openFirst' && destination.life !== actor.life)
          return 'two entities have the key';
      } else if (actor.source.state === 'tombstone') {
        actor.life = actor.source.life;
        actor.step = broken === 'dropFirst' ? 'drop' : 'open';
      } else if (destination.state === 'arriving' && isSame(state.new, destination)) {
        actor.life = destination.life;
        actor.step = broken === 'keepLate' ? 'open' : 'drop';
      } else moved(actor);
      return undefined;
    case 'copy':
      if (source.state !== 'live') return undefined;
      if (!isSame(state.new, destination) && broken !== 'blindCopy') return void again();
      if (broken === 'blindCopy' && state.new.state === 'live')
        state.truth = state.truth === source.value ? state.truth : -1;
      store(state, 'new', { state: 'arriving', value: source.value, life: source.life });
      state.copy = 'new';
      actor.destination = state.new;
      actor.step = broken === 'openFirst' ? 'open' : 'leave';
      return undefined;
    case 'leave':
      if (isSame(state.old, source) && source.state === 'live') {
        store(state, 'old', { state: 'tombstone', value: 0, life: source.life });
        if (broken === 'dropCopies') state.copy = 'none';
      }
      return void again();
    case 'open':
      if (!isSame(state.new, destination) && broken !== 'blindOpen' && broken !== 'dropFirst') return void again();
      if (state.new.state === 'arriving' && state.new.life === actor.life) {
        store(state, 'new', { ...state.new, state: 'live' });
        if (broken !== 'openFirst') actor.destination = state.new;
      }
      if (source.state === 'absent') moved(actor);
      else actor.step = broken === 'openFirst' && state.old.state === 'live' ? 'leave' : 'drop';
      return undefined;
    default:
      // A tombstone, or a copy whose source is gone.
      if (source.state === 'tombstone' && isSame(state.old, source)) state.old = ABSENT;
      else if (source.state === 'absent' && isSame(state.new, destination)) {
        state.new = ABSENT;
        state.copy = 'none';
      }
      if (broken === 'dropFirst' && source.state === 'tombstone') actor.step = 'open';
      else moved(actor);
      if (broken === 'dropFirst' && actor.step === 'open') actor.source = ABSENT;
      return undefined;
  }
}

function moved(actor: Actor): void {
  actor.step = actor.does === 'command' ? 'done' : 'lookAgain';
}

function violationIn(state: State): string | undefined {
  if (state.old.state === 'live' && state.new.state === 'live') return 'the entity is at both keys';
  if (state.truth < 0) return 'a write is lost';
  if (!isOver(state)) return undefined;
  const value = state.new.state === 'live' ? state.new.value : 0;
  if (state.new.state === 'arriving') return undefined;
  if (state.copy !== (value === 0 ? 'none' : 'new')) return `the row of the index is of ${state.copy}`;
  return value === state.truth ? undefined : `the entity has ${value}, and ${state.truth} was written last`;
}

const isOver = ({ isMoving, late, early, actors, old }: State) =>
  isMoving &&
  early.every(({ step }) => step === 'done') &&
  late.length === 0 &&
  old.state === 'absent' &&
  actors.every(({ step }) => step === 'done' || step === 'dead');

/** Visits the states of a script. */
export const explore = (script: Script, { broken }: { readonly broken?: Rule | undefined } = {}): Explored =>
  exploreStates({
    first: initialState(script),
    nextStates: (state) => nextStates(state, broken),
    isOver,
    keyOf: (state) => JSON.stringify(renumbered(state)),
  });

/** The state with its ETags numbered by their first use: otherwise no two histories would lead to the same state. */
function renumbered(state: State): State {
  const numbers = new Map<number, number>([[1, 1]]);
  const number = (etag: number) => {
    if (!numbers.has(etag)) numbers.set(etag, numbers.size + 1);
    return numbers.get(etag) as number;
  };
  const cell = (one: Cell): Cell => (one.state === 'absent' ? one : { ...one, etag: number(one.etag) });
  const actors = state.actors.map((actor) => ({
    ...actor,
    destination: cell(actor.destination),
    source: cell(actor.source),
    found: cell(actor.found),
    seen: actor.step === 'done' || actor.step === 'dead' ? [] : actor.seen.toSorted(),
  }));
  const early = state.early.map((one) => ({
    ...one,
    found: cell(one.found),
    seen: one.step === 'done' ? [] : one.seen.toSorted(),
  }));
  return { ...state, old: cell(state.old), new: cell(state.new), actors, early, etags: 0 };
}

if (import.meta.main) {
  const [only, broken] = process.argv.slice(2) as [keyof typeof SCRIPTS | undefined, Rule | undefined];
  const scripts = only ? [only] : (Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[]);
  printExplored(scripts, (name) => explore(SCRIPTS[name], { broken }));
}
