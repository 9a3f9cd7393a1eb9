import { expect, test } from 'vitest';
import { acceptsMemory, isInProcess } from './in-process.ts';

const needs = (file: string) => [
  isInProcess(file, { hasStorage: false }) ? 'nothing' : 'something',
  isInProcess(file, { hasStorage: true }) ? 'nothing' : 'something',
];

test('finds what a test file needs by its imports', () => {
  expect(needs('test/lib/base/errors.test.ts')).toEqual(['nothing', 'nothing']);
  expect(needs('test/lib/storage/rows.test.ts')).toEqual(['something', 'nothing']);
  // Through product.ts.
  expect(needs('test/scenarios/auditing.test.ts')).toEqual(['something', 'something']);
  // Through contract.ts.
  expect(needs('test/storage-contract/tables.test.ts')).toEqual(['something', 'something']);
  expect(needs('test/local/commands/build.test.ts')).toEqual(['something', 'something']);
});

test('finds the files that accept storage in memory', () => {
  expect(acceptsMemory('test/scenarios/auditing.test.ts')).toBe(true);
  // It compares with the emulator.
  expect(acceptsMemory('test/storage-contract/tables.test.ts')).toBe(false);
  // Its pages of other origins send requests to storage.
  expect(acceptsMemory('test/scenarios/serving-a-browser.test.ts')).toBe(false);
});
