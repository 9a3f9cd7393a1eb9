import { useEffect, useState } from 'preact/hooks';

export interface Loaded<Result> {
  readonly result?: Result;
  readonly error?: unknown;
  readonly isLoading: boolean;
  /** Loads again and shows the last result meanwhile. */
  readonly reload: () => void;
}

/** Loads what a page shows, again whenever `key` changes. The last load wins; a load whose page was left is aborted. */
export function useLoaded<Result>(load: (signal: AbortSignal) => Promise<Result>, key: string): Loaded<Result> {
  const [state, setState] = useState<{ key: string; result?: Result; error?: unknown }>();
  const [turn, setTurn] = useState(0);
  const [isLoading, setLoading] = useState(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` names everything that `load` uses
  useEffect(() => {
    const { signal, abort } = abortable();
    setLoading(true);
    const show = (loaded: { readonly result?: Result; readonly error?: unknown }) => {
      if (signal.aborted) return;
      setState({ key, ...loaded });
      setLoading(false);
    };
    load(signal).then(
      (result) => show({ result }),
      (error: unknown) => show({ error }),
    );
    return abort;
  }, [key, turn]);
  const isCurrent = state?.key === key;
  return { ...(isCurrent ? state : {}), isLoading: isLoading || !isCurrent, reload: () => setTurn((last) => last + 1) };
}

function abortable() {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    abort: () => controller.abort(new DOMException('The page was left.', 'AbortError')),
  };
}
