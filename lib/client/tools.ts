import { invalidInput, RowkeyClientError, toProblemError, undefinedIfNotFound } from './errors.ts';
import { checkFields, hasKey, partitionPath, pathOf, rangeFields, toPath, toQuery, valuesOf } from './paths.ts';
import { nextOf, pause } from './transport.ts';

/** Creates the member of each name at its first use: at that time the model may not be known. */
export function byName<Member>(create: (name: string) => Member, own: Readonly<Record<string, unknown>> = {}): unknown {
  const members = new Map<string, unknown>(Object.entries(own));
  return new Proxy(Object.freeze({}), {
    get(_, name) {
      // An object with `then` would be taken for a promise.
      if (typeof name !== 'string' || name === 'then') return undefined;
      if (!members.has(name)) members.set(name, create(name));
      return members.get(name);
    },
  });
}

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
  undefinedIfNotFound,
  valuesOf,
};

export type Tools = typeof tools;
