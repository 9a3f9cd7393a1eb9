import { type ESTree, Visitor } from 'rolldown/utils';
import { PROBLEMS } from '../../lib/http/problem-kinds.ts';
import { readSourceFiles } from '../shape/source-files.ts';

/** Stands for a part of a message that is known at run time. */
const PART = '…';

const SOURCES = '{lib/**,local/cli/**,local/instance/**,local/create}/*.ts';

/** The functions of lib/base/errors.ts that make an error of one code. */
const CODES: Readonly<Record<string, string>> = { busy: 'busy', unavailable: 'storage-unavailable' };
/** How `entityError` begins. */
const ENTITY = `${PART} "${PART}"`;

/** Why lists are closed: the log of the start, and the error of a request. */
const CLOSED_LISTS = 'lib/define/places/closed-index.ts';

/** Returns the text of docs/reference/messages.md: the sentences of the code, for a reader who searches for one of them. */
export function formatMessages(): string {
  const ofRequests = new Map<string, Set<string>>();
  const ofModels = new Set<string>();
  const ofCommands = new Set<string>();
  for (const { path, program } of readSourceFiles(SOURCES)) {
    const isOfModel = path.startsWith('lib/');
    const constants = constantsOf(program);
    const textsOf = (node: ESTree.Node | null | undefined) => readTexts(node, constants);
    const visitor = new Visitor({
      NewExpression({ callee, arguments: [first, second] }) {
        if (callee.type !== 'Identifier') return;
        if (callee.name === 'RowkeyError')
          for (const code of textsOf(first)) if (code in PROBLEMS) addTo(ofRequests, code, textsOf(second));
        if (callee.name === 'Error' && !isOfModel) add(ofCommands, textsOf(first));
        if (callee.name === 'Error' && path.startsWith('lib/define/keys/')) add(ofModels, textsOf(first));
      },
      CallExpression({ callee, arguments: given }) {
        const name = callee.type === 'Identifier' ? callee.name : undefined;
        const [first, , , what] = given;
        if (isOfModel) {
          const code = name && CODES[name];
          if (code) addTo(ofRequests, code, textsOf(first));
          if (name === 'entityError')
            for (const code of textsOf(first))
              addTo(
                ofRequests,
                code,
                textsOf(what).map((text) => `${ENTITY} ${text}`),
              );
          return;
        }
        const isError =
          callee.type === 'MemberExpression' &&
          callee.property.type === 'Identifier' &&
          callee.property.name === 'error';
        if (name === 'log' || isError) add(ofCommands, textsOf(first));
      },
      YieldExpression({ argument }) {
        if (isOfModel && path !== 'lib/settings.ts') add(ofModels, textsOf(argument));
      },
      ReturnStatement({ argument }) {
        // A choice is a part of a sentence here.
        if (path === CLOSED_LISTS && argument?.type !== 'ConditionalExpression') add(ofModels, textsOf(argument));
      },
    });
    visitor.visit(program);
  }
  const codes = [...ofRequests].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `# Messages

Find a message by its words: ${PART} stands for a name or a number. The search of the site finds a message that you paste. \`npm run reference\` writes this page from the code.

## Errors of requests

Under each code, *What to do* leads to its remedy.

${codes.map(([code, messages]) => `### ${code}\n\n[What to do](problems.md#${code})\n\n${formatList(messages)}`).join('\n\n')}

## Errors and warnings of a model

The app does not start, or its log has a warning. Each sentence says what to change; [Model](model.md#what-is-rejected) has the reasons, and [Rules and people](../access.md) those of rules.

${formatList(ofModels)}

## Messages of commands and the local app

Each says what is wrong, and most what to do; [Commands](commands.md) has the options.

${formatList(ofCommands)}
`;
}

function addTo(map: Map<string, Set<string>>, key: string, messages: readonly string[]): void {
  const found = messages.filter((message) => /[a-z]/.test(message));
  if (found.length > 0) map.set(key, new Set([...(map.get(key) ?? []), ...found]));
}

function add(set: Set<string>, messages: readonly string[]): void {
  // A sentence, and not a name that is yielded or parts alone.
  for (const message of messages) if (/ [a-z]/.test(message)) set.add(message);
}

function formatList(messages: ReadonlySet<string>): string {
  return [...messages]
    .toSorted()
    .map((message) => `- ${escapeMarkdown(message)}`)
    .join('\n');
}

/** Characters that Markdown would take as its own. */
function escapeMarkdown(message: string): string {
  return message.replaceAll(/[<>*_|[\]{}]/g, '\\$&').replaceAll('\n', ' ');
}

type Constants = ReadonlyMap<string, ESTree.Node>;

/** What the constants of a file are, by their names. */
function constantsOf(program: ESTree.Program): Constants {
  const constants = new Map<string, ESTree.Node>();
  const visitor = new Visitor({
    VariableDeclarator({ id, init }) {
      if (id.type === 'Identifier' && init) constants.set(id.name, init);
    },
  });
  visitor.visit(program);
  return constants;
}

/** The texts that a node may have: of a literal, a template with its parts left open, a choice, a constant, or the members of an object. */
function readTexts(node: ESTree.Node | null | undefined, constants: Constants): string[] {
  const ofAll = (nodes: readonly ESTree.Node[]) => nodes.flatMap((one) => readTexts(one, constants));
  switch (node?.type) {
    case 'Literal':
      return typeof node.value === 'string' ? [node.value] : [];
    case 'TemplateLiteral':
      return [node.quasis.map(({ value }) => value.cooked ?? '').join(PART)];
    case 'ConditionalExpression':
      return ofAll([node.consequent, node.alternate]);
    case 'LogicalExpression':
      return ofAll([node.left, node.right]);
    case 'ObjectExpression':
      return ofAll(node.properties.flatMap((property) => (property.type === 'Property' ? [property.value] : [])));
    case 'Identifier':
      // Without the constants, so that no two lead to each other.
      return readTexts(constants.get(node.name), new Map());
    default:
      return [];
  }
}
