import type { JSX } from 'preact';
import { joinNames } from '../ui/format.ts';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import type { Loaded } from '../ui/use-loaded.ts';

/** The heading of a page that shows the state of the app at one moment, with a button that reads it again. */
export function PageHead<Result>(props: {
  readonly title: string;
  readonly loaded: Loaded<Result>;
  /** The level of the heading, by default 1. */
  readonly level?: 1 | 2;
}) {
  const { title, loaded, level = 1 } = props;
  const Heading = level === 1 ? 'h1' : 'h2';
  return (
    <div class="page-head">
      <Heading>{title}</Heading>
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

/** Says that a list is not whole. */
export function AwayNotice({ away = [] }: { readonly away?: readonly string[] | undefined }) {
  if (away.length === 0) return null;
  const [noun, verb] = away.length === 1 ? ['account', 'does'] : ['accounts', 'do'];
  return (
    <Notice kind="bad">
      The storage {noun} {joinNames(away, 'and')} {verb} not respond. What is there is not shown.
    </Notice>
  );
}

/** The sentences name commands. */
export function Advice({ advice }: { readonly advice: readonly string[] }) {
  return (
    <ul>
      {advice.map((sentence) => (
        <li key={sentence}>{sentence}</li>
      ))}
    </ul>
  );
}

/** A number in `<dl class="figures">`. */
export function Figure({ title, value }: { readonly title: string; readonly value: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </div>
  );
}
