import type { Entities } from '../api/entity-types.ts';
import type { Operations } from '../define/define-operation.ts';
import type * as Batches from './batches.ts';
import type { CallOptions, Client, CreateOptions } from './client-types.ts';
import { byName, createCore } from './core.ts';
import { createEntityClient } from './entity-client.ts';
import { load } from './errors.ts';
import type * as OwnData from './own-data.ts';
import type { RunQuery } from './query.ts';
import type { TransportOptions } from './transport.ts';

/** The entry `rowkey/client`: a typed client of the API for browsers, React Native and Node, without dependencies. */

export type { RangeOptions } from '../api/calls.ts';
export type { BatchAction, GroupTotal, Input, Key, Listed, Output, Patch, Where } from '../api/entity-types.ts';
export type { Me } from '../api/me.ts';
export type { Stored } from '../base/values.ts';
export type {
  ArchiveClient,
  BatchResult,
  CallOptions,
  Client,
  Conflict,
  CreateOptions,
  DeletedRange,
  DeleteRange,
  EntityClient,
  Erased,
  Explanation,
  FileClient,
  Grant,
  Listing,
  Operation,
  OperationStatus,
  OwnRow,
  Page,
  PageOptions,
  QueryRead,
  QueryResult,
  QueryResults,
  SeriesClient,
  TotalClient,
  UploadOptions,
  WriteOptions,
} from './client-types.ts';
export { type ClientErrorCode, type Problem, RowkeyClientError } from './errors.ts';
export type { Call, TokenSource } from './transport.ts';

interface AnyModel {
  readonly entities: Entities;
  readonly operations: Operations;
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
 *
 * @example
 * const client = createClient<typeof model>({ url: 'https://fleet.example/api', token: () => sessionStorage.token });
 * const vehicle = await client.vehicles.get({ depot: 'north', vehicleId: '1' });
 */
export function createClient<Of extends AnyModel>(
  options: ClientOptions<Of>,
): Client<Of['entities'], Of['operations']> {
  const core = createCore(options);
  const query =
    (explains: boolean): RunQuery =>
    async (build, given = {}) =>
      (await load(import('./query.ts'))).runQuery(core, build, { ...given, explains });
  const transact =
    (explains: boolean) =>
    async (actions: Parameters<typeof Batches.transact>[1], given: CreateOptions = {}) =>
      (await load(import('./batches.ts'))).transact(core, actions, { ...given, explains });
  const operation =
    (explains: boolean, name: string) =>
    async (input: unknown, given: CreateOptions = {}) =>
      (await load(import('./app-operations.ts'))).callOperation(core, name, input, { ...given, explains });
  const ofAll = (explains: boolean) => ({
    query: query(explains),
    transact: transact(explains),
    operations: byName((name) => operation(explains, name)),
  });
  const own =
    (call: keyof typeof OwnData) =>
    async ({ signal }: CallOptions = {}) =>
      (await load(import('./own-data.ts')))[call](core, signal);
  const explain = byName((name) => createEntityClient(core, name, true), ofAll(true));
  // The members accept and return any values. Their types are those of the entities' declarations.
  return byName((name) => createEntityClient(core, name, false), {
    explain,
    me: own('me'),
    listOwnData: own('listOwnData'),
    eraseOwnData: own('eraseOwnData'),
    ...ofAll(false),
  }) as Client<Of['entities'], Of['operations']>;
}
