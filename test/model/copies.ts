/**
 * Executable specification of the copies of the model guard's record (lib/operations/model-record.ts): visits every state of a record of two rows
 * and its copies in two accounts, with processes of two models that start, and a command that changes a row. Each may die, and its last request
 * may be executed late.
 *   node test/model/copies.ts [broken rule]
 *
 * Each storage request is one step. A copy never says a model that the record does not have, and from every state a start can fill the copies.
 */

import { copyOf, type Explored, exploreStates, type Found, printExplored } from './explore.ts';

/** What the broken rules do instead. */
export const RULES = {
  emptyOne: 'the copy in one account is not emptied',
  writeFirst: 'the record is written before the copies are emptied',
  fillAnyway: 'a copy is filled although another process has emptied it',
  writeAnyway: 'the record is written although it has changed since it was read',
  leaveRows: 'rows that stay as they are are not written',
  leaveCopies: 'a command that begins to move entities to another key leaves the copies',
} as const;
export type Rule = keyof typeof RULES;

type Step = 'read' | 'empty 0' | 'empty 1' | 'write' | 'fill 0' | 'fill 1' | 'done';
interface Cell {
  value: string;
  etag: number;
}
interface Actor {
  /** The model of a start; the command changes the first row. */
  model: 'a' | 'b' | 'command';
  step: Step;
  rows: Cell[];
  copies: number[];
}
interface State {
  rows: [Cell, Cell];
  copies: [Cell, Cell];
  actors: Actor[];
  late: Actor[];
  etags: number;
  crashes: number;
}

/** The rows of the record with each model: each changes one of them. */
const MODELS = { a: ['1', '0'], b: ['0', '1'], command: ['2', undefined] } as const;
const WITH_COPIES: readonly Step[] = ['read', 'empty 0', 'empty 1', 'write', 'fill 0', 'fill 1', 'done'];

const stepsOf = ({ model }: Actor, broken: Rule | undefined): readonly Step[] =>
  WITH_COPIES.filter((step) => {
    if (model === 'command' && (step.startsWith('fill') || (broken === 'leaveCopies' && step.startsWith('empty'))))
      return false;
    return !(broken === 'emptyOne' && step === 'empty 1') && !(broken === 'writeFirst' && step === 'write');
  }).flatMap((step) => (broken === 'writeFirst' && step === 'read' ? ['read', 'write'] : [step]));

function take(state: State, actor: Actor, broken: Rule | undefined): void {
  const put = (cell: Cell, value: string) => Object.assign(cell, { value, etag: ++state.etags });
  const steps = stepsOf(actor, broken);
  const { step, model } = actor;
  actor.step = steps[steps.indexOf(step) + 1] ?? 'done';
  const at = Number(step.at(-1)) as 0 | 1;
  if (step === 'read') actor.rows = copyOf(state.rows);
  if (step.startsWith('empty')) actor.copies[at] = put(state.copies[at], '').etag;
  if (step.startsWith('fill')) {
    const isOwn = state.copies[at].etag === actor.copies[at];
    if (isOwn || broken === 'fillAnyway') put(state.copies[at], model);
  }
  if (step !== 'write') return;
  const written = MODELS[model].map((value, row) => {
    const isSame = value === undefined || (broken === 'leaveRows' && value === actor.rows[row]?.value);
    return isSame ? undefined : value;
  });
  const isThere = written.every(
    (value, row) => value === undefined || state.rows[row as 0 | 1].etag === actor.rows[row]?.etag,
  );
  if (!isThere && broken !== 'writeAnyway') {
    actor.step = 'done';
    return;
  }
  for (const [row, value] of written.entries()) if (value !== undefined) put(state.rows[row as 0 | 1], value);
}

function nextStates(state: State, broken: Rule | undefined): Found<State>[] {
  const found: Found<State>[] = [];
  const add = (what: string, change: (next: State) => void) => {
    const next = copyOf(state);
    change(next);
    const wrong = next.copies.some(
      ({ value }) =>
        value !== '' && MODELS[value as 'a'].some((wanted, row) => wanted !== next.rows[row as 0 | 1].value),
    );
    found.push(wrong ? [what, next, 'a copy says a model that the record does not have'] : [what, next]);
  };
  for (const [at, actor] of state.actors.entries()) {
    if (actor.step === 'done') continue;
    add(`${actor.model}: ${actor.step}`, (next) => take(next, next.actors[at] as Actor, broken));
    if (state.crashes > 0)
      add(`${actor.model} dies, and may send: ${actor.step}`, (next) => {
        next.crashes -= 1;
        next.late.push(copyOf(actor));
        (next.actors[at] as Actor).step = 'done';
      });
  }
  for (const [at, { model, step }] of state.late.entries()) {
    add(`late, ${model}: ${step}`, (next) => {
      for (const actor of next.late.splice(at, 1)) take(next, actor, broken);
    });
    add(`lost, ${model}: ${step}`, (next) => void next.late.splice(at, 1));
  }
  return found;
}

const isOver = ({ actors, late }: State) => late.length === 0 && actors.every(({ step }) => step === 'done');

/** Visits the states of two starts, with a start of one of the models once more, or a command. */
export function explore(third: Actor['model'], { broken }: { readonly broken?: Rule | undefined } = {}): Explored {
  const actors = (['a', 'b', third] as const).map((model): Actor => ({ model, step: 'read', rows: [], copies: [] }));
  const cell = (etag: number, value: string): Cell => ({ value, etag });
  return exploreStates({
    first: {
      rows: [cell(1, '1'), cell(2, '0')],
      copies: [cell(3, 'a'), cell(4, 'a')],
      actors,
      late: [],
      etags: 4,
      crashes: 1,
    },
    nextStates: (state) => nextStates(state, broken),
    isOver,
    keyOf: (state) => JSON.stringify(renumbered(state)),
  });
}

/** The state with its ETags numbered by their first use, without what nobody compares any more. */
function renumbered({ rows, copies, actors, late, crashes }: State) {
  const numbers = new Map<number, number>();
  const number = (etag: number) => {
    if (!numbers.has(etag)) numbers.set(etag, numbers.size);
    return numbers.get(etag);
  };
  const cell = ({ value, etag }: Cell) => [value, number(etag)];
  const actor = ({ model, step, ...read }: Actor) => {
    if (step === 'done') return [model];
    const isWritten = step.startsWith('fill');
    return [model, step, isWritten ? [] : read.rows.map(cell), read.copies.map(number)];
  };
  return [rows.map(cell), copies.map(cell), actors.map(actor), late.map(actor), crashes];
}

if (import.meta.main) {
  const [broken] = process.argv.slice(2) as [Rule | undefined];
  printExplored(['a', 'command'] as const, (third) => explore(third, { broken }));
}
