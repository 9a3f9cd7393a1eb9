import { globSync, readFileSync } from 'node:fs';
import { type ESTree, parseSync } from 'rolldown/utils';

export interface SourceFile {
  /** From the root of the repository, such as `lib/base/time.ts`. */
  readonly path: string;
  readonly text: string;
  readonly program: ESTree.Program;
}

/** True for a file of the library; the path is from the root of the repository. */
export function isOfLibrary(path: string): boolean {
  return path.startsWith('lib/');
}

/** Parses the TypeScript files that match. Throws for a file with a syntax error. */
export function readSourceFiles(pattern: string): readonly SourceFile[] {
  return globSync(pattern)
    .toSorted()
    .map((path) => parseSource(path, readFileSync(path, 'utf8')));
}

/** Counts the lines of the files that match. */
export function countLines(pattern: string): number {
  return globSync(pattern, { exclude: ['**/node_modules/**'] }).reduce(
    (sum, path) => sum + linesOf(readFileSync(path, 'utf8')),
    0,
  );
}

export function linesOf(text: string): number {
  return text.split('\n').length - 1;
}

/** Parses with the parser of the bundler: the API of TypeScript 7 is marked as unstable, and no count needs types. */
export function parseSource(path: string, text: string): SourceFile {
  const { program, errors } = parseSync(path, text);
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`);
  return { path, text, program };
}
