import type { ComponentChildren } from 'preact';

interface Ancestor {
  readonly title: ComponentChildren;
  readonly address: string;
}

/** The pages above a page, the outermost first. */
export function Breadcrumb({ ancestors }: { readonly ancestors: readonly Ancestor[] }) {
  return (
    <nav aria-label="Breadcrumb" class="breadcrumb">
      {ancestors.map(({ title, address }, position) => (
        <span key={address}>
          {position > 0 && ' › '}
          <a href={address}>{title}</a>
        </span>
      ))}
    </nav>
  );
}
