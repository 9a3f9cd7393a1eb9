import type { ComponentChildren } from 'preact';
import { RowkeyClientError } from '../../../lib/client/index.ts';

/** A message that a screen reader announces. */
export function Notice({
  kind,
  children,
}: {
  readonly kind: 'good' | 'bad' | 'info';
  readonly children: ComponentChildren;
}) {
  return (
    <div class={`notice ${kind}`} role={kind === 'bad' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}

/** Says what failed, with the invalid fields of the request. Shows nothing without an error. */
export function ErrorNotice({
  error,
  title = 'The request failed',
}: {
  readonly error: unknown;
  readonly title?: string;
}) {
  if (error === undefined || error === null) return null;
  const problem = error instanceof RowkeyClientError ? error.problem : undefined;
  const errors = problem?.errors ?? [];
  return (
    <Notice kind="bad">
      <strong>{problem?.title ?? title}</strong>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {errors.length > 1 && (
        <ul>
          {errors.map(({ field, message }) => (
            <li key={field}>
              <code>{field}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {problem?.accepted && <p>Accepted: {problem.accepted}</p>}
    </Notice>
  );
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <p aria-busy="true" role="status">
      Loading {what}…
    </p>
  );
}
