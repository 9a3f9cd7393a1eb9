import { globSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { run } from '../local/cli/command.ts';

/** The pages of each kind of reader. */
const GROUPS = {
  users: ['README.md', 'docs/*.md', 'docs/recipes/*.md'],
  reference: ['docs/reference/{audit,change-the-api,configuration,http,infrastructure,model,telemetry}.md'],
  // Pages to search, which are written from the code.
  generated: ['docs/reference/{commands,messages,options,problems,routes}.md'],
  internals: ['docs/internals/**/*.md'],
};

interface PageWords {
  readonly page: string;
  readonly words: number;
}

/** Counts what is between white space, as `wc -w` does: tables and code are read as well. */
export function countWords(group: keyof typeof GROUPS): PageWords[] {
  return globSync(GROUPS[group])
    .toSorted()
    .map((page) => ({ page, words: readFileSync(page, 'utf8').split(/\s+/).filter(Boolean).length }));
}

export function sumWords(pages: readonly PageWords[]): number {
  return pages.reduce((sum, { words }) => sum + words, 0);
}

function printWords(): void {
  for (const group of Object.keys(GROUPS) as (keyof typeof GROUPS)[]) {
    const pages = countWords(group);
    console.log(`${group}: ${sumWords(pages)} words in ${pages.length} pages`);
    for (const { page, words } of pages) console.log(`${String(words).padStart(7)}  ${page}`);
  }
}

const program = new Command().description('Counts the words of each page of the documentation.').action(printWords);
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await run(program);
