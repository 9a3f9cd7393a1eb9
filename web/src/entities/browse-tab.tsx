import type { Entity } from '../api/model.ts';

/** Lists a partition. */
export function BrowseTab({ entity }: { readonly entity: Entity }) {
  return <p>{entity.name}</p>;
}
