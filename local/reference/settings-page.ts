import { readFileSync } from 'node:fs';
import { SETTING_NAMES } from '../../lib/settings.ts';

const SETTINGS = new URL('../../lib/settings.ts', import.meta.url);
const PAGE = new URL('../../docs/reference/configuration.md', import.meta.url);
/** The part of the page that is written. */
const TABLE = /(<!-- settings: .+ -->\n)[\s\S]*?(<!-- \/settings -->)/;
/** The page that explains what a comment mentions. */
const LINKS: Readonly<Record<string, string>> = {
  'further storage accounts': '../accounts.md#settings',
  'a rejected change of the model': '../change-the-model.md#changes-that-are-rejected',
  'traces and metrics': 'telemetry.md',
  visitors: '../users.md#requests-without-a-token',
  'of the console': '../console.md',
  'declares `backup`': '../backup.md',
};

/** Returns the text of docs/reference/configuration.md with its table of settings. Throws if a setting has no doc comment. */
export function formatSettings(page = readFileSync(PAGE, 'utf8'), source = readFileSync(SETTINGS, 'utf8')): string {
  const rows = SETTING_NAMES.map((name) => {
    const [, comment, type = ''] =
      new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])+)\\*/\\s*${name}: ([\\s\\S]+?),\\n(?= *(?:/\\*\\*|}))`).exec(source) ??
      [];
    if (comment === undefined) throw new Error(`The setting ${name} has no doc comment in lib/settings.ts.`);
    const meaning = comment.replaceAll(/\s*\n\s*\* ?/g, ' ').trim();
    return `| \`${name}\` | ${type.endsWith('.optional()') ? '' : '**Required.** '}${link(meaning)} |`;
  });
  const table = ['| Setting | Meaning |', '|---|---|', ...rows].join('\n');
  return page.replace(TABLE, (_, begin: string, end: string) => `${begin}\n${table}\n\n${end}`);
}

function link(meaning: string): string {
  return Object.entries(LINKS).reduce((text, [words, to]) => text.replace(words, `[${words}](${to})`), meaning);
}
