import { useState } from 'preact/hooks';
import { useOutcome } from '../app/use-outcome.ts';

interface Action {
  readonly isBusy: boolean;
  readonly error: unknown;
  /** What the last action did. */
  readonly done: string | undefined;
  /** Runs an action unless one is under way. An error that arrives after the page was left is announced. */
  run(name: string, work: () => Promise<string>): void;
}

/** The state of the changes that a page makes, one after the other. */
export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, 'run'>>({ isBusy: false, error: undefined, done: undefined });
  const begin = useOutcome();
  return {
    ...state,
    run(name, work) {
      if (state.isBusy) return;
      const end = begin(name);
      setState({ isBusy: true, error: undefined, done: undefined });
      work().then(
        (done) => setState({ isBusy: false, error: undefined, done }),
        (error: unknown) => end(error) || setState({ isBusy: false, error, done: undefined }),
      );
    },
  };
}
