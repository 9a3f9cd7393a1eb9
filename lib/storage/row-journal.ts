import { AsyncLocalStorage } from 'node:async_hooks';
import type { PipelinePolicy } from '@azure/core-rest-pipeline';
import { keptFor } from '../base/once.ts';

/**
 * What transactions did to rows, for the journal of a backup. The timestamp that storage gives a version of a row is in its ETag, and
 * orders the versions of a row.
 *
 * A delete has none. Its row has the time of the other rows of its transaction; without any, the instant after the version that its ETag names. So
 * it is after the version that it deleted, and before a row that is created next, whatever clocks show. Which cuts a transaction counts in is
 * decided by the time of its line, for which a clock is good enough. test/model/backup.ts has what goes wrong otherwise.
 */

/** In the account of the backup; and in those of the app, for lines that wait for that account. */
export const BACKUP_CONTAINER = 'backup';

type Properties = Readonly<Record<string, unknown>>;

/** A row after a transaction. `time` is an instant with seven digits, as storage has it. */
export type JournalRow = { readonly row: string; readonly time: string } & (
  | { readonly properties: Properties }
  /** Merged into the version before; with `isUpsert`, also if there is none. */
  | { readonly merge: Properties; readonly isUpsert?: true | undefined }
  | { readonly deleted: true }
);

/** A transaction on one partition, or the drop of a table. `time` is the greatest of its rows. */
export type JournalEntry =
  | {
      readonly time: string;
      readonly table: string;
      readonly partition: string;
      readonly rows: readonly JournalRow[];
    }
  | { readonly time: string; readonly table: string; readonly dropped: true };

export interface RowJournal {
  /** False for a table whose rows follow from those of others. */
  hasTable(table: string, partition?: string): boolean;
  /** Resolves once the entry is stored. Throws `storage-unavailable`; the entry is then in the next append. */
  append(entry: JournalEntry): Promise<void>;
  /** Appends the entries of earlier, failed appends. Await it before making a change. Throws `storage-unavailable`. */
  catchUp(): Promise<void>;
}

interface Executed {
  readonly table: string;
  readonly partition: string;
  readonly actions: readonly {
    readonly kind: string;
    readonly row: string;
    readonly properties?: Properties;
    readonly etag?: string;
  }[];
}

/** The last attempt of a request to a table. Milliseconds of this process, which no change of its clock moves. */
interface Attempt {
  readonly account: string;
  /** When the first attempt was sent: an earlier one may have been executed, or have read what counts. */
  readonly sentAt: number;
  readonly receivedAt: number;
  /** The `Date` header of the response: whole seconds, rounded down. */
  readonly date: string | undefined;
  /** The latest of all attempts of the work by `Date`, in milliseconds: each account has a clock of its own. 0 without any. */
  readonly latestMs: number;
}

const attempts = new AsyncLocalStorage<{ last?: Attempt }>();

/** Notes the attempts of `withAttempt`. The SDK does not show the response to a transaction. */
export const noteAttempt: PipelinePolicy = {
  name: 'noteAttempt',
  async sendRequest(request, next) {
    const noted = attempts.getStore();
    if (!noted) return next(request);
    const sentAt = noted.last?.sentAt ?? performance.now();
    const response = await next(request);
    const account = new URL(request.url).origin;
    const date = response.headers.get('date');
    const latestMs = Math.max(noted.last?.latestMs ?? 0, Date.parse(date ?? '') || 0);
    noted.last = { account, sentAt, receivedAt: performance.now(), date, latestMs };
    return response;
  },
};

/** Runs a request of a table and returns its last attempt that had a response. */
export async function withAttempt<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly attempt: Attempt | undefined }> {
  const noted: { last?: Attempt } = {};
  const result = await attempts.run(noted, work);
  return { result, attempt: noted.last };
}

/** By account: how much later its clock is, at least, than the time of this process. Known from the timestamps of rows. */
const aheadOf = keptFor((_: RowJournal) => new Map<string, number>());

/** An instant by the clock of storage before which no request of the attempt was executed. */
function earliestTime(journal: RowJournal, attempt: Attempt | undefined): string | undefined {
  if (!attempt) return undefined;
  const ahead = aheadOf(journal).get(attempt.account);
  const since = ahead === undefined ? Number.NaN : attempt.sentAt + ahead;
  // A second may begin between the request and its response.
  const dated = Date.parse(attempt.date ?? '') - Math.ceil(attempt.receivedAt - attempt.sentAt);
  return greatest([toTime(dated), toTime(since)]) || undefined;
}

/** Adds a transaction that storage has executed. Without an attempt, the reply was lost, and `etags` were read. */
export async function journalRows(
  journal: RowJournal | undefined,
  { table, partition, actions }: Executed,
  { etags, attempt }: { readonly etags: ReadonlyMap<string, string>; readonly attempt?: Attempt | undefined },
): Promise<void> {
  if (!journal?.hasTable(table, partition)) return;
  const times = actions.map(({ row }) => timeOf(etags.get(row)));
  const written = greatest(times);
  if (attempt && written !== '') aheadOf(journal).set(attempt.account, Date.parse(written) - attempt.receivedAt);
  const sent = earliestTime(journal, attempt) ?? '';
  const ofDeletes =
    written ||
    greatest(actions.map(({ kind, etag }) => (kind === 'delete' ? timeAfter(timeOf(etag)) : undefined))) ||
    sent;
  const rows = actions.map((action, index): JournalRow => {
    const { kind, row } = action;
    if (kind === 'delete') return { row, time: ofDeletes, deleted: true };
    const properties = toTyped(action.properties ?? {});
    const time = times[index] ?? ofDeletes;
    if (kind === 'merge') return { row, time, merge: properties };
    return kind === 'upsert-merge' ? { row, time, merge: properties, isUpsert: true } : { row, time, properties };
  });
  // A transaction that only deletes has no time of its own. It may have waited for long: the second of its response is nearer than its sending.
  const dated = attempt && toTime(Date.parse(attempt.date ?? ''));
  const time = greatest([...rows.map((row) => row.time), ...(written === '' ? [sent, dated] : [])]);
  await deferred(journal.append({ time, table, partition, rows }));
}

/** A row of one partition as a read has found it, or that the read has found none. */
export type FoundRow = { readonly row: string } & (
  | { readonly etag: string; readonly properties: Properties }
  /** `gone` is the ETag of a version that has been there. */
  | { readonly attempt: Attempt | undefined; readonly gone?: string | undefined }
);

/**
 * Adds rows as they were read, in one line: their writer may have ended without its line. A row that was absent has been so from before the read on,
 * so that its line does not cover what is created after it.
 */
export async function journalFound(
  journal: RowJournal | undefined,
  { table, partition }: Omit<Executed, 'actions'>,
  found: readonly FoundRow[],
): Promise<void> {
  if (!journal?.hasTable(table, partition)) return;
  const rows = found.flatMap((one): JournalRow[] => {
    const { row } = one;
    const isStored = 'properties' in one;
    const time = isStored
      ? timeOf(one.etag)
      : greatest([earliestTime(journal, one.attempt), timeAfter(timeOf(one.gone))]) || undefined;
    if (time === undefined) return [];
    return [isStored ? { row, time, properties: toTyped(one.properties) } : { row, time, deleted: true }];
  });
  if (rows.length > 0)
    await deferred(journal.append({ time: greatest(rows.map(({ time }) => time)), table, partition, rows }));
}

/** Adds the drop of a table. */
export async function journalDrop(
  journal: RowJournal | undefined,
  table: string,
  attempt: Attempt | undefined,
): Promise<void> {
  const time = journal && earliestTime(journal, attempt);
  if (time !== undefined && journal?.hasTable(table)) await deferred(journal.append({ time, table, dropped: true }));
}

const appends = new AsyncLocalStorage<Promise<void>[]>();

/** Waits for what the work has appended so far: before it gives up what another process would continue from. */
export async function settleAppends(): Promise<void> {
  await Promise.all(appends.getStore() ?? []);
}

/** Runs work that waits for the appends of all its transactions at its end, not after each. Throws as the work does, or an append. */
export async function withDeferredAppends<Result>(work: () => Promise<Result>): Promise<Result> {
  const started: Promise<void>[] = [];
  try {
    return await appends.run(started, work);
  } finally {
    await Promise.all(started);
  }
}

async function deferred(append: Promise<void>): Promise<void> {
  const started = appends.getStore();
  if (!started) return append;
  append.catch(() => undefined);
  started.push(append);
}

/** The instant in an ETag of Table storage: `W/"datetime'2026-11-29T12%3A51%3A09.1234567Z'"`. */
export function timeOf(etag: string | undefined): string | undefined {
  const [, text] = /datetime'([^']+)'/.exec(etag ?? '') ?? [];
  return text === undefined ? undefined : padTime(decodeURIComponent(text));
}

/** An instant of storage with seven digits. The service leaves out zeros at the end. */
export function padTime(text: string): string {
  const [seconds = '', digits = ''] = text.replace(/Z$/, '').split('.');
  return `${seconds}.${digits.padEnd(7, '0')}Z`;
}

/** Milliseconds as an instant with seven digits. Undefined for NaN. */
export function toTime(milliseconds: number): string | undefined {
  return Number.isNaN(milliseconds) ? undefined : padTime(new Date(milliseconds).toISOString());
}

const TICKS_IN_MS = 10_000;

/** The next instant that storage can tell from this one. */
function timeAfter(time: string | undefined): string | undefined {
  return time && moveTime(time, 1);
}

/** The last instant that storage can tell from this one. */
export function timeBefore(time: string): string {
  return moveTime(time, -1);
}

function moveTime(time: string, by: number): string {
  const milliseconds = Date.parse(`${time.slice(0, -5)}Z`);
  const ticks = Number(time.slice(-5, -1)) + by;
  const whole = toTime(milliseconds + Math.floor(ticks / TICKS_IN_MS)) ?? '';
  const rest = (ticks + TICKS_IN_MS) % TICKS_IN_MS;
  return `${whole.slice(0, -5)}${String(rest).padStart(4, '0')}Z`;
}

function greatest(times: readonly (string | undefined)[]): string {
  return times.reduce<string>((last, time) => (time !== undefined && time > last ? time : last), '');
}

const MAX_INT32 = 2 ** 31;

/** Properties as storage sends them: text, Booleans and Int32 as they are, others with their type. */
function toTyped(properties: Properties): Properties {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, value]) =>
      value === undefined || value === null ? [] : [[name, toTypedValue(value)]],
    ),
  );
}

function toTypedValue(value: unknown): unknown {
  if (typeof value === 'bigint') return { type: 'Int64', value: String(value) };
  if (typeof value === 'number' && !(Number.isInteger(value) && value >= -MAX_INT32 && value < MAX_INT32))
    return { type: 'Double', value: String(value) };
  if (value instanceof Date) return { type: 'DateTime', value: value.toISOString() };
  if (value instanceof Uint8Array) return { type: 'Binary', value: Buffer.from(value).toString('base64') };
  return value;
}
