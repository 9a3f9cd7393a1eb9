import type { ComponentType } from 'preact';
import { loadOnce } from './load-once.ts';
import { Loading, Notice } from './notice.tsx';
import { useLoaded } from './use-loaded.ts';

/**
 * A component whose module is loaded when it is shown first. A deployment removes the modules of the page before, so a failed load
 * offers to load the page again.
 */
export function lazy<Props extends object>(
  what: string,
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  const loadComponent = loadOnce(load);
  return function Lazy(props: Props) {
    // In an object, because a state that is a function would be called.
    const { result, error } = useLoaded(async () => ({ Component: await loadComponent() }), what);
    if (error !== undefined)
      return (
        <>
          <Notice kind="bad">
            <strong>This part of the console could not be loaded.</strong>
            <p>The app was updated since you opened the page, or the connection failed.</p>
          </Notice>
          <button type="button" class="secondary outline" onClick={() => location.reload()}>
            Reload the page
          </button>
        </>
      );
    return result ? <result.Component {...props} /> : <Loading what={what} />;
  };
}
