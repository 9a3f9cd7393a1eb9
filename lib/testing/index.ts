/** The entry `rowkey/testing` of the package: a store, or a whole storage account, in memory. */

export { createTestStore, type TestStore } from './create-test-store.ts';
export {
  createMemoryStorage,
  type Intercept,
  type MemoryStorage,
  type MemoryStorageOptions,
} from './memory-storage.ts';
