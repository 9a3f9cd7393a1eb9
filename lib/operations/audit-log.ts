import { jsonText } from '../base/json-text.ts';
import { isoInstant } from '../base/time.ts';
import { periodsBetween } from '../define/keys/calendar.ts';
import type { Engine } from '../engine/engine.ts';
import { ChangeRecord } from '../engine/note-change.ts';
import type { Position } from '../engine/read/continuation.ts';
import { listBlobs, readLines } from '../storage/append-blobs.ts';
import { AUDIT_CONTAINER, accountOfContainer } from '../storage/blob-owner.ts';
import { ofAccount } from '../storage/errors.ts';
import { recordIfExplaining } from '../storage/explain.ts';
import { slotOf } from '../storage/slots.ts';
import { accountsOf, type Storage } from '../storage/storage.ts';
import { inPattern } from '../telemetry/span.ts';
import { type AppendLog, createAppendLog, hourOf, type LogLine } from './append-log.ts';

/**
 * Log data in blobs pattern: each change is one JSON line in `slot/yyyy/MM/dd/HH00/nnnnnn.log`, see append-log.ts. The name has the hour of the
 * change, so a reader lists a day by its prefix and reads no other hour. The slot is that of the day, so that names do not begin
 * with a time, which would bring the newest of all days to one server. Earlier releases wrote names without it.
 *
 * With several accounts, the log is in one of them. While that account is away, processes append in another one, so that the others serve
 * changes; readers read the blobs of all accounts.
 */

/** A change is made only after `catchUp`, and acknowledged only after its record is appended. */
export type AuditLog = AppendLog<ChangeRecord>;

/** Creates the appender of a process. Create one for each storage account and process. */
export function createAuditLog(engine: Engine, { maxBlocks }: { readonly maxBlocks?: number } = {}): AuditLog {
  const { storage } = engine;
  const log = createAppendLog({
    accounts: accountsOfLog(storage),
    container: AUDIT_CONTAINER,
    toFolder: toPrefix,
    toEnd: (account) => (account === accountsOf(storage)[0] ? '.log' : `-${account.name}.log`),
    toLine,
    failure: 'The audit log cannot be written. No change is acknowledged until it is recorded.',
    maxBlocks,
  });
  return {
    async append(noted) {
      const isExplained = recordIfExplaining(() => ({ write: 'blob', container: AUDIT_CONTAINER, does: 'append' }));
      // An explanation makes its reads, and its steps name rows.
      await log.append(isExplained ? noted.filter(({ operation }) => operation === 'read') : noted);
    },
    catchUp: log.catchUp,
  };
}

/** The accounts in the order in which records go there: that of the log is the first. */
function accountsOfLog(storage: Storage): [Storage, ...Storage[]] {
  const all = accountsOf(storage);
  const own = accountOfContainer(storage, AUDIT_CONTAINER) ?? storage;
  return [own, ...all.filter((account) => account !== own)];
}

const DAY = '2026/11/20'.length;

/** The beginning of the names of a day's, or an hour's, blobs: `ad2/2026/11/20/0900`. */
function toPrefix(time: string): string {
  return `${slotOf(time.slice(0, DAY))}/${time}`;
}

function toLine(change: ChangeRecord): LogLine {
  return { hour: hourOf(change.at), at: change.at, bytes: Buffer.from(`${jsonText(change)}\n`) };
}

interface ChangesQuery {
  /** Milliseconds; `from` inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  /** The last record of the previous page. */
  readonly after?: Position | undefined;
}

/**
 * Returns changes ordered by hour, then by blob, then in the order of their appends: lists each day by its prefix and reads the blobs of the
 * requested hours. Each hour is read from its beginning, because duplicate records are found by their ids.
 */
export const readChanges = inPattern(
  'log in blobs',
  async (
    { storage }: Engine,
    { from, to, limit, after }: ChangesQuery,
  ): Promise<{ items: ChangeRecord[]; next: Position | undefined }> => {
    const read = after && positionOf(after);
    const firstHour = read ? hourIn(read.blob) : hourOf(isoInstant(from));
    const lastHour = hourOf(isoInstant(to - 1));
    const items: ChangeRecord[] = [];
    let last: Position | undefined;
    let seen = new Set<string>();
    let hour = '';
    for (const day of daysBetween(firstHour, lastHour)) {
      const prefixes = [toPrefix(day), day];
      const listed = await Promise.all(
        accountsOfLog(storage).flatMap((account) =>
          prefixes.map(async (prefix) => {
            const names = listBlobs(account, { container: AUDIT_CONTAINER, prefix: `${prefix}/` });
            return (await ofAccount(account, names)).map((blob) => ({ account, blob }));
          }),
        ),
      );
      const blobs = listed.flat().toSorted((a, b) => (isBefore(a.blob, b.blob) ? -1 : 1));
      for (const { account, blob } of blobs) {
        if (hourIn(blob) < firstHour || hourIn(blob) > lastHour) continue;
        if (hourIn(blob) !== hour) seen = new Set();
        hour = hourIn(blob);
        let line = 0;
        for await (const text of readLines(account, { container: AUDIT_CONTAINER, name: blob })) {
          line += 1;
          const change = ChangeRecord.parse(JSON.parse(text));
          if (seen.has(change.id)) continue;
          seen.add(change.id);
          const at = Date.parse(change.at);
          const isRead = read && (isBefore(blob, read.blob) || (blob === read.blob && line <= read.line));
          if (isRead || at < from || at >= to) continue;
          if (items.length === limit) return { items, next: last };
          items.push(change);
          last = { row: `${blob}:${line}` };
        }
      }
    }
    return { items, next: undefined };
  },
);

function positionOf({ row }: Position): { blob: string; line: number } {
  const [blob = '', line] = row.split(':');
  return { blob, line: Number(line) };
}

/** The hour in a blob name, such as `2026/11/20/0900`. */
function hourIn(blob: string): string {
  const time = timeIn(blob);
  return time.slice(0, time.lastIndexOf('/'));
}

/** The name without the slot. */
function timeIn(blob: string): string {
  return blob.replace(/^[\da-f]{3}\//, '');
}

/** Blobs are read in the order of their hours and numbers; a name of an earlier release, which has no slot, comes first. */
function isBefore(blob: string, other: string): boolean {
  const [time, otherTime] = [timeIn(blob), timeIn(other)];
  return time === otherTime ? blob.length < other.length : time < otherTime;
}

/** Every day from one hour to another, inclusive, as `2026/11/20`. */
function daysBetween(firstHour: string, lastHour: string): string[] {
  const [first = '', last = ''] = [firstHour, lastHour].map((hour) => hour.slice(0, 10).replaceAll('/', '-'));
  return periodsBetween('day', first, last).map((day) => day.replaceAll('-', '/'));
}
