import type { Entities } from '../store/store-types.ts';
import type { EntityClients, Explained } from './client-types.ts';
import type { Query } from './query-types.ts';

/** A client for each entity of a model, by name. */
export type Client<All extends Entities> = EntityClients<All> & {
  readonly query: Query<All, false>;
  /** Explains a call: `client.explain.employees.get(key)`. Writes need a role that may read the whole entity. */
  readonly explain: {
    readonly [Name in keyof All & string]: Explained<Omit<EntityClients<All>[Name], 'grant' | 'isConflict' | 'files'>>;
  } & { readonly query: Query<All, true> };
};
