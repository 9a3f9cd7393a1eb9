import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';

/** The parts of a mutant that determine whether it is in the sample. */
interface Mutant {
  readonly fileName: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
  readonly mutatorName: string;
  readonly replacement?: string | undefined;
}

const PROJECT = join(import.meta.dirname, '../..');

/** The path of a file within the project. */
export function pathOf({ fileName }: Pick<Mutant, 'fileName'>): string {
  return relative(PROJECT, fileName).replaceAll('\\', '/');
}

/** True for one of `MUTATION_ONE_IN` mutants. `MUTATION_SEED` determines which. */
export function isInSample(mutant: Mutant): boolean {
  const { MUTATION_ONE_IN: oneIn = '1', MUTATION_SEED: seed = '0' } = process.env;
  const { start } = mutant.location;
  const place = [pathOf(mutant), start.line, start.column];
  const text = JSON.stringify([seed, ...place, mutant.mutatorName, mutant.replacement]);
  return createHash('sha256').update(text).digest().readUInt32BE() % Number(oneIn) === 0;
}

/** Stryker has no samples. Its checkers say which mutants cannot be run: here, those that are not in the sample. */
class Sample {
  async init(): Promise<void> {}

  async check(mutants: readonly (Mutant & { readonly id: string })[]) {
    const outside = { status: 'compileError', reason: 'The mutant is not in the sample.' };
    return Object.fromEntries(
      mutants.map((mutant) => [mutant.id, isInSample(mutant) ? { status: 'passed' } : outside]),
    );
  }

  /** All mutants at once. */
  async group(mutants: readonly { readonly id: string }[]): Promise<string[][]> {
    return [mutants.map(({ id }) => id)];
  }
}

export const strykerPlugins = [{ kind: 'Checker', name: 'sample', injectableClass: Sample }];
