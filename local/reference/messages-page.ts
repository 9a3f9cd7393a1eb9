import { type ESTree, Visitor } from 'rolldown/utils';
import { PROBLEMS } from '../../lib/http/problem-kinds.ts';
import { readSourceFiles } from '../shape/source-files.ts';

/** Stands for a part of a message that is known at run time. */
const PART = '…';

/** Why lists are closed: the log of the start, and the error of a request. */
const CLOSED_LISTS = 'lib/define/places/closed-index.ts';

/** Returns the text of docs/reference/messages.md: the sentences of the code, for a reader who searches for one of them. */
export function formatMessages(): string {
  const ofRequests = new Map<string, Set<string>>();
  const ofModels = new Set<string>();
  const ofCommands = new Set<string>();
  for (const { path, program } of readSourceFiles('{lib,local/cli,local/instance}/**/*.ts')) {
    const isOfModel = path.startsWith('lib/');
    const visitor = new Visitor({
      NewExpression({ callee, arguments: [first, second] }) {
        if (callee.type !== 'Identifier') return;
        const code = textOf(first);
        if (callee.name === 'RowkeyError' && code !== undefined && code in PROBLEMS)
          addTo(ofRequests, code, textOf(second));
        if (callee.name === 'Error' && !isOfModel) add(ofCommands, textOf(first));
        if (callee.name === 'Error' && path.startsWith('lib/define/keys/')) add(ofModels, textOf(first));
      },
      CallExpression({ callee, arguments: [first] }) {
        if (callee.type === 'Identifier' && callee.name === 'log' && !isOfModel) add(ofCommands, textOf(first));
      },
      YieldExpression({ argument }) {
        if (isOfModel && path !== 'lib/settings.ts') for (const text of textsOf(argument)) add(ofModels, text);
      },
      ReturnStatement({ argument }) {
        if (path === CLOSED_LISTS) add(ofModels, textOf(argument));
      },
    });
    visitor.visit(program);
  }
  const codes = [...ofRequests].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `# Messages

Find a message by its words: ${PART} stands for a name or a number. \`npm run reference\` writes this page from the code.

## Of requests

The code says what to do.

${codes.map(([code, messages]) => `### ${code}\n\n[What to do](problems.md#${code})\n\n${formatList(messages)}`).join('\n\n')}

## Of a model

The app does not start, or its log has a warning. Each sentence says what to change; [Model](model.md#what-is-rejected) has the reasons, and [Rules and people](../access.md) those of rules.

${formatList(ofModels)}

## Of commands and the local app

${formatList(ofCommands)}
`;
}

function addTo(map: Map<string, Set<string>>, key: string, message: string | undefined): void {
  if (message === undefined) return;
  map.set(key, (map.get(key) ?? new Set()).add(message));
}

function add(set: Set<string>, message: string | undefined): void {
  // A sentence, and not a name that is yielded or parts alone.
  if (message && / [a-z]/.test(message)) set.add(message);
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

/** The text of a node, or the texts of the members of an object. */
function textsOf(node: ESTree.Node | null | undefined): (string | undefined)[] {
  if (node?.type !== 'ObjectExpression') return [textOf(node)];
  return node.properties.map((property) => (property.type === 'Property' ? textOf(property.value) : undefined));
}

/** The text of a literal, or of a template with its parts left open. Undefined for anything else. */
function textOf(node: ESTree.Node | null | undefined): string | undefined {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? '').join(PART);
  return undefined;
}
