export { defineEntity } from './define/define-entity.ts';
export { indexEntity, interPartitionIndex, intraPartitionIndex } from './define/indexes.ts';
export { defineUnion } from './define/inheritance.ts';
export { defineModel } from './define-model.ts';
export { type ErrorCode, type ErrorDetails, RowkeyError } from './errors.ts';
export { defineSeries } from './patterns/data-series.ts';
export { registerFunctions } from './register-functions.ts';
export { createRowkey, type Rowkey } from './rowkey.ts';
export { fromEnvironment, type RowkeySettings } from './settings.ts';
