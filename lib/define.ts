/** What a model is declared with: one import for the files of a model in a clone. The package exports it as `rowkey`, with the rest. */

export { between, defineClaims, memberOf, oneOf, own, startsWith, subject } from './define/declaration/access.ts';
export type { DeclaredEntity } from './define/declaration/declaration.ts';
export { indexEntity, interPartitionIndex, intraPartitionIndex } from './define/declaration/indexes.ts';
export { total } from './define/declaration/totals.ts';
export { defineEntity } from './define/define-entity.ts';
export { defineOperation } from './define/define-operation.ts';
export { defineSeries } from './define/define-series.ts';
export { defineUnion } from './define/inheritance.ts';
export { defineModel } from './define-model.ts';
