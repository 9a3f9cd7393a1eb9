import { useEffect, useRef, useState } from 'preact/hooks';
import type { Values } from '../api/model.ts';

const EVERY_MS = 3_000;
const PAGE_ROWS = 50;
const MOST_ROWS = 500;

interface TailOptions {
  readonly readPage: (signal: AbortSignal, top: number) => Promise<readonly Values[]>;
  readonly idOf: (row: Values) => string;
  readonly isPaused: boolean;
}

interface TailRow {
  readonly row: Values;
  /** True if it came after the first page. */
  readonly isNew: boolean;
}

interface Tail {
  readonly rows: readonly TailRow[];
  readonly reads: number;
  readonly error?: unknown;
  /** True if rows came between two reads that no page had. */
  readonly isMissing: boolean;
}

/**
 * Reads the newest rows every few seconds, one query each, and adds those that are new. A page that is hidden reads nothing.
 * Lists have no ETag, so each read has a page.
 */
export function useTail({ readPage, idOf, isPaused }: TailOptions): Tail {
  const [tail, setTail] = useState<Tail>({ rows: [], reads: 0, isMissing: false });
  const latest = useRef({ readPage, idOf });
  latest.current = { readPage, idOf };
  useEffect(() => {
    if (isPaused) return;
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      if (document.visibilityState === 'visible') {
        try {
          const page = await latest.current.readPage(signal, PAGE_ROWS);
          if (!signal.aborted) setTail((last) => addNewest(last, page, latest.current.idOf));
        } catch (error) {
          if (!signal.aborted) setTail((last) => ({ ...last, error, reads: last.reads + 1 }));
        }
      }
      if (!signal.aborted) timer = setTimeout(read, EVERY_MS);
    };
    read();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [isPaused]);
  return tail;
}

function addNewest(last: Tail, page: readonly Values[], idOf: (row: Values) => string): Tail {
  const known = new Set(last.rows.map(({ row }) => idOf(row)));
  const fresh = page.filter((row) => !known.has(idOf(row)));
  const isFirst = last.reads === 0;
  const added = fresh.map((row) => ({ row, isNew: !isFirst }));
  const isGap = known.size > 0 && fresh.length === PAGE_ROWS;
  return {
    rows: [...added, ...last.rows].slice(0, MOST_ROWS),
    reads: last.reads + 1,
    isMissing: last.isMissing || isGap,
  };
}
