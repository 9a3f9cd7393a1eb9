import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { renderMermaidSVG } from 'beautiful-mermaid';
import { APP_PAGES, toAppPage } from '../local/package/app-page.ts';
import { readMessages } from './find-phrase.ts';

/**
 * Writes the pages of docs/ as Starlight reads them. The Markdown in the repository has no front matter, and its links lead to
 * files, so that it reads well on GitHub too. Its commands are those of a clone, and a page for authors of apps shows those of the package.
 */

const DOCS = '../docs';
const PAGES = 'src/content/docs';
/** The messages of docs/reference/messages.md, for the search. */
const MESSAGES = 'src/messages.json';
const REPOSITORY = 'https://github.com/contoso/rowkey';
/** The path of the site, such as /rowkey: Astro adds it to no link of a page. */
const { SITE_BASE: BASE = '' } = process.env;
const COLORS = {
  bg: 'var(--sl-color-bg)',
  fg: 'var(--sl-color-text)',
  // The derived color of labels is too faint in the dark.
  muted: 'var(--sl-color-text)',
  transparent: true,
};
/** The home page is a table of contents. */
const HOME = {
  tableOfContents: false,
  next: false,
  hero: {
    tagline: 'Declare what your app stores. Get a back end on Azure that you pay for by request.',
    actions: [
      { text: 'Get started', link: `${BASE}/getting-started/`, icon: 'right-arrow' },
      { text: 'Code', link: REPOSITORY, icon: 'external', variant: 'minimal' },
    ],
  },
};

const pages = globSync('**/*.md', { cwd: DOCS }).filter((page) => !page.startsWith('reference/api/'));
const known = new Set(pages);

/** Returns the address of a page of docs/ in the site. */
function toRoute(page: string): string {
  const name = page.slice(0, -'.md'.length);
  return name === 'README' ? `${BASE}/` : `${BASE}/${name}/`;
}

function toSitePage(page: string, text: string): string {
  const [, title = ''] = /^# (.+)\n/.exec(text) ?? [];
  const body = text.slice(text.indexOf('\n') + 1);
  const linked = body.replaceAll(/\]\(([^)#\s:]+)(#[^)\s]*)?\)/g, (link, target: string, anchor = '') => {
    const file = posix.join(posix.dirname(page), target);
    if (known.has(file)) return `](${toRoute(file)}${anchor})`;
    if (/\.(png|svg)$/.test(file)) return link;
    return `](${REPOSITORY}/blob/main/${posix.join('docs', file)}${anchor})`;
  });
  const drawn = linked.replaceAll(/^```mermaid\n(.*?)^```$/gms, (_, diagram: string) => drawDiagram(diagram));
  const front = {
    title: title.replaceAll('`', ''),
    editUrl: `${REPOSITORY}/edit/main/docs/${page}`,
    ...(page === 'README.md' ? HOME : {}),
  };
  const lines = Object.entries(front).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\n---\n${keepOptions(drawn).replaceAll(/^ *\|.*$/gm, breakLongNames)}`;
}

/** An option of a command does not break after its hyphens. Leaves blocks of code as they are. */
function keepOptions(text: string): string {
  return text.replaceAll(/^ *```.*?^ *```$|`(--[\w-]+)((?: [\w./:=…-]+)*)`/gms, (all, option?: string, rest = '') =>
    option ? `<code><span class="whole">${option}</span>${rest.replaceAll('_', '&#95;')}</code>` : all,
  );
}

/** A long name in a table breaks before one of its words, and not within. */
function breakLongNames(row: string): string {
  return row.replaceAll(/`([\w./{}-]{16,})`/g, (_, name: string) => {
    const parts = name.replaceAll(/(_+|[./-]|[a-z](?=[A-Z]))(?=[\w{])/g, '$1<wbr />');
    // An underscore outside of code is emphasis.
    return `<code>${parts.replaceAll('_', '&#95;')}</code>`;
  });
}

/** HTML in Markdown ends at an empty line. */
function drawDiagram(diagram: string): string {
  const svg = renderMermaidSVG(diagram, COLORS).replaceAll(/\n\s*\n/g, '\n');
  return `<div class="diagram not-content">\n${svg}\n</div>`;
}

rmSync(PAGES, { recursive: true, force: true });
for (const page of pages) {
  const file = join(PAGES, page === 'README.md' ? 'index.md' : page);
  mkdirSync(dirname(file), { recursive: true });
  const text = readFileSync(join(DOCS, page), 'utf8');
  writeFileSync(file, toSitePage(page, APP_PAGES.has(`docs/${page}`) ? toAppPage(text) : text));
}
writeFileSync(MESSAGES, JSON.stringify(readMessages(readFileSync(join(DOCS, 'reference/messages.md'), 'utf8'))));
for (const picture of globSync('**/*.{png,svg}', { cwd: DOCS })) {
  mkdirSync(dirname(join(PAGES, picture)), { recursive: true });
  cpSync(join(DOCS, picture), join(PAGES, picture));
}
