import type { ComponentType } from 'preact';
import { ErrorNotice, Loading } from './notice.tsx';
import { useLoaded } from './use-loaded.ts';

/** A component whose module is loaded when it is shown first. */
export function lazy<Props extends object>(
  what: string,
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let loading: Promise<ComponentType<Props>> | undefined;
  return function Lazy(props: Props) {
    // In an object, because a state that is a function would be called.
    const { result, error } = useLoaded(async () => {
      loading ??= load();
      return { Component: await loading };
    }, what);
    if (error !== undefined) return <ErrorNotice error={error} />;
    return result ? <result.Component {...props} /> : <Loading what={what} />;
  };
}
