/**
 * The public entry of the package: what an app declares, opens and registers, and the types that it or its declaration files name.
 * Everything else may change without notice.
 */

export type { Authenticate, Caller, IdentityProvider } from './access/token.ts';
export type { RangeOptions } from './api/calls.ts';
export type { BatchAction, GroupTotal, Input, Key, Listed, Output, Patch, Where } from './api/entity-types.ts';
export { type ErrorCode, RowkeyError } from './base/errors.ts';
export type { Stored, Values } from './base/values.ts';
export type { Access } from './define/declaration/access.ts';
export type { Declaration, Slots } from './define/declaration/declaration.ts';
export type { EntityBy } from './define/declaration/declared-types.ts';
export type {
  Index,
  IndexEntity,
  InterPartitionIndex,
  IntraPartitionIndex,
  Typed,
} from './define/declaration/indexes.ts';
export type { RequestLimit } from './define/declaration/request-limit.ts';
export type { Total } from './define/declaration/totals.ts';
export type { EntitiesOf, Model } from './define/define-model.ts';
export type { DeclaredOperation, Operations, OperationsOf } from './define/define-operation.ts';
export type { KindOf } from './define/inheritance.ts';
export type { FieldsOf } from './define/keys/key-template.ts';
export * from './define.ts';
export type { BatchDone, BatchOutcome } from './engine/write/entity-batch.ts';
export type { SeriesPoint, SpanBounds } from './features/data-series/series-span.ts';
export type { ConsoleSettings } from './http/console.ts';
export type { Handle, Handler, HandlerOptions } from './http/handler.ts';
export { type FunctionsApp, type RegisterOptions, registerFunctions } from './register-functions.ts';
export { createRowkey, type Rowkey, type RowkeyOptions } from './rowkey.ts';
export { fromEnvironment, type RowkeySettings, type UnusableSettings } from './settings.ts';
export type { Implementations, OperationCall } from './store/app-operations.ts';
export type {
  BatchOptions,
  CallerStore,
  CreateOptions,
  DeleteRange,
  EntityStore,
  FileStore,
  Listing,
  Page,
  PageOptions,
  SeriesStore,
  Store,
  TotalReader,
  UnlimitedStore,
  WriteOptions,
} from './store/store.ts';
