import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Plugin } from 'vite';
import { startVitest } from 'vitest/node';
import { startIdentityProvider } from '../local/instance/identity-provider.ts';
import { buildFixtures } from './fixtures/build.ts';
import { deployedApp } from './fixtures/deployed-app.ts';
import { BEGIN, type Cut, END, PAGE, RULES, removeRule, tableOfRules, toPattern } from './model/rules.ts';
import { PROMISES } from './mutation/promises.ts';
import { PATIENCE_MS } from './patience.ts';
import { seedOfRun } from './seed.ts';

/**
 * `npm run rules`: takes each rule of the protocol out of the code and runs its test, which must find the difference, and writes the table of
 * docs/internals/consistency.md. `npm run promises` does the same for the promises of the documents. Only the loaded code changes, and no file. With
 * a text, as in `npm run rules -- TEXT`, those whose name has the text run, and the page stays as it is.
 */

const [list = '', text = ''] = process.argv.slice(2);
const cuts: readonly Cut[] = list === 'promises' ? PROMISES : RULES;
const selected = cuts.filter(({ without }) => without.includes(text));
if (selected.length === 0) throw new Error(`None of the ${list} is called "${text}".`);
// Throws before any test runs if a text is not in the code any more.
const runs = selected.map((cut) => {
  const path = resolve(cut.file);
  const source = removeRule(cut, readFileSync(path, 'utf8'));
  const plugin: Plugin = { name: 'cut', enforce: 'pre', load: (id) => (id === path ? source : undefined) };
  return { cut, path, source, plugin };
});

/** Runs a test as `npm test` does, and returns its error, or an empty string. */
async function runTest({ cut, plugin, path, source }: (typeof runs)[number]): Promise<string> {
  const [file, title] = cut.test;
  // The host runs the built app.
  if (readFileSync(file, 'utf8').includes('useProduct')) await buildFixtures({ ...deployedApp, plugins: [plugin] });
  const vitest = await startVitest(
    'test',
    [file],
    {
      // Without the projects of the repository, which build and start what this run does not need.
      config: false,
      include: [file],
      setupFiles: ['test/memory-setup.ts', 'test/cut-setup.ts'],
      watch: false,
      strictTags: false,
      reporters: [],
      // The cache has the code without the cut.
      fsModuleCache: false,
      testNamePattern: `(^|> )${toPattern(title)}$`,
      testTimeout: PATIENCE_MS,
      hookTimeout: PATIENCE_MS,
      expect: { poll: { timeout: PATIENCE_MS / 2, interval: 50 } },
      provide: { storage: 'memory', folder, build: randomUUID(), seed, cut: { path, source } },
    },
    { plugins: [plugin] },
  );
  const tests = vitest.state.getTestModules().flatMap(({ children }) => [...children.allTests()]);
  const run = tests.filter((test) => test.result().state !== 'skipped');
  const errors = run.flatMap((test) => test.result().errors ?? []).map(({ message, diff }) => `${message}\n${diff}`);
  await vitest.close();
  if (run.length === 0) return `No test of ${file} has the title "${title}".`;
  return stripVTControlCharacters(errors.join('\n')).replaceAll('\\"', '"');
}

const since = Date.now();
const seed = seedOfRun();
const folder = mkdtempSync(join(tmpdir(), 'rowkey-rules-'));
let unheld = 0;
try {
  // Creates the signing key of the apps.
  await (await startIdentityProvider({ folder })).stop();
  for (const run of runs) {
    const { cut } = run;
    const error = await runTest(run);
    const isHeld = error.includes(cut.finds);
    if (!isHeld) unheld += 1;
    const why = error ? `fails without "${cut.finds}": ${error}` : 'passes';
    console.log(isHeld ? `held: ${cut.without}` : `NOT HELD: ${cut.without}. "${cut.test.join(': ')}" ${why}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(
  `${selected.length - unheld} of ${selected.length} ${list} are held, in ${Math.round((Date.now() - since) / 1_000)} s. TEST_SEED=${seed}`,
);
// vitest sets the exit code for the tests that are to fail.
process.exitCode = unheld > 0 ? 1 : 0;
if (list === 'rules' && unheld === 0 && selected.length === RULES.length) {
  const [before, rest = ''] = readFileSync(PAGE, 'utf8').split(BEGIN);
  writeFileSync(PAGE, `${before}${BEGIN}\n${tableOfRules()}\n\n${END}${rest.split(END)[1] ?? ''}`);
}
