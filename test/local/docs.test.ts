import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatProblems } from '../../local/commands/problems.ts';
import { REFERENCE } from '../../local/commands/reference.ts';
import { APP_PAGES, toAppPage } from '../../local/package/app-page.ts';
import { formatSettings } from '../../local/reference/settings-page.ts';
import { findPhrase, readMessages } from '../../site/find-phrase.ts';
import { formatChecklist, readChecklist, recommendationsOf, toTest } from '../checklist.ts';
import { appFunctions } from '../kit/api.ts';
import { Finding } from '../kit/define.ts';
import { RULES } from '../model/rules.ts';
import { PROMISES } from '../mutation/promises.ts';
import { countWords, sumWords } from '../words.ts';

const pages = globSync(['*.md', 'docs/*.md', 'docs/{internals,recipes,reference}/*.md']);

/** Returns the anchors that GitHub gives the headings of a page. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^ *```.*?^ *```/gms, '');
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe.each(pages)('%s', (page) => {
  const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)]
    .map(([, link = '', anchor]) => ({ link, anchor, file: link === '' ? page : join(dirname(page), link) }))
    .filter(({ link }) => !/^\w+:/.test(link));

  test('links to files that exist', () => {
    expect(links.map(({ file }) => file).filter((file) => !existsSync(file))).toEqual([]);
  });

  test('links to no example pack, which an adopter deletes', () => {
    expect(links.map(({ file }) => file).filter((file) => /^examples\/[^/]+\/./.test(file))).toEqual([]);
  });

  test('names npm scripts and source files that exist', () => {
    const text = readFileSync(page, 'utf8');
    // Those of a clone, and those of an app that `npm create rowkey` makes.
    const manifests = ['package.json', ...globSync('local/create/template/*/package.json')];
    const scripts = Object.assign({}, ...manifests.map((file) => JSON.parse(readFileSync(file, 'utf8')).scripts));
    const named = [...text.matchAll(/npm run (?:-s )?([a-z][\w:-]*)/g)].map(([, script = '']) => script);
    expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
    const sources = /(?<![\w/.])(?:lib|local|test|infra)\/[\w/.-]+\.(?:ts|mjs|json|bicep|bicepparam)\b/g;
    const files = [...text.matchAll(sources)].map(([file]) => file).filter((file) => !file.endsWith('.test.ts'));
    // A snippet whose first line names a file shows a file to create.
    expect(files.filter((file) => !existsSync(file) && !text.includes(`\`\`\`ts\n// ${file}\n`))).toEqual([]);
  });

  test('links to headings that exist', () => {
    const anchored = links.filter(
      ({ anchor, file }) => anchor !== undefined && file.endsWith('.md') && existsSync(file),
    );
    const missing = anchored.filter(({ anchor, file }) => !anchorsOf(file).includes(anchor ?? ''));
    expect(missing.map(({ file, anchor }) => `${file}#${anchor}`)).toEqual([]);
  });
});

test('README.md shows the test command that CI runs', () => {
  const [, command] = /grep -qx '([^']+)' README\.md/.exec(readFileSync('.ci/run', 'utf8')) ?? [];
  expect(readFileSync('README.md', 'utf8').split('\n')).toContain(command);
});

test('docs/README.md leads to every page', () => {
  const index = readFileSync('docs/README.md', 'utf8');
  expect(
    globSync('{*,internals/*,recipes/*,reference/*}.md', { cwd: 'docs' }).filter(
      (page) => page !== 'README.md' && !index.includes(`](${page})`),
    ),
  ).toEqual([]);
});

test('a page for authors of apps shows the commands of the package, and says which others need a clone', () => {
  const page =
    '# A\n\n`npm run -s token -- --role hr`, `npm start -- --port 0`. `npm run reference` writes this page.\n';
  expect(toAppPage(page)).toBe('# A\n\n`npx rowkey token --role hr`, `npx rowkey dev --port 0`.\n');
  expect(toAppPage('# A\n\n`npm run init`\n')).toMatch(/^# A\n\n> .*a clone of Rowkey/);
  expect([...APP_PAGES].filter((name) => !existsSync(name))).toEqual([]);
});

test.each([...APP_PAGES].filter((page) => /^docs\/(?:recipes\/)?[\w-]+\.md$/.test(page)))(
  '%s has no command that an app lacks',
  (page) => {
    expect(toAppPage(readFileSync(page, 'utf8'))).not.toContain('are those of a clone of Rowkey');
  },
);

test('docs/getting-started.md says where the app of npm create mentions its operations', () => {
  expect(readFileSync('docs/getting-started.md', 'utf8')).toContain('its two mentions in `app.ts`');
  const app = readFileSync('local/create/template/app/app.ts', 'utf8');
  expect(app.split('\n').filter((line) => line.includes('operations'))).toHaveLength(2);
});

test('the pages that users read have at most 45,000 words: cut where you add', () => {
  expect(sumWords(countWords('users'))).toBeLessThanOrEqual(45_000);
});

test('every page of the reference is counted as written by hand or from the code', () => {
  const counted = [...countWords('reference'), ...countWords('generated')].map(({ page }) => page);
  expect(counted.toSorted()).toEqual(globSync('docs/reference/*.md').toSorted());
});

test('docs/reference/problems.md describes the codes', () => {
  const isCurrent = readFileSync('docs/reference/problems.md', 'utf8') === formatProblems();
  expect(isCurrent, 'docs/reference/problems.md is stale: run npm run problems, and commit it').toBe(true);
});

test.each(Object.entries(REFERENCE))('%s is written from the code', (file, format) => {
  const isCurrent = readFileSync(file, 'utf8') === format();
  expect(isCurrent, `${file} is stale: run npm run reference, and commit it`).toBe(true);
});

test('docs/reference/messages.md has the messages of a choice, a constant, a helper and the initializer', () => {
  const page = readFileSync('docs/reference/messages.md', 'utf8');
  for (const message of [
    'The token has expired.',
    'Storage is unavailable.',
    '… "…" already exists.',
    'Another request is writing the same entity.',
    'The folder … is not empty: choose another name. Nothing was written.',
  ])
    expect(page).toContain(`\n- ${message}\n`);
});

test('the search of the site finds a message of an app by the longest part without its names', () => {
  const messages = readMessages(readFileSync('docs/reference/messages.md', 'utf8'));
  const phrase = '"copies everything, which one row cannot hold. Set copies to \'keys\' or to a list of fields."';
  expect(findPhrase(`Entity "zebras": the index "stripes" ${phrase.slice(1, -1)}`, messages)).toBe(phrase);
  expect(findPhrase('zebras "Oslo/1" already exists.', messages)).toBe('"already exists."');
  expect(findPhrase('zebras', messages)).toBeUndefined();
});

test('a setting without a doc comment cannot be missing on docs/reference/configuration.md', () => {
  const source = readFileSync('lib/settings.ts', 'utf8');
  const comment = '/** Their claim `aud`. */';
  expect(source).toContain(comment);
  expect(() => formatSettings('', source.replace(comment, ''))).toThrow('TOKEN_AUDIENCE has no doc comment');
});

test('docs/internals/security.md names tests that exist', () => {
  const named = [...readFileSync('docs/internals/security.md', 'utf8').matchAll(/`([\w/-]+\.test\.ts)`/g)].map(
    ([, file]) => file,
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(`test/${file}`))).toEqual([]);
});

/** The first cells of the tables under a heading. */
function firstCells(page: string, heading: string): string[] {
  const [, section = ''] = readFileSync(page, 'utf8').split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^\| `?([^|`]+?)`?(?:, `[^|]*)? \|/gm)].map(([, cell = '']) => cell);
}

test('docs/operating.md describes every timer', () => {
  expect(firstCells('docs/operating.md', 'Timers')).toEqual(expect.arrayContaining(Object.keys(appFunctions.TIMERS)));
});

test('docs/operating.md describes every finding of the consistency check', () => {
  expect(firstCells('docs/operating.md', 'Check consistency')).toEqual(
    expect.arrayContaining([...Finding.shape.kind.options]),
  );
});

test('docs/reference/infrastructure.md names every alert and every saved query', () => {
  const text = readFileSync('docs/reference/infrastructure.md', 'utf8');
  const titles = ['alerts', 'queries'].flatMap((module) =>
    [...readFileSync(`infra/modules/${module}.bicep`, 'utf8').matchAll(/^ +(?:title|question): '(.+)'$/gm)].map(
      ([, title = '']) => title,
    ),
  );
  expect(titles.length).toBeGreaterThan(10);
  expect(titles.filter((title) => !text.includes(title))).toEqual([]);
});

test('docs/internals/architecture.md names functions that exist', () => {
  const named = [...readFileSync('docs/internals/architecture.md', 'utf8').matchAll(/`([\w/.-]+\.ts):(\w+)`/g)];
  expect(named.length).toBeGreaterThan(10);
  const missing = named.filter(([, file = '', name]) => {
    const source = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return !new RegExp(`(function|const) ${name}\\b`).test(source);
  });
  expect(missing.map(([text]) => text)).toEqual([]);
});

test.each(['app.ts', 'depots.ts'])('docs/use-as-a-package.md shows the app that the tests run: %s', (file) => {
  expect(readFileSync('docs/use-as-a-package.md', 'utf8')).toContain(
    `\`\`\`ts\n${readFileSync(`test/adopter/${file}`, 'utf8')}\`\`\`\n`,
  );
});

test('docs/testing.md shows the test that the tests run', () => {
  expect(readFileSync('docs/testing.md', 'utf8')).toContain(
    `\`\`\`ts\n${readFileSync('test/adopter/test-vehicles.ts', 'utf8')}\`\`\`\n`,
  );
});

const checklist = await readChecklist();
const recommendations = recommendationsOf(checklist);

describe('docs/internals/checklist.yaml', () => {
  test('has an id of its own for every recommendation', () => {
    const ids = recommendations.map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) < index)).toEqual([]);
  });

  const hint = 'change docs/internals/checklist.yaml, then run npm run checklist';

  test('names files that exist', () => {
    const named = recommendations.flatMap(({ id, files }) => files.map((file) => ({ id, file })));
    const missing = named.filter(({ file }) => !existsSync(file)).map(({ id, file }) => `${id}: ${file}`);
    expect(missing, hint).toEqual([]);
  });

  test('names tests that exist, each by a title that is unique in its file', () => {
    const named = recommendations.flatMap(({ id, tests }) => tests.map((name) => ({ id, name })));
    const missing = named.filter(({ name }) => countTests(name) !== 1).map(({ id, name }) => `${id}: ${name}`);
    expect(missing, hint).toEqual([]);
  });

  test('has each proven recommendation as done, with the test that proves it', () => {
    const wrong = [...RULES, ...PROMISES].flatMap(({ recommendations: rows = [], test }) =>
      rows.filter((row) => {
        const { status, tests } = recommendations.find(({ id }) => id === row) ?? {};
        // A case of a table of tests is cited by its own name.
        const isCited = tests?.map(toTest).some(({ file, title }) => file === test[0] && test[1].includes(title));
        return status !== 'done' || !isCited;
      }),
    );
    expect(wrong, hint).toEqual([]);
  });

  test('is what docs/internals/checklist.md shows', () => {
    const isCurrent = readFileSync('docs/internals/checklist.md', 'utf8') === formatChecklist(checklist);
    expect(isCurrent, 'docs/internals/checklist.md is stale: run npm run checklist, and commit it').toBe(true);
  });
});

/** How often the file of a test has its title: as the argument of a test, or in a row of a test table. */
function countTests(name: string): number {
  const { file, title } = toTest(name);
  const source = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return ["'", '`'].reduce((count, quote) => count + source.split(`${quote}${title}${quote},`).length - 1, 0);
}

test('docs/reference/configuration.md says what host.json has', () => {
  const { extensions, logging } = JSON.parse(readFileSync('host.json', 'utf8'));
  const { queues } = extensions;
  const page = readFileSync('docs/reference/configuration.md', 'utf8');
  const seconds = (span: string) => `${Number(span.split(':').at(-1))} s`;
  for (const row of [
    `| \`logging.logLevel.default\` | \`${logging.logLevel.default}\` |`,
    `| \`extensions.http.routePrefix\` | \`${JSON.stringify(extensions.http.routePrefix)}\` |`,
    `| \`extensions.queues.messageEncoding\` | \`${queues.messageEncoding}\` |`,
    `| \`extensions.queues.batchSize\`, \`newBatchThreshold\` | ${queues.batchSize}, ${queues.newBatchThreshold} |`,
    `| \`extensions.queues.maxDequeueCount\` | ${queues.maxDequeueCount} |`,
    `| \`extensions.queues.visibilityTimeout\` | ${seconds(queues.visibilityTimeout)} |`,
    `| \`extensions.queues.maxPollingInterval\` | ${seconds(queues.maxPollingInterval)} |`,
  ])
    expect(page).toContain(row);
});
