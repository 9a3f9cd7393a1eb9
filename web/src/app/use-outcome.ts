import { useLayoutEffect, useRef } from 'preact/hooks';
import { useApp } from './context.ts';

/**
 * Returns a function to call when an action begins. It returns a function to call when the action has ended. If its page was left
 * meanwhile, that function has the outcome announced on every page and returns true. Otherwise the page shows the outcome.
 */
export function useOutcome(): (action: string) => (error?: unknown) => boolean {
  const { outcomes } = useApp();
  const isLeft = useRef(false);
  // An effect is cleaned up after the next frame; an action can end before.
  useLayoutEffect(
    () => () => {
      isLeft.current = true;
    },
    [],
  );
  return (action) => {
    // Without the name of the console at its end.
    const title = document.title.split(' · ').slice(0, -1).join(' · ');
    const page = { title, address: location.hash };
    return (error) => {
      if (isLeft.current) outcomes.add({ action, error, page });
      return isLeft.current;
    };
  };
}
