import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Api } from '../api/api.ts';
import type { Cost } from '../api/cost.ts';
import type { Values } from '../api/model.ts';
import type { PageRequest, RowsPage } from './read-page.ts';

interface Rows {
  readonly items: readonly Values[];
  readonly costs: readonly Cost[];
  readonly error?: unknown;
  readonly isLoading: boolean;
  readonly isComplete: boolean;
  /** True if several pages in a row had no match: reading goes on when the user asks. */
  readonly isWaiting: boolean;
  /** Reads the next page, unless one is being read. */
  readonly more: () => void;
}

const FIRST_PAGE = 100;
/** The largest page that the API returns, for a user who scrolls on. */
const NEXT_PAGE = 1_000;
/** After so many pages without a match, the user decides whether to read on: a partition may have millions of rows. */
const MAX_EMPTY_PAGES = 5;

interface State {
  readonly key: string;
  readonly items: readonly Values[];
  readonly costs: readonly Cost[];
  readonly next?: string | undefined;
  readonly emptyPages: number;
  readonly isComplete: boolean;
  readonly error?: unknown;
}

const empty = (key: string): State => ({ key, items: [], costs: [], emptyPages: 0, isComplete: false });

/** Rows that are read page by page. `key` names the query: another one starts again. */
export function useRows(
  api: Api,
  key: string,
  readPage: ((request: PageRequest) => Promise<RowsPage>) | undefined,
): Rows {
  const [state, setState] = useState<State>(() => empty(key));
  const [isLoading, setLoading] = useState(false);
  const reading = useRef<AbortController>(undefined);
  const reader = useRef(readPage);
  reader.current = readPage;
  const latest = useRef(state);
  latest.current = state;

  const load = useCallback(
    async (from: State) => {
      const read = reader.current;
      if (!read || from.isComplete || from.error !== undefined) return;
      const controller = new AbortController();
      reading.current = controller;
      setLoading(true);
      let next = from;
      try {
        const top = from.next === undefined ? FIRST_PAGE : NEXT_PAGE;
        const { result, costs } = await api.measure(
          (signal) => read({ after: from.next, top, signal }),
          controller.signal,
        );
        const items = result.items.length > 0 ? [...from.items, ...result.items] : from.items;
        const emptyPages = result.items.length > 0 ? 0 : from.emptyPages + 1;
        const page = { items, emptyPages, next: result.next, isComplete: !result.next };
        next = { ...from, ...page, costs: [...from.costs, ...costs] };
      } catch (error) {
        next = { ...from, error };
      }
      if (controller.signal.aborted) return;
      reading.current = undefined;
      setLoading(false);
      setState(next);
      // A filter may leave a page empty before the last one.
      if (next.emptyPages > 0 && next.emptyPages < MAX_EMPTY_PAGES && !next.isComplete) await load(next);
    },
    [api],
  );

  useEffect(() => {
    const fresh = empty(key);
    setState(fresh);
    load(fresh);
    return () => {
      reading.current?.abort(new DOMException('Another list is read.', 'AbortError'));
      reading.current = undefined;
    };
  }, [key, load]);

  const more = useCallback(() => {
    if (!reading.current) load({ ...latest.current, emptyPages: 0 });
  }, [load]);
  const shown = state.key === key ? state : empty(key);
  const isWaiting = !isLoading && !shown.isComplete && shown.emptyPages >= MAX_EMPTY_PAGES;
  return { ...shown, isWaiting, isLoading, more };
}
