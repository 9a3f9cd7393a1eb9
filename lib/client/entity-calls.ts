import type { Values } from '../base/values.ts';
import type { Explanation, Listing } from './client-types.ts';
import type { Core } from './core.ts';
import { RowkeyClientError } from './errors.ts';
import type { EntityDescription, ListQuery } from './paths.ts';
import type { Reply, Request } from './transport.ts';

/** What the calls of one entity share with the modules that are loaded at their first use, because most pages do without. */
export interface EntityCalls {
  readonly core: Core;
  /** Runs a call. The errors of an entity have its name. */
  run<Result>(work: (entity: EntityDescription) => Promise<Result>): Promise<Result | Explanation>;
  /** Sends a request. In a call that explains, ends the call with the explanation. */
  send(request: Request): Promise<Reply>;
  /** A list of which each page is one request. In a call that explains, the first page. */
  list(
    options: ListOptions,
    pathOfList: (entity: EntityDescription) => string | Promise<string>,
  ): Listing<Values> | Promise<unknown>;
}

export interface ListOptions extends ListQuery {
  readonly first?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Leaves a call that explains, with the explanation. */
class Explained {
  readonly explanation: Explanation;
  constructor(explanation: Explanation) {
    this.explanation = explanation;
  }
}

export function createEntityCalls(
  core: Core,
  { name, explains, isArchive }: { readonly name: string; readonly explains: boolean; readonly isArchive: boolean },
): Pick<EntityCalls, 'core' | 'run' | 'send'> {
  return {
    core,
    async run(work) {
      try {
        return await work(await core.entity(name, isArchive));
      } catch (error) {
        if (error instanceof Explained) return error.explanation;
        if (error instanceof RowkeyClientError) error.entity = name;
        throw error;
      }
    },
    async send(request) {
      if (!explains) return core.send(request);
      const path = `${request.path}${request.path.includes('?') ? '&' : '?'}explain=true`;
      throw new Explained(JSON.parse((await core.send({ ...request, path })).text));
    },
  };
}
