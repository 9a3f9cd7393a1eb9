/**
 * Executable specification of the rules on rows that an operation of the queue asks again (lib/engine/transfer): visits every state of an archive
 * or a move that a caller has requested while the row was open. An admin may make the row final, and upkeep may write it, before and while one or
 * two consumers handle the message. A consumer may die, and its message comes back.
 *   node test/model/transfer-rules.ts [broken rule]
 *
 * Each storage request is one step. The row leaves only in a state in which the caller may take it away, a refused operation changes nothing, and
 * neither upkeep nor the admin makes the operation of a caller without limits fail.
 */

import { copyOf, type Explored, exploreStates, type Found, printExplored } from './explore.ts';

/** What the broken rules do instead. */
export const RULES = {
  atRequest: 'the rules are asked at the request only',
  once: 'the rules are asked of the first state of the row that is read, and not of a later one that is copied',
  ofTheCopy: 'the rules are asked of the copy at the destination',
  writeIds: 'the operation requires the last write of the row at the request',
  forgotten: 'the record of a refused operation does not keep the rules',
  leftThere: 'a refused operation leaves its copy at the destination',
} as const;
export type Rule = keyof typeof RULES;

type Value = 'open' | 'final';
type Cell =
  | { readonly state: 'absent' }
  | { readonly state: 'live' | 'arriving' | 'tombstone'; readonly value: Value; readonly etag: number };
type Status = 'running' | 'succeeded' | 'failed';
type Step =
  | 'read record'
  | 'read destination'
  | 'read source'
  | 'copy'
  | 'leave'
  | 'open'
  | 'drop tombstone'
  | 'undo'
  | 'read status'
  | 'write failed'
  | 'write succeeded'
  | 'done';

interface Consumer {
  step: Step;
  isLimited: boolean;
  reached: Cell;
  source: Cell;
  copiedFrom: number;
  hasAsked: boolean;
  isRefused: boolean;
}

interface Options {
  readonly broken?: Rule | undefined;
  /** True if rules limit the caller to open rows. */
  readonly isLimited: boolean;
}

interface State {
  source: Cell;
  destination: Cell;
  record: { status: Status; isLimited: boolean };
  consumers: Consumer[];
  admins: number;
  upkeeps: number;
  crashes: number;
  etags: number;
}

const ABSENT: Cell = { state: 'absent' };
const FIRST_ETAG = 1;
const begin = (): Consumer => ({
  step: 'read record',
  isLimited: false,
  reached: ABSENT,
  source: ABSENT,
  copiedFrom: 0,
  hasAsked: false,
  isRefused: false,
});
const etagOf = (cell: Cell) => (cell.state === 'absent' ? 0 : cell.etag);

/** True if the rules refuse what has been read. */
function refuses({ isLimited, source, reached, hasAsked }: Consumer, broken: Rule | undefined): boolean {
  if (source.state !== 'live' || broken === 'atRequest') return false;
  if (broken === 'writeIds') return source.etag !== FIRST_ETAG;
  if (!isLimited || (broken === 'once' && hasAsked)) return false;
  if (broken === 'ofTheCopy') return reached.state === 'arriving' && reached.value === 'final';
  return source.value === 'final';
}

/** lib/engine/transfer/transfer-entity.ts:transferEntity, after both reads. */
function decide(consumer: Consumer, broken: Rule | undefined): Step {
  const { source, reached } = consumer;
  if (source.state === 'tombstone') return 'open';
  // The row is nowhere but at the destination: a duplicate has ended the operation.
  if (source.state === 'absent') return 'write succeeded';
  consumer.isRefused ||= refuses(consumer, broken);
  consumer.hasAsked = true;
  if (consumer.isRefused) return reached.state === 'absent' || broken === 'leftThere' ? 'read status' : 'undo';
  return consumer.copiedFrom === etagOf(source) ? 'leave' : 'copy';
}

/** Takes a step. Returns what it has violated. */
function take(state: State, consumer: Consumer, { broken, isLimited }: Options): string | undefined {
  const again = () => {
    consumer.step = 'read destination';
  };
  const newEtag = () => {
    state.etags += 1;
    return state.etags;
  };
  switch (consumer.step) {
    case 'read record':
      consumer.isLimited = state.record.isLimited;
      consumer.step = state.record.status === 'succeeded' ? 'done' : 'read destination';
      return undefined;
    case 'read destination':
      consumer.reached = state.destination;
      consumer.step = 'read source';
      return undefined;
    case 'read source':
      consumer.source = state.source;
      consumer.step = decide(consumer, broken);
      return undefined;
    case 'copy':
      if (etagOf(state.destination) === etagOf(consumer.reached) && consumer.source.state === 'live') {
        state.destination = { state: 'arriving', value: consumer.source.value, etag: newEtag() };
        consumer.copiedFrom = consumer.source.etag;
        consumer.step = 'leave';
      } else again();
      return undefined;
    case 'leave': {
      const { source } = state;
      again();
      if (source.state !== 'live' || etagOf(source) !== etagOf(consumer.source)) return undefined;
      state.source = { ...source, state: 'tombstone', etag: newEtag() };
      return isLimited && source.value === 'final' ? 'a final row is taken away' : undefined;
    }
    case 'open':
      // Reads the row again, until it is open.
      if (state.destination.state === 'arriving')
        state.destination = { ...state.destination, state: 'live', etag: newEtag() };
      consumer.step = 'drop tombstone';
      return undefined;
    case 'drop tombstone':
      if (state.source.state === 'tombstone') state.source = ABSENT;
      consumer.step = 'write succeeded';
      return undefined;
    case 'undo':
      if (state.destination.state === 'arriving' && etagOf(state.destination) === etagOf(consumer.reached))
        state.destination = ABSENT;
      again();
      return undefined;
    case 'read status':
      consumer.step = state.record.status === 'succeeded' ? 'done' : 'write failed';
      return undefined;
    case 'write failed':
      state.record = { status: 'failed', isLimited: state.record.isLimited && broken !== 'forgotten' };
      consumer.step = 'done';
      return undefined;
    case 'write succeeded':
      state.record = { ...state.record, status: 'succeeded' };
      consumer.step = 'done';
      return undefined;
    case 'done':
      return undefined;
  }
}

/** What is wrong once nobody has anything left to do. */
function wrongAtEnd({ record, source, destination }: State, { isLimited }: Options): string | undefined {
  const places = `${source.state}, ${destination.state}`;
  if (record.status === 'failed' && !isLimited) return 'an operation without rules fails';
  if (record.status === 'failed' && source.state === 'live' && source.value === 'open')
    return 'an operation fails that the rules allow';
  if (record.status === 'failed' && places !== 'live, absent') return `a failed operation leaves: ${places}`;
  return record.status === 'succeeded' && places !== 'absent, live'
    ? `an ended operation leaves: ${places}`
    : undefined;
}

const isOver = ({ consumers }: State) => consumers.every(({ step }) => step === 'done');

function nextStates(state: State, options: Options): Found<State>[] {
  const found: Found<State>[] = [];
  const add = (what: string, change: (next: State) => string | undefined) => {
    const next = copyOf(state);
    const violation = change(next) ?? (isOver(next) ? wrongAtEnd(next, options) : undefined);
    found.push(violation ? [what, next, violation] : [what, next]);
  };
  for (const [at, { step }] of state.consumers.entries()) {
    if (step === 'done') continue;
    add(`consumer ${at}: ${step}`, (next) => take(next, next.consumers[at] as Consumer, options));
    if (state.crashes > 0)
      add(`consumer ${at} dies`, (next) => {
        next.crashes -= 1;
        next.consumers[at] = begin();
        return undefined;
      });
  }
  if (state.source.state !== 'live') return found;
  const write = (next: State, value: Value) => {
    next.etags += 1;
    next.source = { state: 'live', value, etag: next.etags };
    return undefined;
  };
  const { value } = state.source;
  if (state.admins > 0)
    add('the admin makes the row final', (next) => {
      next.admins -= 1;
      return write(next, 'final');
    });
  if (state.upkeeps > 0)
    add('upkeep writes the row', (next) => {
      next.upkeeps -= 1;
      return write(next, value);
    });
  return found;
}

/** Visits the states of an operation whose message is handled by `consumers` at the same time. */
export function explore(consumers: number, options: Options): Explored {
  return exploreStates<State>({
    first: {
      source: { state: 'live', value: 'open', etag: FIRST_ETAG },
      destination: ABSENT,
      record: { status: 'running', isLimited: options.isLimited },
      consumers: Array.from({ length: consumers }, begin),
      admins: 1,
      upkeeps: 1,
      // Two consumers are as one that has died, and its message.
      crashes: consumers > 1 ? 0 : 1,
      etags: FIRST_ETAG,
    },
    nextStates: (state) => nextStates(state, options),
    isOver,
    keyOf,
  });
}

/** Numbers ETags by their first use, and leaves out what a consumer reads again before it uses it. */
function keyOf({ source, destination, record, consumers, admins, upkeeps, crashes }: State): string {
  const numbers = new Map<number, number>([
    [0, 0],
    [FIRST_ETAG, 1],
  ]);
  const number = (etag: number) => numbers.get(etag) ?? numbers.set(etag, numbers.size).get(etag);
  const cell = (one: Cell) => (one.state === 'absent' ? [] : [one.state, one.value, number(one.etag)]);
  const read = ({ step, isLimited, isRefused, hasAsked, copiedFrom, reached, source: found }: Consumer) => {
    if (step === 'done' || step === 'read record') return [step];
    const own = [step, isLimited, isRefused, hasAsked, number(copiedFrom)];
    if (step === 'read destination') return own;
    return step === 'read source' ? [...own, cell(reached)] : [...own, cell(reached), cell(found)];
  };
  return JSON.stringify([
    cell(source),
    cell(destination),
    record,
    consumers.map(read).sort(),
    admins,
    upkeeps,
    crashes,
  ]);
}

if (import.meta.main) {
  const [broken] = process.argv.slice(2) as [Rule | undefined];
  printExplored(['1', '2'] as const, (consumers) => explore(Number(consumers), { broken, isLimited: true }));
}
