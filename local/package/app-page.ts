/** Imports nothing: the site, which has packages of its own, uses it too. */

/** The pages for an author of an app. The others are about this repository: its tests, its template, its measurements. */
export const APP_PAGES: ReadonlySet<string> = new Set(
  [
    ...['access', 'accounts', 'backup', 'browsers', 'change-the-model', 'console', 'declare-an-entity', 'deploy'],
    ...[
      'existing-tables',
      'files',
      'grants',
      'import-export',
      'limits',
      'local',
      'operating',
      'other-languages',
      'read-and-write',
    ],
    ...[
      'testing',
      'troubleshooting',
      'tutorial-existing-tables',
      'typed-client',
      'use-as-a-package',
      'users',
      'workflows',
    ],
    ...['approvals', 'bookings', 'counters', 'direct-reads', 'imports', 'invitations', 'membership'].map(
      (page) => `recipes/${page}`,
    ),
    ...['prefix-search', 'publishing', 'tenants'].map((page) => `recipes/${page}`),
    ...['audit', 'change-the-api', 'commands', 'configuration', 'http', 'infrastructure', 'messages', 'model'].map(
      (page) => `reference/${page}`,
    ),
    ...['options', 'problems', 'routes', 'telemetry'].map((page) => `reference/${page}`),
    ...['consistency', 'local-host', 'moves', 'rekey', 'security'].map((page) => `internals/${page}`),
  ].map((page) => `docs/${page}.md`),
);

/** npm scripts of a clone that are also commands of the package. */
const COMMANDS =
  /npm run (?:-s )?(accounts|backup|copy|export|history|import|infra|inspect|package|purge|redirects|reindex|rekey|replay|restore|roles|rotate-key|secret|smoke|token|undelete|verify|walk)\b(?: --(?=[ `]))?/g;
/** The examples that this starts are not in the package. */
const START = /npm start(?! -- --app)\b(?: --(?=[ `]))?/g;
const OTHER_COMMANDS = /npm (start|run|ci|test)\b/;
/** How a page of the reference is written. */
const WRITTEN = / ?`npm run (?:reference|problems)` writes this page.*$/gm;
const CLONE_ONLY = 'The commands `npm run …` and `npm test` of this page are those of a clone of Rowkey.';

/** Returns a page with the commands of the package in place of those of a clone. An app that `npm create rowkey` makes has no others. */
export function toAppPage(text: string): string {
  const page = text.replaceAll(WRITTEN, '').replaceAll(COMMANDS, 'npx rowkey $1').replaceAll(START, 'npx rowkey dev');
  return OTHER_COMMANDS.test(page) ? page.replace('\n', `\n\n> ${CLONE_ONLY}\n`) : page;
}
