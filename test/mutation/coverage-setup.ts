import { inject } from 'vitest';

/**
 * Before each file: Stryker hands over, after each file, which mutants each test of the process has reached. All files run in one process,
 * so it would hand over those of all files before, too: gigabytes.
 */
const stryker: { mutantCoverage?: object } = Reflect.get(globalThis, inject('globalNamespace' as never));
// The code of a mutant keeps the object that there is when its module is loaded.
stryker.mutantCoverage ??= {};
Object.assign(stryker.mutantCoverage, { static: {}, perTest: {} });
