import type { PageProps } from '../app/page.ts';

/** One row. */
export function RowPage({ address }: PageProps) {
  return <h1>{address.segments.join('/')}</h1>;
}
