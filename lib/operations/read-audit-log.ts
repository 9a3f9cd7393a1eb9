import { isoInstant } from '../base/time.ts';
import { periodsBetween } from '../define/keys/calendar.ts';
import type { Engine } from '../engine/engine.ts';
import { ChangeRecord } from '../engine/note-change.ts';
import type { Position } from '../engine/read/continuation.ts';
import { listBlobs, readLines } from '../storage/append-blobs.ts';
import { inPattern } from '../telemetry/span.ts';
import { AUDIT_CONTAINER, hourOf } from './audit-log.ts';

/**
 * Reads the audit log: lists each day by its prefix and reads the blobs of the requested hours. Each hour is read from its
 * beginning, because duplicate records are found by their ids.
 */

interface ChangesQuery {
  /** Milliseconds; `from` inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  /** The last record of the previous page. */
  readonly after?: Position | undefined;
}

/** Returns changes ordered by hour, then by blob, then in the order of their appends. */
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
      const blobs = await listBlobs(storage, { container: AUDIT_CONTAINER, prefix: `${day}/` });
      for (const blob of blobs.filter((name) => hourIn(name) >= firstHour && hourIn(name) <= lastHour)) {
        if (hourIn(blob) !== hour) seen = new Set();
        hour = hourIn(blob);
        let line = 0;
        for await (const text of readLines(storage, { container: AUDIT_CONTAINER, name: blob })) {
          line += 1;
          const change = ChangeRecord.parse(JSON.parse(text));
          if (seen.has(change.id)) continue;
          seen.add(change.id);
          const at = Date.parse(change.at);
          const isRead = read && (blob < read.blob || (blob === read.blob && line <= read.line));
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
  return blob.slice(0, blob.lastIndexOf('/'));
}

/** Every day from one hour to another, inclusive, as `2026/11/20`. */
function daysBetween(firstHour: string, lastHour: string): string[] {
  const [first = '', last = ''] = [firstHour, lastHour].map((hour) => hour.slice(0, 10).replaceAll('/', '-'));
  return periodsBetween('day', first, last).map((day) => day.replaceAll('-', '/'));
}
