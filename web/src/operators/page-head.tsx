import type { JSX } from 'preact';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import type { Loaded } from '../ui/use-loaded.ts';

/** The heading of a page that shows the state of the app at one moment, with a button that reads it again. */
export function PageHead<Result>({ title, loaded }: { readonly title: string; readonly loaded: Loaded<Result> }) {
  return (
    <div class="page-head">
      <h1>{title}</h1>
      <button type="button" class="secondary outline" onClick={loaded.reload} aria-busy={loaded.isLoading}>
        Refresh
      </button>
    </div>
  );
}

/** The content once it is loaded; an error or a note meanwhile. */
export function Content<Result>(props: {
  readonly loaded: Loaded<Result>;
  readonly what: string;
  readonly children: (result: Result) => JSX.Element;
}) {
  const { loaded, what, children } = props;
  if (loaded.error !== undefined) return <ErrorNotice error={loaded.error} />;
  return loaded.result === undefined ? <Loading what={what} /> : children(loaded.result);
}
