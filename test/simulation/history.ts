import type { Values } from '../../lib/index.ts';
import { addComputed } from '../../local/packs/example-values.ts';
import type { Step } from '../../local/walk/steps.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import type { Outcome } from './caller.ts';
import { createKept } from './kept.ts';
import { checkOrder, type Operation } from './linearizable.ts';

/** What callers did and learnt, and whether an order of it explains what they learnt. */

interface Call {
  readonly nth: number;
  readonly begun: number;
  readonly ended: number;
  readonly outcome: Outcome;
}

type Allows = (entity: Entity, change: 'update' | 'delete' | 'move', values: Values) => boolean;
const MOVE_AWAY = 'move away';
const ALL: Allows = () => true;

/** Fields that callers decide; `any` after a move, whose values another entity had. */
type State = Values | 'none' | 'any';
type Change = 'create' | 'put' | 'update' | 'delete';
type KeyOperation = Operation<State> & { readonly nth: number };

/** What has happened to one key, or to all keys for which `concerns` is true. */
interface Entry {
  readonly concerns: (entity: Entity, key: Values) => boolean;
  readonly operations: (entity: Entity, key: Values) => readonly KeyOperation[];
}

export interface History {
  readonly steps: readonly (Step & { readonly outcome: string })[];
  /** `allows` is false for values of an entity that the caller may not change. */
  addWrite(entity: Entity, step: Step, call: Call, allows?: Allows): void;
  addRead(entity: Entity, key: Values, call: Call): void;
  /** What a list has is read, and so is, unless `isPart`, what it lacks. */
  addList(entity: Entity, partition: Values, call: Call & { readonly isPart: boolean }): void;
  /** The keys that calls have named, and those to which moves may have brought children. */
  keys(): readonly { readonly entity: Entity; readonly key: Values }[];
  /** A sentence for each key whose history no order explains, or whose entity is nowhere, and the number of those that take too long. */
  check(): { readonly problems: string[]; readonly undecided: number; readonly checked: number };
}

/** A request whose sender knows no outcome is executed within this time, or never. */
const UNKNOWN_FOR_MS = 40_000;

export function createHistory(): History {
  const entries: Entry[] = [];
  const known = new Map<string, { readonly entity: Entity; readonly key: Values }>();
  const steps: (Step & { readonly outcome: string })[] = [];
  /** What each version of an entity had. */
  const versions = new Map<string, State>();
  const kept = createKept();
  /** Where moves may have brought entities. */
  const moved: { readonly entity: Entity; readonly key: Values }[] = [];
  /** What the last read of each key found. */
  const found = new Map<string, { readonly entity: Entity; readonly key: Values } | undefined>();
  const idOfVersion = (id: string, etag: string | undefined) => `${id} ${etag}`;
  const noteVersion = (entity: Entity, id: string, { etag, values }: Outcome) => {
    if (etag && values) versions.set(idOfVersion(id, etag), project(entity, values));
  };

  function note(entity: Entity, key: Values): string {
    const id = idOf(entity, key);
    if (isComplete(entity, key))
      known.set(id, { entity, key: baseValues.pick(normalize(entity, key), entity.keyFields) });
    return id;
  }

  function addChange(
    entity: Entity,
    change: Change,
    values: Values,
    call: Call & { readonly code: string; readonly allows: Allows },
  ): void {
    const id = note(entity, change === 'create' ? addComputed(entity, values) : values);
    const { nth, begun, ended, code, outcome, allows } = call;
    // A client takes an entity that is as a repeated request wanted for a success.
    const required = outcome.sent > 1 ? undefined : versions.get(idOfVersion(id, outcome.ifMatch));
    const condition = required === undefined ? '' : ` if it is ${nameState(required)}`;
    const text = `${nth}. ${change} ${JSON.stringify(values)}${condition}: ${code}${outcome.sent > 1 ? `, sent ${outcome.sent} times` : ''}`;
    const operations: KeyOperation[] = [];
    // The search for an order applies an operation thousands of times.
    const projected = project(entity, values);
    // A delete that the SDK repeats cannot tell whether it was its first request that deleted the row.
    const isRepeat = (state: State) => change === 'delete' && code === 'ok' && state === 'none';
    // A change that changes nothing is a repetition.
    const isAllowed = (before: State, after: State) =>
      typeof before === 'string' ||
      change === 'create' ||
      nameState(before) === nameState(after) ||
      allows(entity, change === 'delete' ? change : 'update', before);
    const apply = (state: State) => {
      const isMet =
        required === undefined || state === 'any' || nameState(state) === nameState(required) || isRepeat(state);
      const effect = isMet ? effectOf(change, { values, projected }, state) : undefined;
      return effect && isAllowed(state, effect.state) ? effect : undefined;
    };
    noteVersion(entity, id, outcome);
    if (code === 'ok') operations.push({ nth, begun, ended, isOptional: false, apply, text });
    else if (code !== 'unknown')
      operations.push({
        nth,
        begun,
        ended,
        isOptional: false,
        apply: (state) => rejection(entity, change, code, state),
        text,
      });
    // Each request of the client may have been executed, and those without a response later than the last.
    const perhaps = code === 'unknown' ? Math.max(1, outcome.sent) : outcome.sent - 1;
    const late = { nth, begun, ended: ended + UNKNOWN_FOR_MS, isOptional: true, apply, text: `${text} (perhaps)` };
    for (let times = 0; times < perhaps; times += 1) operations.push(late);
    entries.push({ concerns: (other, key) => idOf(other, key) === id, operations: () => operations });
  }

  /** What may delete an entity, or write it with values that are not known. */
  function addWild(
    call: Call & { readonly allows: Allows },
    becomes: 'none' | 'any',
    concerns: Entry['concerns'],
    what: string,
  ): void {
    const { nth, begun, outcome, allows } = call;
    const ended = outcome.code === 'unknown' || outcome.sent > 1 ? Number.POSITIVE_INFINITY : call.ended;
    const text = `${nth}. ${what}: ${outcome.code} (perhaps)`;
    entries.push({
      concerns,
      operations(entity) {
        const change = what === MOVE_AWAY ? 'move' : 'delete';
        const isAllowed = (state: State) => typeof state === 'string' || allows(entity, change, state);
        const apply = (state: State) => (isAllowed(state) ? { state: becomes } : undefined);
        const one = { nth, begun, ended, isOptional: true, apply, text } as const;
        return [one, one];
      },
    });
  }

  function readOperation(
    entity: Entity,
    values: Values | undefined,
    { nth, begun, ended, what }: { nth: number; begun: number; ended: number; what: 'read' | 'list' },
  ): KeyOperation {
    const found = values && project(entity, values);
    const text = `${nth}. ${what}: ${JSON.stringify(values)}`;
    // A list leaves out large fields.
    const hidden = what === 'list' ? entity.large : [];
    const shown = (state: State) =>
      nameState(typeof state === 'object' && hidden.length > 0 ? baseValues.omit(state, hidden) : state);
    const apply = (state: State): { readonly state: State } | undefined => {
      if (state === 'any') return { state: found && hidden.length > 0 ? state : (found ?? 'none') };
      const agrees = found ? shown(state) === shown(found) : state === 'none';
      return agrees ? { state } : undefined;
    };
    return { nth, begun, ended, isOptional: false, apply, text };
  }

  return {
    steps,
    addWrite(entity, step, given, allows = ALL) {
      const call = { ...given, allows };
      const { key = {}, values = {}, actions = [] } = step;
      const { code, parts } = call.outcome;
      steps.push({ ...step, outcome: code });
      kept.noteWrite(entity, step, given);
      const withKey = { ...values, ...key };
      switch (step.do) {
        case 'create':
          return addChange(entity, 'create', values, { ...call, code });
        case 'put':
          return addChange(entity, 'put', withKey, { ...call, code });
        case 'update':
        case 'merge':
          return addChange(entity, 'update', withKey, { ...call, code });
        case 'delete':
          addChange(entity, 'delete', key, { ...call, code });
          return addWild(call, 'none', isBelow(entity, key), 'delete of the parent');
        case 'batch':
        case 'atomic':
          actions.forEach((action, index) => {
            const [kind, given = {}] = Object.entries(action)[0] ?? [];
            const change = kind === 'patch' ? 'update' : (kind as Change);
            const known = parts?.[index] ?? (code === 'unknown' ? 'unknown' : 'rejected');
            addChange(entity, change, given, { ...call, code: known });
            if (change === 'delete') addWild(call, 'none', isBelow(entity, given), 'delete of the parent');
          });
          return;
        case 'deleteRange':
          return addWild(call, 'none', isIn(entity, key), 'delete of the range');
        case 'archive':
          return addWild(call, 'none', isAtOrBelow(entity, key), 'archive');
        case 'move':
          addWild(call, 'none', isAtOrBelow(entity, key), MOVE_AWAY);
          note(entity, { ...key, ...values });
          moved.push({ entity, key: { ...key, ...values } });
          return addWild(call, 'any', isAtOrBelow(entity, { ...key, ...values }), 'move to here');
        default:
      }
    },
    addRead(entity, key, { nth, begun, ended, outcome }) {
      const id = note(entity, key);
      if (outcome.code !== 'ok') return;
      noteVersion(entity, id, outcome);
      found.set(id, outcome.values && { entity, key: normalize(entity, key) });
      const one = readOperation(entity, outcome.values, { nth, begun, ended, what: 'read' });
      entries.push({ concerns: (other, otherKey) => idOf(other, otherKey) === id, operations: () => [one] });
    },
    addList(entity, partition, { nth, begun, ended, outcome, isPart }) {
      if (outcome.code !== 'ok') return;
      const found = new Map((outcome.items ?? []).map((values) => [note(entity, values), values]));
      entries.push({
        concerns: (other, key) => other === entity && isIn(entity, partition)(other, key),
        operations(_, key) {
          const values = found.get(idOf(entity, key));
          return isPart && !values ? [] : [readOperation(entity, values, { nth, begun, ended, what: 'list' })];
        },
      });
    },
    keys() {
      for (const one of [...known.values()]) for (const key of kept.placesOf(one, moved)) note(one.entity, key);
      return [...known.values()];
    },
    check() {
      const problems: string[] = [];
      let undecided = 0;
      for (const [id, { entity, key }] of known) {
        if (!isCheckable(entity)) continue;
        const operations = entries
          .filter(({ concerns }) => concerns(entity, key))
          .flatMap((one) => one.operations(entity, key));
        const verdict = checkOrder<State>(operations, 'none', nameState);
        if (verdict === 'undecided') undecided += 1;
        if (verdict === 'not linearizable')
          problems.push([`no order explains what happened to ${id}:`, ...operations.map(describe)].join('\n    '));
      }
      problems.push(...kept.check([...found.values()].filter((one) => one !== undefined)));
      return { problems, undecided, checked: known.size };
    },
  };
}

const describe = ({ begun, ended, text }: KeyOperation) => `${begun.toFixed(0)}-${ended.toFixed(0)} ms ${text}`;

/** Not what time deletes, and what has no values of its own. */
const isCheckable = (entity: Entity) => !entity.series && !entity.period && !entity.expiry;

function idOf(entity: Entity, key: Values): string {
  const values = normalize(entity, key);
  return `${entity.name} ${JSON.stringify(entity.keyFields.map((field) => values[field]))}`;
}

const isComplete = (entity: Entity, key: Values) => entity.keyFields.every((field) => key[field] !== undefined);

/** The values as the schema returns them. */
function normalize(entity: Entity, values: Values): Values {
  const given = Object.entries(values).map(([field, value]) => {
    const parsed = value === null ? undefined : entity.schema.shape[field]?.safeParse(value);
    return [field, parsed?.success ? parsed.data : value];
  });
  return Object.fromEntries(given);
}

const agree = (fields: readonly string[], one: Values, other: Values) =>
  fields.every((field) => JSON.stringify(one[field]) === JSON.stringify(other[field]));

const isIn = (entity: Entity, partition: Values) => (other: Entity, key: Values) =>
  (other === entity || other.childOf === entity) &&
  agree(entity.partition.fields, normalize(other, key), normalize(entity, partition));
const isBelow = (entity: Entity, parent: Values) => (other: Entity, key: Values) =>
  other.childOf === entity && agree(entity.keyFields, normalize(other, key), normalize(entity, parent));
const isAtOrBelow = (entity: Entity, at: Values) => (other: Entity, key: Values) =>
  (other === entity && idOf(entity, key) === idOf(entity, at)) || isBelow(entity, at)(other, key);

const projected = new WeakMap<Entity, readonly string[]>();
/** The fields whose values are those of the last write that gave them: no default, and nothing that the engine decides. */
function projectedFields(entity: Entity): readonly string[] {
  const known = projected.get(entity);
  if (known) return known;
  const copied = Object.values(entity.denormalized).flatMap(({ copies }) => Object.keys(copies));
  const others = [
    ...entity.keyFields,
    ...entity.decidedFields,
    ...Object.keys(entity.derived),
    ...Object.keys(entity.defaults),
    ...Object.keys(entity.attachments),
    ...Object.keys(entity.access.set ?? {}),
    ...entity.encrypted,
    ...entity.apartFields,
    // Removed with the source, if it is in the partition.
    ...Object.keys(entity.denormalized),
    ...copied,
  ];
  const fields = Object.keys(entity.schema.shape).filter(
    (field) => entity.schema.shape[field]?.safeParse(undefined).data === undefined && !others.includes(field),
  );
  projected.set(entity, fields);
  return fields;
}

function project(entity: Entity, values: Values): Values {
  const given = baseValues.pick(normalize(entity, values), projectedFields(entity));
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));
}

function effectOf(
  change: Change,
  { values, projected }: { readonly values: Values; readonly projected: Values },
  state: State,
): { readonly state: State } | undefined {
  switch (change) {
    case 'create':
      return state === 'none' || state === 'any' ? { state: projected } : undefined;
    case 'put':
      return { state: projected };
    case 'delete':
      return { state: 'none' };
    case 'update': {
      if (state === 'any') return { state };
      if (state === 'none') return undefined;
      const kept = Object.entries(state).filter(([field]) => !(field in values));
      return { state: { ...Object.fromEntries(kept), ...projected } };
    }
  }
}

/** What a rejected write says of the state. */
function rejection(entity: Entity, change: Change, code: string, state: State): { readonly state: State } | undefined {
  const isAlone = Object.keys(entity.references).length === 0 && !entity.childOf && entity.movable.length === 0;
  if (!isAlone || entity.archive || state === 'any') return { state };
  const isAbsent = state === 'none';
  if (change === 'create' && code === 'duplicate-key') return isAbsent ? undefined : { state };
  if ((change === 'update' || change === 'delete') && code === 'not-found') return isAbsent ? { state } : undefined;
  return { state };
}

const named = new WeakMap<Values, string>();
function nameState(state: State): string {
  if (typeof state === 'string') return state;
  const name =
    named.get(state) ?? JSON.stringify(Object.entries(state).sort(([one], [other]) => (one < other ? -1 : 1)));
  named.set(state, name);
  return name;
}
