import { type ESTree, Visitor } from 'rolldown/utils';
import type { SourceFile } from './source-files.ts';

/**
 * The names of the members of an interface and of those that it extends; undefined if no file declares the interface. An interface extends
 * the one of its own file before one of the same name in another file.
 */
export function membersOf(files: readonly SourceFile[], name: string): ReadonlySet<string> | undefined {
  const found: [ESTree.TSInterfaceDeclaration, SourceFile][] = [];
  for (const file of files.filter(({ text }) => text.includes(`interface ${name}`)))
    new Visitor({
      TSInterfaceDeclaration: (node) => {
        if (node.id.name === name) found.push([node, file]);
      },
    }).visit(file.program);
  if (found.length === 0) return undefined;
  return new Set(
    found.flatMap(([declared, file]) => [
      ...declared.body.body.flatMap((member) => ('key' in member ? keyName(member.key) : [])),
      ...declared.extends.flatMap(({ expression }) =>
        expression.type === 'Identifier'
          ? [...(membersOf([file], expression.name) ?? membersOf(files, expression.name) ?? [])]
          : [],
      ),
    ]),
  );
}

/** Counts the objects that have each member, among those that are declared to be of the interface: `const expiry: Feature = {`. */
export function countImplementers(files: readonly SourceFile[], name: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const count = (type: ESTree.TSType | undefined, value: ESTree.Expression | null) => {
    const isOfInterface =
      type?.type === 'TSTypeReference' && type.typeName.type === 'Identifier' && type.typeName.name === name;
    if (!isOfInterface || value?.type !== 'ObjectExpression') return;
    for (const member of keysOf(value)) counts.set(member, (counts.get(member) ?? 0) + 1);
  };
  for (const { program } of files.filter(({ text }) => text.includes(name)))
    new Visitor({
      VariableDeclarator: ({ id, init }) => count(id.typeAnnotation?.typeAnnotation, init),
      TSSatisfiesExpression: ({ typeAnnotation, expression }) => count(typeAnnotation, expression),
    }).visit(program);
  return counts;
}

/** The names of the keys of an object that are not computed. */
export function keysOf({ properties }: ESTree.ObjectExpression): readonly string[] {
  return properties.flatMap((property) => (property.type === 'Property' ? keyName(property.key) : []));
}

export function keyName(key: ESTree.PropertyKey): readonly string[] {
  if (key.type === 'Identifier') return [key.name];
  return key.type === 'Literal' && typeof key.value === 'string' ? [key.value] : [];
}
