import type { ComponentChildren } from 'preact';

interface NotFoundProps {
  readonly what: string;
  /** What exists. By default, the overview. */
  readonly back?: { readonly title: string; readonly address: string };
  /** The reason. */
  readonly children: ComponentChildren;
}

/** The page of an address that leads nowhere. */
export function NotFound({ what, back = { title: 'the overview', address: '#/' }, children }: NotFoundProps) {
  return (
    <>
      <h1>{what} not found</h1>
      <p>
        {children} <a href={back.address}>Back to {back.title}</a>
      </p>
    </>
  );
}

export function EntityNotFound({ name }: { readonly name: string | undefined }) {
  return <NotFound what="Entity">The model has no entity “{name}”.</NotFound>;
}
