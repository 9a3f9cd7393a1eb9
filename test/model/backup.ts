/**
 * Executable specification of the backup (lib/operations/backup): visits every state of writers that change two rows of a partition, of a snapshot
 * that scans them one after the other, of a queue function that has the intent of a writer, and of a move to an account whose clock is behind.
 * A writer may die between its commit and its line of the journal, stop there for long, or lose a reply. A caller may repeat its request then.
 *   node test/model/backup.ts [script] [broken rule]
 *
 * - A line is appended after the commit and before the response. The rows of a line have the times that storage gave them. The line has the
 *   greatest of them, and the cuts from then on have the line.
 * - A transaction that only deletes got no time. It requires the ETag of each row, and its rows directly follow the versions that it deleted.
 *   The Date of its response is the time of the line, but orders nothing: others may have written the row before it.
 * - A move gives copies the times of another clock. It copies a row, and opens the slot at the target, once that clock has passed the source.
 *   Whoever opens it for a mover that died waits as well.
 * - A snapshot begins before its first request and ends after its last one by what clocks may differ. A cut takes the last one that has ended,
 *   and the lines from its begin on, none from before.
 * - A queue function that has the intent of a writer appends the rows as it reads them, with their times: those of one write in one line. So does
 *   a request that finds its change done, and one that is refused when it is sent again after a lost reply.
 *
 * Each storage request is one step. In each state the rows are restored to every moment, and compared with what the writers have done by then:
 * a change that has a line is there, whole. One that has none yet may be missing, each row for itself, and nothing else may. A cut has it whose
 * snapshot began after it, or once its intent was handled, unless the row has changed before.
 */

import { copyOf, type Explored, exploreStates, type Found, printExplored } from './explore.ts';

/** What the broken rules do instead. */
export const RULES = {
  deletedAtResponse: 'a delete is ordered by the Date of its response',
  blindDelete: 'a delete without an ETag does not read the row',
  unconditionalDelete: 'a delete that has read the row does not require what it read',
  oneEtag: 'a transaction of deletes requires the ETag of one row only',
  cutAtVersion: 'a delete is in each cut after the version that it deleted',
  byBegin: 'a cut takes a snapshot that began before it',
  fromEnd: 'the journal is replayed from the end of the snapshot',
  fromStart: 'lines from before the snapshot are replayed',
  noMargin: 'a snapshot begins at its first request, although clocks differ',
  noLateMargin: 'a snapshot ends at its last request, although clocks differ',
  earlyManifest: 'the manifest is written first',
  lateAppend: 'a line is appended after the response',
  lateLine: 'the intent ends before the line is appended',
  unreadOwn: 'lines in the account of the app are not read',
  byRow: 'a cut has each row by its own time',
  staleCopies: 'a snapshot has the newest row of all accounts',
  firstOwner: 'a snapshot reads the account that had the rows when it began',
  inOrder: 'merges are applied in the order of the journal, and again if their line is repeated',
  oldMerges: 'merges are applied to a row that has them already',
  noSeen: 'the queue function writes no line',
  seenByRow: 'the queue function writes a line for each row',
  seenNow: 'the line of the queue function has the time at which it was written',
  earlyCopy: 'a row is copied before the clock of the target has passed its time',
  earlySwitch: 'a move ends before the clock of the target has passed the last change at the source',
  silentRepeat: 'a request that finds its change done writes no line',
} as const;
export type Rule = keyof typeof RULES;

type RowName = 'a' | 'b';
type Kind = keyof typeof KINDS;
type Values = { x: number; y: number };
type Effect = 'put' | 'merge' | 'delete';

/** What an operation changes, in one transaction, and whether it requires what it has read. */
const KINDS = {
  put: { a: 'put' },
  putOther: { b: 'put' },
  merge: { a: 'merge' },
  replace: { a: 'put', isConditional: true },
  delete: { a: 'delete', isConditional: true },
  putBoth: { a: 'put', b: 'put' },
  deleteBoth: { a: 'delete', b: 'delete', isConditional: true },
  deleteAndPut: { a: 'delete', b: 'put' },
} as const satisfies Record<string, Partial<Record<RowName, Effect>> & { isConditional?: true }>;

interface Stored extends Values {
  time: number;
  by: number;
}
type Rows = Record<RowName, Stored | null>;
interface LineRow {
  row: RowName;
  /** Orders the versions of the row. */
  time: number;
  put?: Values;
  merge?: number;
  deleted?: true;
}
interface Line {
  /** The cuts from here on have the line. */
  time: number;
  rows: LineRow[];
  isOwn?: true;
}
interface Snapshot {
  begin: number;
  end: number;
  /** The last moment at which the scan has read, which `fromEnd` takes. */
  ended: number;
  rows: Rows;
}
/** A change of a row as it happened. */
interface Version {
  by: number;
  row: RowName;
  effect: Effect;
  /** When the transaction was committed, and the greatest time that it gave to a row. */
  time: number;
  /** The time of the row. */
  at: number;
  /** From when on the cuts must have it; null if no line is known to be stored. */
  cut: number | null;
}
type Step = 'read' | 'commit' | 'reply' | 'look' | 'append' | 'acknowledge' | 'done' | 'dead';
interface Writer {
  kind: Kind;
  step: Step;
  found: Rows;
  /** The account that executes its transaction, and responds. */
  account: number;
  line: Line | null;
  isAnnounced: boolean;
  hasIntent: boolean;
  sees: 'no' | RowName | 'append';
  seen: { row: RowName; stored: Stored | null; isLast: boolean; date: number }[];
  isAcknowledged: boolean;
  /** True for the second request of a caller whose first one has died. */
  isRepeated: boolean;
}
interface State {
  clock: number;
  accounts: Rows[];
  owner: number;
  isSealed: boolean;
  sealed: number;
  mover: number;
  versions: Version[];
  journal: Line[];
  snapshots: Snapshot[];
  scan: { begin: number; owner: number; next: RowName | 'manifest'; rows: Rows } | null;
  writers: Writer[];
  left: Record<'crashes' | 'lost' | 'scans' | 'away' | 'repeats' | 'ticks' | 'requests', number>;
  isOver: boolean;
}

/** The times of commits differ by 10, so that others fit between them. */
const TICK = 10;
const SECOND = 2 * TICK;
/** By which the clocks of accounts may differ at most. */
const MARGIN = 3 * TICK;
const SKEW = 25;
const MINUTE = 100;

const toSecond = (time: number) => Math.floor(time / SECOND) * SECOND;
const rowsOf = (kind: Kind) =>
  (['a', 'b'] as const).flatMap((row) => {
    const effect = (KINDS[kind] as Partial<Record<RowName, Effect>>)[row];
    return effect ? [{ row, effect }] : [];
  });
const isDeleteOnly = (kind: Kind) => rowsOf(kind).every(({ effect }) => effect === 'delete');
const isConditional = (kind: Kind) => 'isConditional' in KINDS[kind];

interface Script {
  readonly writers: readonly Kind[];
  /** The rows at the beginning, of which there is a snapshot. */
  readonly has?: RowName[];
  /** Writers that have sent an intent. */
  readonly intents?: readonly number[];
  readonly moves?: true;
  readonly left?: Partial<State['left']>;
}

export const SCRIPTS = {
  recreate: { has: ['a'], writers: ['delete', 'put'], left: { lost: 1, ticks: 1 } },
  recreateScan: { has: ['a'], writers: ['delete', 'put'], left: { crashes: 1, lost: 1, scans: 1 } },
  deletes: { has: ['a'], writers: ['delete', 'delete', 'put'], left: { lost: 1 } },
  replaced: { has: ['a'], writers: ['delete', 'replace'], left: { crashes: 1, scans: 1 } },
  merges: { has: ['a'], writers: ['merge', 'merge', 'put'], left: { repeats: 1, crashes: 1 } },
  mergedScan: { has: ['a'], writers: ['merge', 'merge'], left: { scans: 1, away: 1, repeats: 1 } },
  both: { writers: ['putBoth', 'putBoth'], left: { crashes: 1, lost: 1, scans: 1 } },
  bothDeleted: { has: ['a', 'b'], writers: ['deleteBoth', 'putBoth'], left: { crashes: 1, scans: 1 } },
  bothDeletedOne: { has: ['a', 'b'], writers: ['deleteBoth', 'putOther'], left: { lost: 1 } },
  mixed: { has: ['a'], writers: ['deleteAndPut', 'put'], left: { crashes: 1, scans: 1, away: 1 } },
  intent: { has: ['a'], writers: ['putBoth', 'put'], intents: [0], left: { crashes: 2 } },
  intentDeleted: { has: ['a'], writers: ['delete', 'put'], intents: [0], left: { crashes: 2 } },
  intentDeletedScan: { has: ['a'], writers: ['delete', 'put'], intents: [0], left: { crashes: 1, scans: 1 } },
  moved: { has: ['a'], writers: ['put', 'delete'], moves: true },
  movedLost: { has: ['a'], writers: ['put', 'delete'], moves: true, left: { lost: 1, crashes: 1 } },
  movedTwice: { has: ['a'], writers: ['put', 'put'], moves: true },
  movedRecreated: { writers: ['put', 'delete', 'put'], moves: true },
  movedScan: { has: ['a'], writers: ['put'], moves: true, left: { scans: 1 } },
  movedTwiceScan: { has: ['a'], writers: ['put', 'put'], moves: true, left: { scans: 1, crashes: 1 } },
  repeated: { has: ['a'], writers: ['putBoth', 'put'], left: { crashes: 1, requests: 1, scans: 1 } },
} satisfies Record<string, Script>;
export type ScriptName = keyof typeof SCRIPTS;

const NO_ROWS: Rows = { a: null, b: null };

function initialState({ writers, has = [], intents = [], left = {} }: Script): State {
  const rows = { ...NO_ROWS };
  for (const row of has) rows[row] = { x: 1, y: 1, time: 0, by: -1 };
  return {
    clock: TICK,
    accounts: [rows, NO_ROWS].map(copyOf),
    owner: 0,
    isSealed: false,
    sealed: 0,
    mover: 0,
    versions: has.map((row) => ({ by: -1, row, effect: 'put', time: 0, at: 0, cut: 0 })),
    journal: [],
    snapshots: [{ begin: -MARGIN, end: 0, ended: 0, rows: copyOf(rows) }],
    scan: null,
    writers: writers.map((kind, at) => ({
      kind,
      step: isConditional(kind) ? 'read' : 'commit',
      found: copyOf(NO_ROWS),
      account: 0,
      line: null,
      isAnnounced: intents.includes(at),
      hasIntent: intents.includes(at),
      sees: 'no',
      seen: [],
      isAcknowledged: false,
      isRepeated: false,
    })),
    left: { crashes: 0, lost: 0, scans: 0, away: 0, repeats: 0, ticks: 0, requests: 0, ...left },
    isOver: false,
  };
}

/** The clock of the account that has the rows. */
const ownClock = ({ clock, owner }: Pick<State, 'clock' | 'owner'>) => clock - owner * SKEW;
const dateOf = (state: Pick<State, 'clock' | 'owner'>) => toSecond(ownClock(state));
const storedIn = ({ accounts, owner }: State) => accounts[owner] as Rows;
const valueBy = (writer: number) => writer + 2;

/** The rows at a moment, as a restore computes them. */
function restore({ snapshots, journal }: Pick<State, 'snapshots' | 'journal'>, cut: number, broken?: Rule) {
  const isBefore = ({ begin, end }: Snapshot) => (broken === 'byBegin' ? begin : end) <= cut;
  const snapshot = snapshots.findLast(isBefore);
  const from = broken === 'fromStart' ? 0 : broken === 'fromEnd' ? snapshot?.ended : snapshot?.begin;
  const lines = journal.filter(
    ({ time, isOwn }) =>
      time >= (from ?? 0) && !(isOwn && broken === 'unreadOwn') && (broken === 'byRow' || time <= cut),
  );
  const restored: Record<RowName, Values | null> = { a: null, b: null };
  for (const row of ['a', 'b'] as const) {
    const known: LineRow[] = lines.flatMap(({ rows }) => rows).filter((line) => line.row === row);
    const base = snapshot?.rows[row];
    if (base) known.unshift({ row, time: base.time, put: { x: base.x, y: base.y } });
    const isMerge = ({ merge }: LineRow) => Number(merge !== undefined);
    // A row that has the time of a delete was written after it.
    const order = (one: LineRow, other: LineRow) =>
      (broken === 'inOrder' || broken === 'oldMerges' ? isMerge(one) - isMerge(other) : 0) ||
      (broken === 'inOrder' && isMerge(one) ? 0 : one.time - other.time) ||
      Number(other.deleted ?? 0) - Number(one.deleted ?? 0);
    for (const { time, put, merge } of known.toSorted(order)) {
      if (broken === 'byRow' && time > cut) continue;
      const found: Values | null = restored[row];
      if (put) restored[row] = put;
      else if (merge === undefined) restored[row] = null;
      else if (found) restored[row] = { ...found, y: merge };
    }
  }
  return restored;
}

/** What a row may be in a cut: the changes in their order, without some of those that may be missing. */
function allowedIn(versions: readonly Version[], cut: number, begin: number): (Values | null)[] {
  let allowed: (Values | null)[] = [null];
  for (const { by, effect, time, cut: from } of versions) {
    // A snapshot that began later has it.
    const isDue = (from !== null && from <= cut) || (time < begin && time <= cut);
    if (!isDue && time > cut) continue;
    const value = valueBy(by);
    const applied = allowed.map((found) => {
      if (effect === 'delete') return null;
      if (effect === 'put') return { x: value, y: value };
      return found && { ...found, y: value };
    });
    allowed = isDue ? applied : [...allowed, ...applied];
  }
  return allowed;
}

const isSame = (one: Values | null, other: Values | null) => one?.x === other?.x && one?.y === other?.y;

/** What is wrong with the restored rows. It depends on little of a state, so it is computed once for states that agree in it. */
function checker(broken: Rule | undefined) {
  const known = new Map<string, string | undefined>();
  return (state: State): string | undefined => {
    const { versions, journal, snapshots, isOver, writers } = state;
    const key = JSON.stringify([
      versions,
      journal,
      snapshots,
      isOver,
      writers.map((one) => hasEnded(one) && !one.hasIntent),
    ]);
    if (!known.has(key)) known.set(key, violationIn(state, broken));
    return known.get(key);
  };
}

function violationIn(state: State, broken: Rule | undefined): string | undefined {
  const { versions, journal, snapshots, isOver } = state;
  const cuts = [
    ...versions.flatMap(({ time, at, cut }) => [time, at, cut ?? time]),
    ...journal.flatMap((line) => [line.time, ...line.rows.map(({ time }) => time)]),
    ...snapshots.map(({ end }) => end),
    Number.POSITIVE_INFINITY,
  ];
  for (const cut of new Set(cuts)) {
    // The backup begins with the first snapshot.
    if (cut < 0) continue;
    const restored = restore(state, cut, broken);
    // What is demanded does not depend on the rule that is broken.
    const begin = snapshots.findLast(({ end }) => end <= cut)?.begin ?? 0;
    // An intent was handled, and the row has not changed since.
    const isHandled = ({ by }: Version) => {
      const writer = state.writers[by];
      return writer?.isAnnounced && !writer.hasIntent && hasEnded(writer);
    };
    for (const row of ['a', 'b'] as const) {
      const last = versions.findLast((version) => version.row === row);
      if (cut === Number.POSITIVE_INFINITY && last && isHandled(last) && !isSame(storedIn(state)[row], restored[row]))
        return `the queue has the intent of ${valueBy(last.by)}, and ${row} is still missing`;
      const ofRow = versions.filter((version) => version.row === row);
      const allowed = allowedIn(ofRow, cut, begin);
      if (allowed.some((values) => isSame(values, restored[row]))) continue;
      const text = (values: Values | null) => (values ? `${values.x}, ${values.y}` : 'absent');
      return `at ${cut}, ${row} is ${text(restored[row])}, not ${allowed.map(text).join(' or ')}`;
    }
    if (!isOver || cut !== Number.POSITIVE_INFINITY) continue;
    for (const row of ['a', 'b'] as const)
      if (!isSame(storedIn(state)[row], restored[row])) return `in the end, ${row} is not what is stored`;
  }
  return undefined;
}

/** Notes that the cuts from a time on must have a change. None has a part of a transaction, and only a delete may count earlier than it was. */
function demand(state: State, writer: number, { time, row }: { readonly time: number; readonly row?: RowName }): void {
  for (const version of state.versions)
    if (version.by === writer && (row === undefined || version.row === row)) {
      const from = version.effect === 'delete' ? time : Math.max(time, version.time);
      version.cut = Math.min(version.cut ?? from, from);
    }
}

/** Executes the transaction of a writer. False if storage rejects it. */
function commit(state: State, at: number, broken: Rule | undefined): boolean {
  const writer = state.writers[at] as Writer;
  const { kind, found } = writer;
  const rows = storedIn(state);
  const isFree = broken === 'unconditionalDelete' || broken === 'blindDelete';
  const requires = isConditional(kind) && !(isFree && isDeleteOnly(kind));
  for (const { row, effect } of rowsOf(kind)) {
    if (effect !== 'put' && !rows[row]) return false;
    const isRequired = requires && !(broken === 'oneEtag' && row === 'b' && effect === 'delete');
    if (isRequired && rows[row]?.time !== found[row]?.time) return false;
  }
  state.clock += TICK;
  writer.account = state.owner;
  let time = ownClock(state);
  const changed = rowsOf(kind).map(({ row, effect }, index) => ({ row, effect, at: time + index }));
  time = Math.max(...changed.map((change) => change.at));
  for (const change of changed) {
    const { row, effect, at: written } = change;
    state.versions.push({ by: at, row, effect, time, at: written, cut: null });
    const value = valueBy(at);
    const before = rows[row];
    if (effect === 'delete') rows[row] = null;
    else if (effect === 'put') rows[row] = { x: value, y: value, time: written, by: at };
    else if (before) rows[row] = { ...before, y: value, time: written, by: at };
  }
  return true;
}

/** The line of a transaction whose rows got these times. Deletes without a row that got a time are dated by `date`, that of a response. */
function lineOf(writer: Writer, by: number, { times, date }: { times: number[]; date: number }, broken?: Rule): Line {
  const { kind, found } = writer;
  const greatest = Math.max(...times);
  const deleted = rowsOf(kind).flatMap(({ row, effect }) => {
    if (effect !== 'delete') return [];
    const version = found[row]?.time;
    return version === undefined ? [] : [version + 1];
  });
  const order = Math.max(...deleted);
  const after = times.length > 0 ? greatest : broken === 'deletedAtResponse' ? Math.max(date, order) : order;
  let written = 0;
  const rows = rowsOf(kind).map(({ row, effect }): LineRow => {
    if (effect === 'delete') return { row, time: after, deleted: true };
    const time = times[written++] ?? 0;
    const value = valueBy(by);
    return effect === 'put' ? { row, time, put: { x: value, y: value } } : { row, time, merge: value };
  });
  return { time: times.length > 0 ? greatest : broken === 'cutAtVersion' ? order : Math.max(order, date), rows };
}

function take(state: State, at: number, broken: Rule | undefined): string | undefined {
  const writer = state.writers[at] as Writer;
  const rows = storedIn(state);
  const { kind } = writer;
  switch (writer.step) {
    case 'read':
      writer.found = copyOf(rows);
      writer.step = rowsOf(kind).every(({ row }) => rows[row]) ? 'commit' : 'done';
      return undefined;
    case 'commit': {
      if (!commit(state, at, broken)) {
        writer.step = isConditional(kind) ? 'read' : 'done';
        return undefined;
      }
      const times = state.versions.flatMap(({ by, effect, at: time }) =>
        by === at && effect !== 'delete' ? [time] : [],
      );
      writer.line = times.length > 0 ? lineOf(writer, at, { times, date: 0 }, broken) : null;
      writer.step = writer.line ? 'append' : 'reply';
      if (broken === 'lateAppend' && writer.line) writer.step = 'acknowledge';
      return undefined;
    }
    case 'reply': {
      const responding = { clock: state.clock, owner: writer.account };
      writer.line = lineOf(writer, at, { times: [], date: dateOf(responding) }, broken);
      writer.step = broken === 'lateAppend' ? 'acknowledge' : 'append';
      const { time } = state.versions.find(({ by }) => by === at) as Version;
      const isNear = writer.line.time >= toSecond(time) && writer.line.time <= ownClock(responding);
      return isNear ? undefined : `a delete at ${time} is in the cuts from ${writer.line.time} on`;
    }
    case 'look': {
      // The rows have the id of the writer. That an absent row was deleted after it was read is certain, and that is what the line says.
      const isOwn = rowsOf(kind).every(({ row, effect }) => (effect === 'delete' ? !rows[row] : rows[row]?.by === at));
      writer.step = isOwn ? 'append' : 'dead';
      if (!isOwn) {
        writer.found = NO_ROWS;
        return undefined;
      }
      const times = rowsOf(kind).flatMap(({ row, effect }) => (effect === 'delete' ? [] : [rows[row]?.time ?? 0]));
      writer.line = lineOf(writer, at, { times, date: dateOf(state) }, broken);
      if (writer.isRepeated && broken === 'silentRepeat') writer.step = 'acknowledge';
      return undefined;
    }
    case 'append':
      append(state, at);
      writer.step = writer.isAcknowledged ? 'done' : 'acknowledge';
      return undefined;
    default:
      writer.isAcknowledged = true;
      if (writer.line) demand(state, at, writer.line);
      writer.step = broken === 'lateAppend' ? 'append' : 'done';
      if (writer.step === 'done') Object.assign(writer, { line: null, found: NO_ROWS });
      return undefined;
  }
}

function append(state: State, at: number, isOwn = false): void {
  const { line } = state.writers[at] as Writer;
  if (!line) return;
  state.journal.push({ ...line, ...(isOwn && { isOwn }) });
  demand(state, at, line);
}

/** A step of the queue function that has the intent of a writer. */
function see(state: State, at: number, broken: Rule | undefined): undefined {
  const writer = state.writers[at] as Writer;
  const { kind, sees, seen } = writer;
  if (sees === 'no') {
    // An intent is hidden for a minute.
    state.clock += MINUTE;
    writer.sees = 'a';
  } else if (sees === 'append') {
    writer.hasIntent = false;
    writer.sees = 'no';
    const now = ownClock(state);
    const found = seen.filter(({ stored, row }) => stored || rowsOf(kind).some((one) => one.row === row));
    const groups = Map.groupBy(found, ({ stored, row }) => (broken === 'seenByRow' ? row : stored?.by));
    for (const group of groups.values()) {
      const rows = group.map(({ row, stored, date }): LineRow => {
        // Nothing that is written after the read has this time, and the intent has been hidden for longer.
        if (!stored) return { row, time: date - MARGIN, deleted: true };
        return { row, time: broken === 'seenNow' ? now : stored.time, put: { x: stored.x, y: stored.y } };
      });
      const time = Math.max(...rows.map((row) => row.time));
      if (broken !== 'noSeen') state.journal.push({ time, rows });
      for (const { isLast, row } of group) if (isLast) demand(state, at, { time, row });
    }
    writer.seen = [];
  } else {
    const stored = storedIn(state)[sees];
    const isLast = state.versions.findLast(({ row }) => row === sees)?.by === at;
    seen.push({ row: sees, stored: copyOf(stored), isLast, date: dateOf(state) });
    writer.sees = sees === 'a' && rowsOf(kind).length > 1 ? 'b' : 'append';
  }
}

const MOVE = ['copy a', 'copy b', 'seal', 'copy a again', 'copy b again', 'switch', 'clean a', 'clean b'] as const;

function move(state: State, broken: Rule | undefined): undefined {
  const [source, target] = state.accounts as [Rows, Rows];
  const step = MOVE[state.mover] as (typeof MOVE)[number];
  state.mover += 1;
  const row = step.includes(' b') ? 'b' : 'a';
  if (step === 'seal') {
    state.isSealed = true;
    state.sealed = state.clock;
  } else if (step === 'switch') {
    if (broken !== 'earlySwitch') state.clock = Math.max(state.clock, state.sealed + SKEW + SECOND);
    state.owner = 1;
    state.isSealed = false;
  } else if (step.startsWith('clean')) source[row] = null;
  else if (!isSame(source[row], target[row])) {
    const copied = source[row];
    // A copy has the time of the target, and is a later version than its source.
    state.clock = Math.max(state.clock, broken === 'earlyCopy' || !copied ? 0 : copied.time + SKEW) + TICK;
    target[row] = copied && { ...copied, time: state.clock - SKEW };
  }
}

/** The row of a snapshot: that of the account that has the slot, also after the read. */
function scanned(state: State, row: RowName, broken: Rule | undefined): Stored | null {
  const { accounts, owner } = state;
  const own = accounts[broken === 'firstOwner' && state.scan ? state.scan.owner : owner]?.[row] ?? null;
  if (broken !== 'staleCopies') return copyOf(own);
  const [newest = null] = accounts.flatMap((rows) => rows[row] ?? []).toSorted((a, b) => b.time - a.time);
  return copyOf(newest);
}

function scan(state: State, broken: Rule | undefined): undefined {
  // Of the clocks that it could read, the one that is worse.
  const end = () => ({
    end: toSecond(state.clock - SKEW) + SECOND + (broken === 'noLateMargin' ? 0 : MARGIN),
    ended: state.clock,
  });
  if (!state.scan) {
    state.left.scans -= 1;
    const begin = toSecond(state.clock) - (broken === 'noMargin' ? 0 : MARGIN);
    state.scan = { begin, next: 'a', owner: state.owner, rows: copyOf(NO_ROWS) };
    if (broken === 'earlyManifest') state.snapshots.push({ begin, rows: copyOf(NO_ROWS), ...end() });
    return;
  }
  const { next, rows, begin } = state.scan;
  if (next === 'manifest') {
    if (broken === 'earlyManifest') state.snapshots.pop();
    state.snapshots.push({ begin, rows, ...end() });
    state.scan = null;
    return;
  }
  rows[next] = scanned(state, next, broken);
  state.scan.next = next === 'a' ? 'b' : 'manifest';
}

const hasEnded = ({ step }: Writer) => step === 'done' || step === 'dead';

interface Options {
  readonly broken: Rule | undefined;
  readonly moves: boolean;
  readonly check: (state: State) => string | undefined;
}

function* nextStates(state: State, { broken, moves, check }: Options): Generator<Found<State>> {
  const found: Found<State>[] = [];
  const add = (what: string, change: (next: State) => string | undefined) => {
    const next = copyOf(state);
    const violation = change(next) ?? check(next);
    found.push(violation ? [what, next, violation] : [what, next]);
  };
  for (const [at, { kind, step, sees, hasIntent }] of state.writers.entries()) {
    const name = `writer ${valueBy(at)} (${kind})`;
    const isPast =
      step === 'append' ||
      hasEnded({ step } as Writer) ||
      (broken === 'lateLine' && step !== 'read' && step !== 'commit');
    if (hasIntent && (sees !== 'no' || isPast))
      add(`the queue, intent of ${name}: ${sees}`, (next) => see(next, at, broken));
    if (sees !== 'no' && state.left.crashes > 0)
      add(`the queue function dies, and the intent of ${name} comes back`, (next) => {
        next.left.crashes -= 1;
        Object.assign(next.writers[at] as Writer, { sees: 'no', seen: [] });
      });
    if (step === 'dead' && state.left.requests > 0 && !isDeleteOnly(kind))
      add(`${name}: its request is repeated`, (next) => {
        next.left.requests -= 1;
        Object.assign(next.writers[at] as Writer, { step: 'look', isRepeated: true });
      });
    if (hasEnded({ step } as Writer) || (state.isSealed && step === 'commit')) continue;
    const own = (next: State) => next.writers[at] as Writer;
    add(`${name}: ${step}`, (next) => {
      const violation = take(next, at, broken);
      const isLate = own(next).step === 'append' && broken === 'lateLine';
      // A writer that has responded ends its intent.
      if (isLate || (own(next).step === 'done' && own(next).sees === 'no')) own(next).hasIntent = false;
      return violation;
    });
    if (step === 'commit' && state.left.lost > 0)
      add(`${name}: ${step}, the reply is lost`, (next) => {
        next.left.lost -= 1;
        take(next, at, broken);
        const writer = own(next);
        if (writer.step !== 'read' && writer.step !== 'done') Object.assign(writer, { step: 'look', line: null });
      });
    if (step === 'append' && state.left.away > 0)
      add(`${name}: ${step} in the account of the app`, (next) => {
        next.left.away -= 1;
        append(next, at, true);
        own(next).step = 'acknowledge';
      });
    if (step === 'append' && state.left.repeats > 0)
      add(`${name}: ${step}, the reply is lost`, (next) => {
        next.left.repeats -= 1;
        append(next, at);
      });
    if (state.left.crashes > 0 && (step === 'reply' || step === 'look' || step === 'append'))
      add(`${name} dies`, (next) => {
        next.left.crashes -= 1;
        Object.assign(own(next), { step: 'dead', line: null });
      });
  }
  if (state.left.ticks > 0)
    add('time passes', (next) => {
      next.left.ticks -= 1;
      next.clock += TICK;
    });
  if (state.scan || state.left.scans > 0) add('the snapshot', (next) => scan(next, broken));
  const step = MOVE[state.mover];
  if (moves && step) add(`the move: ${step}`, (next) => move(next, broken));
  const isAtRest =
    state.writers.every((one) => hasEnded(one) && !one.hasIntent) && !state.scan && (!moves || state.owner === 1);
  if (isAtRest && !state.isOver)
    add('a minute later, a snapshot of rows at rest', (next) => {
      next.clock += MINUTE;
      next.scan = null;
      next.left.scans = 1;
      for (let part = 0; part < 4; part += 1) scan(next, broken);
      next.left.scans = 0;
      next.isOver = true;
    });
  yield* found;
}

/** Visits the states of a script. */
export function explore(name: ScriptName, { broken }: { readonly broken?: Rule | undefined } = {}): Explored {
  const script: Script = SCRIPTS[name];
  const first = initialState(script);
  if (broken === 'blindDelete')
    for (const writer of first.writers) if (isDeleteOnly(writer.kind)) writer.step = 'commit';
  const check = checker(broken);
  return exploreStates({
    first,
    nextStates: (state) => nextStates(state, { broken, moves: script.moves === true, check }),
    isOver: (state) => state.isOver,
  });
}

if (import.meta.main) {
  const [only, broken] = process.argv.slice(2) as [ScriptName | undefined, Rule | undefined];
  printExplored(only ? [only] : (Object.keys(SCRIPTS) as ScriptName[]), (name) => explore(name, { broken }));
}
