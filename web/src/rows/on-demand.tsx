import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { formatCosts, type Measured } from '../api/cost.ts';
import { useApp } from '../app/context.ts';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';

interface OnDemandProps<Result> {
  readonly title: string;
  /** Names everything that `load` uses. */
  readonly id: string;
  readonly load: (signal: AbortSignal) => Promise<Result>;
  readonly children: (result: Result) => ComponentChildren;
}

/** A part of a page that is read when it is opened, because it costs transactions. */
export function OnDemand<Result>({ title, id, load, children }: OnDemandProps<Result>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="part" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h2>{title}</h2>
      </summary>
      {isOpen && (
        <Opened id={id} title={title} load={load}>
          {children}
        </Opened>
      )}
    </details>
  );
}

function Opened<Result>({ id, title, load, children }: OnDemandProps<Result>) {
  const { api } = useApp();
  const { result, error } = useLoaded<Measured<Result>>((outer) => api.measure(load, outer), id);
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result) return <Loading what={title.toLowerCase()} />;
  return (
    <>
      {children(result.result)}
      <p class="summary">
        <small>{formatCosts(result.costs)}</small>
      </p>
    </>
  );
}
