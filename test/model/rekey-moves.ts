/**
 * Executable specification of the move of entities to another key while operations move or archive them (docs/internals/rekey.md): visits
 * every state of two keys, A and B, each with a row at the former and at the new key. One operation, whose message may be handled again
 * after a crash, moves the entity from A to B. It may have begun, and may have ended, at the former keys before the command.
 *   node test/model/rekey-moves.ts [script] [broken rule]
 *
 * rekey.ts is the specification of one key: what requests and processes do before entities move. Here, entities move already.
 *
 * Each storage request is one step. An actor is a stack of procedures. The next request of the last one follows from the results that it has had.
 */

import { copyOf, type Explored, exploreStates, type Found, printExplored } from './explore.ts';

type Key = 'A' | 'B';
type Place = `old${Key}` | `new${Key}`;
type Cell =
  | { readonly state: 'absent' }
  | {
      readonly state: 'tombstone' | 'live' | 'arriving';
      readonly value: number;
      /** Of a tombstone: the operation that has moved the entity. Else the incarnation, which is that operation after a move. */
      readonly life: string;
      readonly etag: number;
      /** Where an entity arrives from. */
      readonly from?: Place;
    };

/** The operation of the message. */
const OPERATION = 'operation';
/** The operation that gives an incarnation another key. */
const rekeyOf = (life: string) => `${life}'`;
const isRekeyId = (life: string) => life.endsWith("'");

type Procedure =
  | { readonly is: 'command' }
  | { readonly is: 'message' }
  | { readonly is: 'patch' | 'delete' | 'create'; readonly key: Key }
  /** A read by a process of another deployment, which will move the entities in the other direction, and has not begun. */
  | { readonly is: 'read'; readonly key: Key; readonly before?: Cell }
  | { readonly is: 'rekey'; readonly key: Key; readonly isCommand?: boolean }
  | {
      readonly is: 'transfer';
      readonly from: Place;
      readonly to: Place;
      readonly operation: string;
      readonly life: string;
      /** True if the move is only finished or undone. */
      readonly isUndone?: boolean;
      /** The ETag of the source that has been copied, or of the tombstone that has been seen without an entity at the new key. */
      readonly etag?: number;
    };

type Request =
  | { readonly place: Place }
  | {
      readonly place: Place;
      readonly if: Cell;
      readonly cell: Omit<Cell & object, 'etag'>;
      readonly leaves?: boolean;
      readonly copy?: Place;
    };
type Result = Cell | boolean;
type Next =
  | { readonly end: 'done' | 'gone' | 'refused' | 'busy' | number }
  | { readonly again: Procedure }
  | { readonly call: Procedure };
type Steps = Generator<Request, Next, Result>;

interface Actor {
  readonly first: Procedure;
  stack: Procedure[];
  results: Result[];
  end?: string | number;
  /** The values that the key of a read has had since it began. */
  seen: number[];
}

interface State {
  rows: Record<Place, Cell>;
  /** The owner of a row of an index in the partition of both rows of a key. */
  copies: Record<Key, Place | 'none'>;
  /** The value that each key has, 0 for none. */
  truth: Record<Key, number>;
  /** Requests of a process that worked at the former keys: each is executed late or never. */
  late: Extract<Request, { if: Cell }>[];
  actors: Actor[];
  hasMoved: boolean;
  isChanged: boolean;
  etags: number;
  crashes: number;
}

/** What each broken rule drops. */
export const RULES = {
  foreignTombstone: 'the tombstone of an operation is taken for one of the command',
  foreignArrival: 'an entity that an operation brings to its new key is taken for one of the command',
  unsettledArrival: 'an entity that arrives at its former key is moved before its operation is finished or undone',
  blindUndo: 'an entity that arrives is deleted without a look at the tombstone of its source',
  unsettledKeys: 'an operation begins at the new keys before its entities have left the former ones',
  formerLife: 'an operation knows its entity only by its incarnation at the former key',
  formerEnd: 'an operation that has ended at the former keys does not know its entity at the new one',
  lateTombstone: 'a tombstone is deleted whose entity has arrived after the read of its destination',
  trustArrival: 'a read before the move in the other direction returns an entity that arrives',
  noLookAgain: 'a read before the move in the other direction that finds no entity does not look again',
  keepCopies: 'an entity that does not leave its key does not get back the rows that it also has under the other one',
  wayBack: 'the tombstone of a move in the other direction stays in the way',
} as const;
export type Rule = keyof typeof RULES;

interface Script {
  readonly rows: Partial<Record<Place, Cell>>;
  readonly actors: readonly Procedure[];
  readonly late?: State['late'];
  readonly crashes?: number;
}

const ABSENT: Cell = { state: 'absent' };
const live = (life: string): Cell => ({ state: 'live', value: 1, life, etag: 1 });
const gone = (life: string): Cell => ({ state: 'tombstone', value: 0, life, etag: 2 });
const arriving = (life: string, from: Place): Cell => ({ state: 'arriving', value: 1, life, etag: 3, from });
const COMMAND = { is: 'command' } as const;
const MESSAGE = { is: 'message' } as const;
const READ = { is: 'read', key: 'A' } as const;
const PATCH = { is: 'patch', key: 'A' } as const;
const opened = { ...arriving(OPERATION, 'oldA'), state: 'live' } as const;
const OPEN = { place: 'oldB', if: arriving(OPERATION, 'oldA'), cell: opened } as const;
const DROP = { place: 'oldA', if: gone(OPERATION), cell: ABSENT } as const;
const LEFT = { oldA: gone(OPERATION), oldB: arriving(OPERATION, 'oldA') };

export const SCRIPTS = {
  sent: { rows: { oldA: live('first') }, actors: [COMMAND, MESSAGE], crashes: 1 },
  patched: { rows: { oldA: live('first') }, actors: [MESSAGE, PATCH] },
  copied: {
    rows: { oldA: live('first'), oldB: arriving(OPERATION, 'oldA') },
    actors: [COMMAND, MESSAGE],
    crashes: 1,
  },
  twice: { rows: { oldA: live('first') }, actors: [MESSAGE, MESSAGE] },
  sentPatched: { rows: { oldA: live('first') }, actors: [COMMAND, MESSAGE, PATCH] },
  leftPatched: { rows: LEFT, actors: [COMMAND, MESSAGE, { is: 'patch', key: 'B' }] },
  copiedPatched: { rows: { oldA: live('first'), oldB: arriving(OPERATION, 'oldA') }, actors: [MESSAGE, PATCH] },
  left: { rows: LEFT, actors: [COMMAND, MESSAGE], late: [OPEN], crashes: 1 },
  leftDeleted: { rows: LEFT, actors: [MESSAGE, { is: 'delete', key: 'B' }, { is: 'create', key: 'A' }] },
  leftAlone: { rows: LEFT, actors: [COMMAND, COMMAND], crashes: 1 },
  opened: {
    rows: { oldA: gone(OPERATION), oldB: live(OPERATION) },
    actors: [COMMAND, MESSAGE],
    late: [DROP],
    crashes: 1,
  },
  ended: { rows: { oldB: live(OPERATION) }, actors: [COMMAND, MESSAGE], crashes: 1 },
  backCopied: { rows: { newA: live('first'), oldA: arriving(rekeyOf('first'), 'newA') }, actors: [COMMAND, PATCH] },
  backLeft: {
    rows: { newA: gone(rekeyOf('first')), oldA: arriving(rekeyOf('first'), 'newA') },
    actors: [COMMAND, PATCH],
    crashes: 1,
  },
  backOpened: { rows: { newA: gone(rekeyOf('first')), oldA: live(rekeyOf('first')) }, actors: [COMMAND, PATCH] },
  read: { rows: { oldA: live('first') }, actors: [COMMAND, READ, PATCH] },
  readDeleted: { rows: { oldA: live('first') }, actors: [COMMAND, { is: 'delete', key: 'A' }, READ], crashes: 1 },
} satisfies Readonly<Record<string, Script>>;

function initialState({ rows, actors, late = [], crashes = 0 }: Script): State {
  const isThere = (cell: Cell | undefined) => cell?.state === 'live' || cell?.state === 'arriving';
  // An entity that arrives at the former key has taken the row of the index.
  const ownerOf = (key: Key) => {
    const places = [`old${key}`, `new${key}`] as const;
    return places.find((place) => isThere((rows as Script['rows'])[place])) ?? 'none';
  };
  const hasLeft = rows.oldA?.state !== 'live' && rows.oldB !== undefined;
  return {
    rows: { oldA: ABSENT, oldB: ABSENT, newA: ABSENT, newB: ABSENT, ...rows },
    copies: { A: ownerOf('A'), B: ownerOf('B') },
    truth: hasLeft ? { A: 0, B: 1 } : { A: 1, B: 0 },
    late: [...late],
    actors: actors.map((first) => ({ first, stack: [first], results: [], seen: [] })),
    hasMoved: hasLeft,
    isChanged: false,
    etags: 3,
    crashes,
  };
}

/** Reads a row. */
function* read(place: Place): Generator<Request, Cell, Result> {
  return (yield { place }) as Cell;
}

function* write(
  place: Place,
  found: Cell,
  cell: object,
  more: { readonly leaves?: boolean; readonly copy?: Place } = {},
): Generator<Request, boolean, Result> {
  return (yield { place, if: found, cell: cell as Cell, ...more }) as boolean;
}

/** lib/operations/rekey.ts */
function* stepsOf(procedure: Procedure, broken: Rule | undefined): Steps {
  if (procedure.is === 'transfer') return yield* transfer(procedure, broken);
  if (procedure.is === 'rekey') return yield* rekey(procedure, broken);
  if (procedure.is === 'message') return yield* message(broken);
  if (procedure.is === 'command') {
    for (const key of ['A', 'B'] as const) {
      const call = { is: 'rekey', key, isCommand: true } as const;
      if ((yield* read(`old${key}`)).state !== 'absent') return { call };
      if (isOfRekey(yield* read(`new${key}`), key, broken)) return { call };
    }
    return { end: 'done' };
  }
  if (procedure.is === 'read') return yield* readUnmoved(procedure, broken);
  const { is, key } = procedure;
  const place = `new${key}` as const;
  let own = yield* read(place);
  if (own.state !== 'live' || is === 'delete') {
    const former = yield* read(`old${key}`);
    if (isToMove(former, broken)) return { call: { is: 'rekey', key } };
    own = yield* read(place);
    if (isOfRekey(own, key, broken)) return { call: { is: 'rekey', key } };
  }
  if (own.state === 'arriving' || own.state === 'tombstone') return { end: 'busy' };
  if (is === 'create' ? own.state === 'live' : own.state === 'absent') return { end: 'refused' };
  const value = is === 'patch' ? 2 : 3;
  const cell =
    is === 'delete' ? ABSENT : is === 'create' ? { state: 'live', value, life: 'second' } : { ...own, value };
  return (yield* write(place, own, cell)) ? { end: 'done' } : { again: procedure };
}

/** lib/operations/rekey.ts:findUnmoved. The former key of its deployment is the new one here. */
function* readUnmoved(procedure: Extract<Procedure, { is: 'read' }>, broken: Rule | undefined): Steps {
  const { key, before } = procedure;
  const there = yield* read(`new${key}`);
  if (there.state === 'live' || (there.state === 'arriving' && broken === 'trustArrival')) return { end: there.value };
  const etag = (cell: Cell | undefined) => cell && (cell.state === 'absent' ? 0 : cell.etag);
  if (etag(before) === etag(there)) return { end: 0 };
  const here = yield* read(`old${key}`);
  if (here.state === 'live') return { end: here.value };
  if (there.state === 'arriving' && here.state === 'tombstone' && here.life === there.life) return { end: there.value };
  return broken === 'noLookAgain' ? { end: 0 } : { again: { ...procedure, before: there } };
}

function isToMove(former: Cell, broken: Rule | undefined): boolean {
  return former.state === 'tombstone'
    ? isRekeyId(former.life) || broken === 'foreignTombstone'
    : former.state !== 'absent';
}

/** True for an entity that arrives at its new key from its former one. */
function isOfRekey(own: Cell, key: Key, broken: Rule | undefined): boolean {
  return own.state === 'arriving' && (own.from === `old${key}` || broken === 'foreignArrival');
}

/** lib/engine/transfer/move-to-key.ts:moveToKey */
function* rekey({ key, isCommand }: Extract<Procedure, { is: 'rekey' }>, broken: Rule | undefined): Steps {
  const [from, to] = [`old${key}`, `new${key}`] as const;
  const is = 'transfer';
  const source = yield* read(from);
  if (source.state === 'arriving' && broken !== 'unsettledArrival') {
    const other = source.from as Place;
    const there = yield* read(other);
    if (broken === 'blindUndo') {
      yield* write(from, source, ABSENT);
      return { end: 'busy' };
    }
    const life = there.state === 'live' ? there.life : '';
    return { call: { is, from: other, to: from, operation: source.life, life, isUndone: true } };
  }
  if (source.state === 'live' || source.state === 'arriving')
    return { call: { is, from, to, operation: rekeyOf(source.life), life: source.life } };
  if (source.state === 'tombstone' && (isRekeyId(source.life) || broken === 'foreignTombstone'))
    return { call: { is, from, to, operation: source.life, life: '' } };
  // The record of the operation says where the entity has gone.
  if (source.state === 'tombstone')
    return isCommand
      ? { call: { is, from, to: 'oldB', operation: OPERATION, life: '', isUndone: true } }
      : { end: 'done' };
  const own = yield* read(to);
  if (isOfRekey(own, key, broken) && own.state === 'arriving')
    return { call: { is, from, to, operation: own.life, life: '' } };
  return { end: 'done' };
}

/** lib/engine/transfer/transfer.ts:runTransfer */
function* message(broken: Rule | undefined): Steps {
  const is = 'transfer';
  const [formerA, formerB] = [yield* read('oldA'), yield* read('oldB')];
  const atFormer = { is, from: 'oldA', to: 'oldB', operation: OPERATION } as const;
  const hasBegun = (cell: Cell) => cell.state !== 'absent' && cell.life === OPERATION;
  if ((hasBegun(formerA) && formerA.state === 'tombstone') || (hasBegun(formerB) && formerB.state === 'arriving'))
    return { call: { ...atFormer, life: 'first', isUndone: true } };
  if (broken !== 'unsettledKeys') {
    for (const [key, former] of [
      ['A', formerA],
      ['B', formerB],
    ] as const)
      if (isToMove(former, broken)) return { call: { is: 'rekey', key } };
    for (const key of ['A', 'B'] as const)
      if (isOfRekey(yield* read(`new${key}`), key, broken)) return { call: { is: 'rekey', key } };
  }
  const [to, from] = [yield* read('newB'), yield* read('newA')];
  if (to.state === 'live' && to.life === rekeyOf(OPERATION) && broken !== 'formerEnd') return { end: 'done' };
  const isKnown = from.state === 'live' && from.life === rekeyOf('first') && broken !== 'formerLife';
  const life = isKnown ? from.life : 'first';
  return { again: { is, from: 'newA', to: 'newB', operation: OPERATION, life } };
}

/** lib/engine/transfer/transfer-entity.ts:transferEntity */
function* transfer(work: Extract<Procedure, { is: 'transfer' }>, broken: Rule | undefined): Steps {
  const { from, to, operation, life, isUndone = false, etag } = work;
  const isRekey = from.slice(3) === to.slice(3) && !isUndone;
  const again = { again: work };
  const reached = yield* read(to);
  const source = yield* read(from);
  const isOurs = (cell: Cell) => (cell.state === 'live' || cell.state === 'arriving') && cell.life === operation;
  if (source.state === 'tombstone' && source.life === operation) {
    if (isRekey) {
      // The entity may have arrived between the two reads.
      if (!isOurs(reached) && etag !== source.etag && broken !== 'lateTombstone')
        return { again: { ...work, etag: source.etag } };
      if (
        isOurs(reached) &&
        reached.state === 'arriving' &&
        !(yield* write(to, reached, { ...reached, state: 'live' }))
      )
        return again;
    } else {
      const found = yield* read(to);
      if (isOurs(found) && found.state === 'arriving' && !(yield* write(to, found, { ...found, state: 'live' })))
        return again;
    }
    yield* write(from, source, ABSENT);
    return { end: 'done' };
  }
  if (source.state !== 'live' || source.life !== life) {
    const found = yield* read(to);
    if (isOurs(found) && found.state === 'live') return { end: 'done' };
    if (!isOurs(found) || (yield* write(to, found, ABSENT))) return { end: 'gone' };
    return again;
  }
  if (!isOurs(reached) && reached.state !== 'absent' && reached.state !== 'tombstone') return { end: 'refused' };
  if (isUndone) {
    if (!isOurs(reached)) return { end: 'refused' };
    const isSameKey = from.slice(3) === to.slice(3) && broken !== 'keepCopies';
    yield* write(to, reached, ABSENT, isSameKey ? { copy: from } : {});
    return again;
  }
  if (reached.state === 'tombstone') {
    // The entity has come from there, by the move in the other direction.
    if (!isRekey || reached.life !== source.life || broken === 'wayBack') return { end: 'busy' };
    yield* write(to, reached, ABSENT);
    return again;
  }
  if (etag !== source.etag) {
    const copy = { state: 'arriving', value: source.value, life: operation, from };
    return (yield* write(to, reached, copy)) ? { again: { ...work, etag: source.etag } } : again;
  }
  yield* write(from, source, { state: 'tombstone', value: 0, life: operation }, { leaves: true });
  return again;
}

function nextStates(state: State, broken: Rule | undefined): Found<State>[] {
  const found: Found<State>[] = [];
  const add = (what: string, change: (next: State) => string | undefined) => {
    const next = copyOf(state);
    const violation = change(next);
    for (const { first, seen } of next.actors)
      if (first.is === 'read' && seen.length > 0 && !seen.includes(next.truth[first.key]))
        seen.push(next.truth[first.key]);
    const wrong = violation ?? violationIn(next);
    found.push(wrong === undefined ? [what, next] : [what, next, wrong]);
  };
  for (const [at, request] of state.late.entries()) {
    const take = (next: State) => void next.late.splice(at, 1);
    add(`late: ${request.place}`, (next) => {
      take(next);
      return execute(next, request).violation;
    });
    add(`late: ${request.place} is lost`, take);
  }
  for (const [at, { first, stack, results, end }] of state.actors.entries()) {
    if (end !== undefined) continue;
    const procedure = stack.at(-1) as Procedure;
    const name = `${first.is} ${at}`;
    const request = replay(procedure, results, broken) as Request;
    const what = 'if' in request ? `${request.place} := ${JSON.stringify(request.cell)}` : `reads ${request.place}`;
    add(`${name}: ${procedure.is} ${what}`, (next) => {
      const { result, violation } = execute(next, request, procedure);
      const actor = next.actors[at] as Actor;
      if (first.is === 'read' && actor.seen.length === 0) actor.seen.push(next.truth[first.key]);
      actor.results.push(result);
      goOn(actor, broken);
      if (typeof actor.end === 'number' && !actor.seen.includes(actor.end))
        return `a read found ${actor.end}, not one of ${actor.seen.join(', ')}`;
      return violation;
    });
    if (state.crashes > 0 && (first.is === 'command' || first.is === 'message') && (stack.length > 1 || results.length))
      add(`${name} dies`, (next) => {
        next.crashes -= 1;
        Object.assign(next.actors[at] as Actor, { stack: [first], results: [] });
        return undefined;
      });
  }
  return found;
}

/** The next request of a procedure, or how it goes on after its last result. */
function replay(procedure: Procedure, results: readonly Result[], broken: Rule | undefined): Request | Next {
  const steps = stepsOf(procedure, broken);
  let step = steps.next();
  for (const result of results) step = steps.next(result);
  return step.value;
}

function goOn(actor: Actor, broken: Rule | undefined): void {
  const next = replay(actor.stack.at(-1) as Procedure, actor.results, broken);
  if ('place' in next) return;
  actor.results = [];
  if ('again' in next) actor.stack[actor.stack.length - 1] = next.again;
  else if ('call' in next) actor.stack.push(next.call);
  else {
    actor.stack.pop();
    if (actor.stack.length === 0) actor.end = next.end;
  }
}

function execute(
  state: State,
  request: Request,
  by?: Procedure,
): { readonly result: Result; readonly violation?: string | undefined } {
  const { rows, truth } = state;
  const found = rows[request.place];
  if (!('if' in request)) return { result: found };
  const isSame = (found.state === 'absent' ? 0 : found.etag) === (request.if.state === 'absent' ? 0 : request.if.etag);
  if (!isSame) return { result: false };
  state.etags += 1;
  rows[request.place] = request.cell.state === 'absent' ? ABSENT : ({ ...request.cell, etag: state.etags } as Cell);
  const key = request.place.slice(3) as Key;
  const isSameKey = by?.is !== 'transfer' || by.from.slice(3) === by.to.slice(3);
  const isOpened = found.state === 'arriving' && request.cell.state === 'live';
  const isWritten = request.cell.state === 'live' || request.cell.state === 'arriving';
  if (isWritten && !isOpened) state.copies[key] = request.place;
  // A tombstone has no other rows.
  else if (!isWritten && found.state !== 'tombstone' && !(request.leaves && isSameKey))
    state.copies[key] = request.copy ?? 'none';
  if (request.leaves && by?.is === 'transfer' && by.operation === OPERATION) {
    if (truth.B !== 0) return { result: true, violation: 'two entities have the key' };
    state.truth = { A: 0, B: truth.A };
    state.hasMoved = true;
  }
  if (by?.is === 'create' && truth[key] !== 0) return { result: true, violation: 'a second entity is created' };
  if (by?.is === 'patch' || by?.is === 'create') truth[key] = 'value' in request.cell ? Number(request.cell.value) : 0;
  if (by?.is === 'delete') truth[key] = 0;
  if (by?.is === 'delete' || by?.is === 'create') state.isChanged = true;
  return { result: true };
}

function violationIn(state: State): string | undefined {
  const { rows, truth, actors } = state;
  const all = Object.entries(rows) as [Place, Cell][];
  for (const key of ['A', 'B'] as const) {
    const here = all.filter(([place, { state: is }]) => place.endsWith(key) && is === 'live');
    if (here.length > 1) return 'the entity is at both keys';
    if (here.length > 0 && truth[key] === 0) return `${key} has a value that it should not have`;
  }
  for (const { first, end } of actors)
    if (first.is === 'message' && !state.isChanged) {
      if (end === 'done' && !state.hasMoved) return 'the operation says that it has moved the entity';
      if ((end === 'gone' || end === 'refused') && state.truth.A + state.truth.B > 0)
        return 'the operation says that it has not moved the entity';
    }
  if (!isOver(state)) return undefined;
  for (const key of ['A', 'B'] as const) {
    const cell = rows[`new${key}`];
    const value = cell.state === 'live' ? cell.value : 0;
    const owner = cell.state === 'absent' ? 'none' : `new${key}`;
    if (state.copies[key] !== owner) return `the row of the index of ${key} is of ${state.copies[key]}`;
    if (value !== truth[key]) return `${key} has ${value}, and ${truth[key]} was written last`;
  }
  return undefined;
}

const isOver = ({ rows, late, actors }: State) =>
  late.length === 0 &&
  actors.every(({ end }) => end !== undefined) &&
  rows.oldA.state === 'absent' &&
  rows.oldB.state === 'absent';

/** Visits the states of a script. */
export const explore = (script: Script, { broken }: { readonly broken?: Rule | undefined } = {}): Explored =>
  exploreStates({
    first: initialState(script),
    nextStates: (state) => nextStates(state, broken),
    isOver,
    keyOf,
  });

/** The ETags are numbered by their first use: otherwise no two histories would lead to the same state. */
function keyOf(state: State): string {
  const numbers = new Map<number, number>();
  return JSON.stringify({ ...state, etags: 0 }, (name, value) => {
    if (name !== 'etag') return value;
    if (!numbers.has(value)) numbers.set(value, numbers.size + 1);
    return numbers.get(value);
  });
}

if (import.meta.main) {
  const [only, broken] = process.argv.slice(2) as [keyof typeof SCRIPTS | undefined, Rule | undefined];
  const scripts = only ? [only] : (Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[]);
  printExplored(scripts, (name) => explore(SCRIPTS[name], { broken }));
}
