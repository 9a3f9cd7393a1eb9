import type { ReactNode } from 'react';
import { formatDay, formatHours } from './session.ts';

interface Entry {
  readonly entryId: string;
  readonly day: string;
  readonly hours: number;
  readonly note?: string | undefined;
}

export function EntryList<Of extends Entry>({ entries, action }: { entries: Of[]; action?: (entry: Of) => ReactNode }) {
  return (
    <ul className="entries">
      {entries.map((entry) => (
        <li key={entry.entryId}>
          <span className="day">{formatDay(entry.day)}</span>
          <span className="note">{entry.note}</span>
          <span className="hours">{formatHours(entry.hours)}</span>
          {action?.(entry)}
        </li>
      ))}
    </ul>
  );
}

export function Problem({ error }: { error: Error | null | undefined }) {
  return (
    <p className="problem" role="alert">
      {error?.message}
    </p>
  );
}
