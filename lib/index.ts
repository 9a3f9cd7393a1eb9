/** The public entry of the package: what an app declares, opens and registers. Everything else may change without notice. */

export type { Caller, IdentityProvider } from './access/token.ts';
export { type ErrorCode, RowkeyError } from './base/errors.ts';
export type { Values } from './base/values.ts';
export type { Access, Declaration, DeclaredEntity } from './define/declaration/declaration.ts';
export { indexEntity, interPartitionIndex, intraPartitionIndex } from './define/declaration/indexes.ts';
export { total } from './define/declaration/totals.ts';
export { defineEntity } from './define/define-entity.ts';
export type { Model } from './define/define-model.ts';
export { defineSeries } from './define/define-series.ts';
export { defineUnion } from './define/inheritance.ts';
export { defineModel } from './define-model.ts';
export type { BatchDone, BatchOutcome } from './engine/write/entity-batch.ts';
export type { ConsoleSettings } from './http/console.ts';
export type { Handle, Handler, HandlerOptions } from './http/handler.ts';
export type { SeriesPoint, SpanBounds } from './pattern-helpers/series-span.ts';
export { type FunctionsApp, type RegisterOptions, registerFunctions } from './register-functions.ts';
export { createRowkey, type Rowkey, type RowkeyOptions } from './rowkey.ts';
export { fromEnvironment, type RowkeySettings, type UnusableSettings } from './settings.ts';
export type {
  BatchAction,
  BatchOptions,
  CreateOptions,
  DeleteRange,
  EntityStore,
  GroupTotal,
  Input,
  Key,
  Listed,
  Listing,
  Output,
  Page,
  PageOptions,
  Patch,
  RangeOptions,
  SeriesStore,
  Store,
  Stored,
  WriteOptions,
} from './store/store-types.ts';
