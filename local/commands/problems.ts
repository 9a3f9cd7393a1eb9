import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { Problem } from '../../lib/http/problem.ts';
import { PROBLEMS, type ProblemKind } from '../../lib/http/problem-kinds.ts';
import { run } from '../cli/command.ts';

const PAGE = new URL('../../docs/reference/problems.md', import.meta.url);

/** Returns the text of docs/reference/problems.md. */
export function formatProblems(): string {
  const members = Object.entries(Problem.shape).map(
    ([name, { description = '' }]) => `| \`${name}\` | ${description} |`,
  );
  const kinds = Object.entries(PROBLEMS);
  const codes = kinds.map(([code, { status, retry }]) => `| [\`${code}\`](#${code}) | ${status} | ${retry} |`);
  return `# Problems

Every error response is problem details ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) with the media type \`application/problem+json\`.
The app serves these texts at \`/api/problems\`, where \`type\` leads. \`npm run problems\` writes this page from [problem-kinds.ts](../../lib/http/problem-kinds.ts).

| Member | Meaning |
|---|---|
${members.join('\n')}

## Codes

| Code | Status | Retry |
|---|---|---|
${codes.join('\n')}

${kinds.map(formatKind).join('\n')}`;
}

function formatKind([code, kind]: readonly [string, ProblemKind]): string {
  const { status, title, when, action, operator, notes = [], see = {} } = kind;
  const links = Object.entries(see).map(([heading, page]) => `[${heading}](${page})`);
  const paragraphs = [
    `${status} ${title}. ${when}`,
    action,
    ...(operator === undefined ? [] : [`Operator: ${operator}`]),
    ...notes,
    ...(links.length === 0 ? [] : [`See ${links.join(', ')}.`]),
  ];
  return `## ${code}\n\n${paragraphs.join('\n\n')}\n`;
}

async function writeProblems(): Promise<void> {
  const before = await readFile(PAGE, 'utf8').catch(() => '');
  const after = formatProblems();
  await writeFile(PAGE, after);
  console.log(before === after ? 'docs/reference/problems.md is up to date.' : 'docs/reference/problems.md updated.');
}

const program = new Command()
  .description('Writes docs/reference/problems.md from the codes of lib/http/problem-kinds.ts.')
  .action(writeProblems);
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await run(program);
