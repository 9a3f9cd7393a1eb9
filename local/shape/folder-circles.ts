import { dirname, join } from 'node:path';
import { type ESTree, Visitor } from 'rolldown/utils';
import type { SourceFile } from './source-files.ts';

/**
 * Returns the folders that import each other, directly or through others, in groups. Imports of types count. The files of a folder do not
 * belong to the folder above it.
 */
export function findFolderCircles(files: readonly SourceFile[]): readonly (readonly string[])[] {
  const imports = new Map<string, Set<string>>(files.map(({ path }) => [dirname(path), new Set()]));
  for (const file of files) {
    const from = dirname(file.path);
    for (const to of importsOf(file).map(dirname)) if (to !== from && imports.has(to)) imports.get(from)?.add(to);
  }
  const reached = new Map([...imports.keys()].map((folder) => [folder, reachableFrom(folder, imports)]));
  const groups = [...reached].map(([folder, others]) =>
    [...others].filter((other) => reached.get(other)?.has(folder)).toSorted(),
  );
  return [...new Map(groups.filter(({ length }) => length > 1).map((group) => [group.join(), group])).values()];
}

/** The paths of the files that a file imports, types included. */
export function importsOf({ path, program }: SourceFile): readonly string[] {
  const found: string[] = [];
  const add = ({ source }: { readonly source: ESTree.Expression | null }) => {
    if (source?.type === 'Literal' && String(source.value).startsWith('.'))
      found.push(join(dirname(path), String(source.value)));
  };
  new Visitor({
    ImportDeclaration: add,
    ImportExpression: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
  }).visit(program);
  return found;
}

/** The folders that a folder imports, directly or through others: with itself if it is in a circle. */
function reachableFrom(folder: string, imports: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const reached = new Set(imports.get(folder));
  // A set that grows while it is iterated yields what is added, too.
  for (const each of reached) for (const next of imports.get(each) ?? []) reached.add(next);
  return reached;
}
