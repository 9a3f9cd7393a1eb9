import type { Entities } from '../store/store-types.ts';
import type { Client } from './client-types.ts';
import { createCore } from './core.ts';
import { byName, createEntityClient } from './entity-client.ts';
import type { TransportOptions } from './transport.ts';

/** The entry `rowkey/client`: a typed client of the API for browsers, React Native and Node, without dependencies. */

export type {
  BatchResult,
  CallOptions,
  Client,
  Conflict,
  CreateOptions,
  EntityClient,
  Explanation,
  FileClient,
  Grant,
  Listing,
  Operation,
  OperationStatus,
  Page,
  PageOptions,
  SeriesClient,
  UploadOptions,
  WriteOptions,
} from './client-types.ts';
export { type ClientErrorCode, type Problem, RowkeyClientError } from './errors.ts';
export type { Call, TokenSource } from './transport.ts';

interface AnyModel {
  readonly entities: Entities;
}

export interface ClientOptions<Of extends AnyModel = AnyModel> extends TransportOptions {
  /** The most entities to keep for revalidation. Default: 100; 0 turns the cache off. */
  readonly cacheSize?: number | undefined;
  /**
   * Entities whose rows are read directly from storage if they are the caller's own (`access.own`). Needs storage to allow the
   * origin of the page. Default: none.
   */
  readonly direct?: readonly (keyof Of['entities'] & string)[] | undefined;
}

/**
 * Creates a client of the model: `createClient<typeof model>({ url, token })`, with `import type { model }`. Sends nothing
 * before the first call.
 */
export function createClient<Of extends AnyModel>(options: ClientOptions<Of>): Client<Of['entities']> {
  const core = createCore(options);
  const explain = byName((name) => createEntityClient(core, name, true));
  // The members accept and return any values. Their types are those of the entities' declarations.
  return byName((name) => createEntityClient(core, name, false), { explain }) as Client<Of['entities']>;
}
