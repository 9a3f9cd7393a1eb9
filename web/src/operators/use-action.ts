import { useState } from 'preact/hooks';

export interface Action {
  readonly isBusy: boolean;
  readonly error: unknown;
  /** What the last action did. */
  readonly done: string | undefined;
  /** Runs an action unless one is under way. */
  run(work: () => Promise<string>): void;
}

/** The state of the changes that a page makes, one after the other. */
export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, 'run'>>({ isBusy: false, error: undefined, done: undefined });
  return {
    ...state,
    run(work) {
      if (state.isBusy) return;
      setState({ isBusy: true, error: undefined, done: undefined });
      work().then(
        (done) => setState({ isBusy: false, error: undefined, done }),
        (error: unknown) => setState({ isBusy: false, error, done: undefined }),
      );
    },
  };
}
