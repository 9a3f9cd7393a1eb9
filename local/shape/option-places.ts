import { type ESTree, Visitor } from 'rolldown/utils';
import { keyName, keysOf } from './interfaces.ts';
import type { SourceFile } from './source-files.ts';

/** Fewer names are a part of something else: `table` and `key` are words of storage, too. */
const MIN_OPTIONS_OF_LIST = 3;

/**
 * Lists the places that state each option, such as `lib/define/declaration/declaration.ts:24`. A place is a list of options that names at least three:
 * the members of a type, the keys of an object, or the texts of an array or union. Another place is the `option` of a feature. What only
 * uses an option is no place: a destructuring, and a declaration that is passed to `defineEntity`.
 */
export function findOptionPlaces(
  files: readonly SourceFile[],
  options: ReadonlySet<string>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const places = new Map<string, Set<string>>([...options].map((option) => [option, new Set()]));
  for (const { path, text, program } of files) {
    const declarations = new Set<ESTree.Node>();
    const state = ({ start }: ESTree.Node, names: readonly string[], least = MIN_OPTIONS_OF_LIST) => {
      const stated = new Set(names.filter((name) => options.has(name)));
      const line = text.slice(0, start).split('\n').length;
      if (stated.size >= least) for (const option of stated) places.get(option)?.add(`${path}:${line}`);
    };
    new Visitor({
      CallExpression({ callee, arguments: given }) {
        if (callee.type === 'Identifier' && /^define[A-Z]/.test(callee.name))
          for (const argument of given) declarations.add(argument);
      },
      ObjectExpression(node) {
        if (!declarations.has(node)) state(node, keysOf(node));
      },
      Property({ key, value }) {
        if (keyName(key)[0] === 'option' && value.type === 'Literal') state(value, [String(value.value)], 1);
      },
      TSInterfaceBody: (node) => state(node, node.body.flatMap(memberName)),
      TSTypeLiteral: (node) => state(node, node.members.flatMap(memberName)),
      TSUnionType: (node) =>
        state(
          node,
          node.types.map((type) => (type.type === 'TSLiteralType' ? literalText(type.literal) : '')),
        ),
      ArrayExpression: (node) => state(node, node.elements.map(literalText)),
    }).visit(program);
  }
  return places;
}

function memberName(member: ESTree.TSSignature): readonly string[] {
  return 'key' in member ? keyName(member.key) : [];
}

function literalText(node: ESTree.Node | null): string {
  return node?.type === 'Literal' ? String(node.value) : '';
}
