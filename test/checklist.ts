import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { parse } from 'yaml';
import { z } from 'zod';
import { run } from '../local/cli/command.ts';
import { RULES } from './model/rules.ts';
import { PROMISES } from './mutation/promises.ts';

const LIST = new URL('../docs/internals/checklist.yaml', import.meta.url);
const PAGE = new URL('../docs/internals/checklist.md', import.meta.url);

const text = z.string().min(1);
/** `test/lib/a.test.ts > the title`. */
const TestName = z.string().regex(/^\S+ > \S/, 'a test is "file > title"');
const common = { id: z.string().regex(/^[a-z][a-z0-9-]+$/), recommendation: text };
const otherwise = { note: text, files: z.array(text).default([]), tests: z.array(TestName).default([]) };

/** What a document recommends. Only what is done needs files and tests; everything else needs the reason. */
const Recommendation = z.discriminatedUnion('status', [
  z.strictObject({
    ...common,
    status: z.literal('done'),
    files: z.array(text).min(1),
    tests: z.array(TestName).min(1),
    note: text.optional(),
  }),
  z.strictObject({ ...common, status: z.literal('not-done'), ...otherwise }),
  z.strictObject({ ...common, status: z.literal('not-applicable'), ...otherwise }),
]);

const Document = z.strictObject({
  document: text,
  /** The pages of the document, by name. */
  pages: z.record(text, z.url()),
  sections: z.array(z.strictObject({ heading: text, recommendations: z.array(Recommendation).min(1) })).min(1),
});
type Document = z.infer<typeof Document>;
type Recommendation = z.infer<typeof Recommendation>;

/** Reads docs/internals/checklist.yaml. Throws with the path of each entry that is incomplete. */
export async function readChecklist(): Promise<Document[]> {
  const checked = z.array(Document).safeParse(parse(await readFile(LIST, 'utf8')));
  if (checked.success) return checked.data;
  throw new Error(`docs/internals/checklist.yaml is not valid.\n${z.prettifyError(checked.error)}`);
}

/** The recommendations of every document. */
export function recommendationsOf(documents: readonly Document[]): Recommendation[] {
  return documents.flatMap(({ sections }) => sections.flatMap(({ recommendations }) => recommendations));
}

const STATUSES = ['done', 'not-applicable', 'not-done'] as const;
/** The recommendations that `npm run rules` and `npm run promises` take out of the code. */
const PROVEN: ReadonlySet<string> = new Set(
  [...RULES, ...PROMISES].flatMap(({ recommendations = [] }) => recommendations),
);

/** The cells of a row with counts: those that are done, how many of them are proven, and the others. */
function countRow(name: string, all: readonly Recommendation[]): string {
  const [done, ...others] = STATUSES.map((status) => all.filter((one) => one.status === status).length);
  return `| ${[name, done, all.filter(({ id }) => PROVEN.has(id)).length, ...others, all.length].join(' | ')} |`;
}

/** Returns the text of docs/internals/checklist.md. */
export function formatChecklist(documents: readonly Document[]): string {
  const counts = documents.map((document) =>
    countRow(`[${document.document}](#${toAnchor(document.document)})`, recommendationsOf([document])),
  );
  return `# Checklist of Microsoft's recommendations

Every recommendation of the documents that Rowkey implements, in our words, under the heading where the document makes it. A recommendation that several
documents or sections make is listed once. \`npm run checklist\` writes this page from [checklist.yaml](checklist.yaml); a test checks that every file and every
test named here exists.

- **done**: Rowkey does this. The files do it, and the tests fail if it stops.
- **proven**: \`npm run promises\` or \`npm run rules\` takes this out of the code, and demands that one of the tests fails.
- **not applicable**: the recommendation is about another service or language, or a decision of whoever declares the model.
- **not done**: Rowkey does not do this, or does it only in part, or no test holds it.

| Document | done | proven | not applicable | not done | all |
|---|---:|---:|---:|---:|---:|
${counts.join('\n')}
${countRow('**All**', recommendationsOf(documents))}

${documents.map(formatDocument).join('\n')}`;
}

function formatDocument({ document, pages, sections }: Document): string {
  const links = Object.entries(pages).map(([name, url]) => `[${name}](${url})`);
  const rows = sections.flatMap(({ heading, recommendations }) =>
    recommendations.map((one) => `| ${toCell(heading)} | ${toCell(one.recommendation)} | ${formatStatus(one)} |`),
  );
  return `## ${document}

${links.join(', ')}

| Heading | Recommendation | Status |
|---|---|---|
${rows.join('\n')}
`;
}

function formatStatus({ id, status, files, tests, note }: Recommendation): string {
  const mark = PROVEN.has(id) ? ', **proven**' : '';
  const parts = [`**${status.replace('-', ' ')}**${mark}${note === undefined ? '' : `: ${toCell(note)}`}`];
  if (files.length > 0) parts.push(files.map((file) => `[${file.split('/').at(-1)}](../../${file})`).join(', '));
  if (tests.length > 0)
    parts.push(
      `Tests: ${tests
        .map(toTest)
        .map(({ file, title }) => `[${toCell(title)}](../../${file})`)
        .join('; ')}`,
    );
  return parts.join('<br>');
}

/** Splits the name of a test into its file and its title. */
export function toTest(name: string): { file: string; title: string } {
  const [file = '', ...title] = name.split(' > ');
  return { file, title: title.join(' > ') };
}

function toCell(words: string): string {
  return words.trim().replaceAll(/[|[\]<>*_]/g, '\\$&');
}

function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
}

async function writeChecklist(): Promise<void> {
  const before = await readFile(PAGE, 'utf8').catch(() => '');
  const after = formatChecklist(await readChecklist());
  await writeFile(PAGE, after);
  console.log(before === after ? 'docs/internals/checklist.md is up to date.' : 'docs/internals/checklist.md updated.');
}

const program = new Command()
  .description('Writes docs/internals/checklist.md from docs/internals/checklist.yaml.')
  .action(writeChecklist);
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await run(program);
