import { byName } from './by-name.ts';
import { invalidInput, RowkeyClientError, toProblemError } from './errors.ts';
import { checkFields, hasKey, partitionPath, pathOf, rangeFields, toPath, valuesOf } from './paths.ts';
import { toQuery } from './query-string.ts';
import { nextOf, pause } from './transport.ts';

/**
 * What the modules call that are loaded at first use. They import types only: with other imports, a bundler would split the
 * client into many small files that every page loads.
 */
export const tools = {
  byName,
  checkFields,
  hasKey,
  invalidInput,
  nextOf,
  partitionPath,
  pathOf,
  pause,
  rangeFields,
  RowkeyClientError,
  toPath,
  toProblemError,
  toQuery,
  valuesOf,
};

export type Tools = typeof tools;
