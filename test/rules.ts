import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Plugin } from 'vite';
import { startVitest } from 'vitest/node';
import { startAzurite } from '../local/instance/azurite.ts';
import { BEGIN, END, PAGE, RULES, type Rule, removeRule, tableOfRules } from './model/rules.ts';
import { PATIENCE_MS } from './patience.ts';

/**
 * `npm run rules`: runs the test of each rule on code without the rule, demands that the test finds the difference, and writes the table
 * of docs/consistency.md. Only the loaded code changes, and no file. `npm run rules -- TEXT` runs the rules whose name has the text, and
 * leaves the page as it is.
 */

const selected = RULES.filter(({ without }) => without.includes(process.argv[2] ?? ''));
// Throws before any test runs if a text is not in the code any more.
const [first, ...others] = selected.map((rule, index) => {
  const path = resolve(rule.file);
  const source = removeRule(rule, readFileSync(path, 'utf8'));
  const plugin: Plugin = { name: 'rule', enforce: 'pre', load: (id) => (id === path ? source : undefined) };
  return { rule, plugin, name: `rule${index}`, key: randomBytes(64).toString('base64') };
});
if (!first) throw new Error(`No rule is called "${process.argv[2]}".`);

/** Runs a test and returns its error, or an empty string. */
async function runTest([file, title]: Rule['test'], connectionString: string, plugin: Plugin): Promise<string> {
  const storage = { [resolve(file)]: connectionString };
  const vitest = await startVitest(
    'test',
    [file],
    {
      // Without the projects of the repository, which build and start what this run does not need.
      config: false,
      include: [file],
      watch: false,
      reporters: [],
      // The cache has the code with the rule.
      fsModuleCache: false,
      testNamePattern: `${title.replace(/[^\w ]/g, '\\$&')}$`,
      testTimeout: PATIENCE_MS,
      hookTimeout: PATIENCE_MS,
      provide: { storage, folder, build: '', seed: '0' },
    },
    { plugins: [plugin] },
  );
  const tests = vitest.state.getTestModules().flatMap(({ children }) => [...children.allTests()]);
  const run = tests.filter((test) => test.result().state !== 'skipped');
  const errors = run.flatMap((test) => test.result().errors ?? []).map(({ message, diff }) => `${message}\n${diff}`);
  await vitest.close();
  if (run.length !== 1) throw new Error(`${file} has ${run.length} tests with the title "${title}"; expected one.`);
  return stripVTControlCharacters(errors.join('\n')).replaceAll('\\"', '"');
}

const since = Date.now();
const folder = mkdtempSync(join(tmpdir(), 'rowkey-rules-'));
const azurite = await startAzurite({ folder: undefined, accounts: [first, ...others] });
let unheld = 0;
try {
  for (const { rule, plugin, name } of [first, ...others]) {
    const error = await runTest(rule.test, azurite.connectionString(name), plugin);
    const isHeld = error.includes(rule.finds);
    if (!isHeld) unheld += 1;
    const why = error ? `fails without "${rule.finds}": ${error}` : 'passes';
    console.log(isHeld ? `held: ${rule.without}` : `NOT HELD: ${rule.without}. "${rule.test.join(': ')}" ${why}`);
  }
} finally {
  await azurite.stop();
  rmSync(folder, { recursive: true, force: true });
}
console.log(
  `${selected.length - unheld} of ${selected.length} rules are held, in ${Math.round((Date.now() - since) / 1_000)} s.`,
);
// vitest sets the exit code for the tests that are to fail.
process.exitCode = unheld > 0 ? 1 : 0;
if (unheld === 0 && selected.length === RULES.length) {
  const [before, rest = ''] = readFileSync(PAGE, 'utf8').split(BEGIN);
  writeFileSync(PAGE, `${before}${BEGIN}\n${tableOfRules()}\n\n${END}${rest.split(END)[1] ?? ''}`);
}
