import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { pathOf } from './sample.ts';
import { scoresBelow, tableOfScores } from './scores.ts';
import { findUnlisted, writeSurvivors } from './survivors.ts';

/**
 * `npm run mutation`: changes the code of the engine and its features in one place at a time, and runs the tests that reach the place. A
 * mutant that no test notices survives. The survivors are printed, last those that survivors.yaml lacks, and everything is written to
 * out/mutation.json.
 *
 *   -- FILE…        mutates these files; `FILE:10-20` these lines
 *   --one-in N      a sample of the mutants, by the --seed
 *   --concurrency N processes that run mutants
 *   --least N       fails if the score of the engine or the features is below N %
 *   --write         writes the scores into CONTRIBUTING.md and the survivors into survivors.yaml
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'one-in': { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    concurrency: { type: 'string', default: '2' },
    least: { type: 'string', default: '0' },
    write: { type: 'boolean', default: false },
  },
});
process.env.MUTATION_ONE_IN = values['one-in'];
process.env.MUTATION_SEED = values.seed;
// The same samples of faults in each process.
process.env.TEST_SEED ??= values.seed;
process.env.STORAGE = 'memory';

const results = await new Stryker({
  mutate: positionals.length > 0 ? positionals : ['lib/{engine,features}/**/*.ts'],
  // Most texts are messages to people.
  mutator: { excludedMutations: ['StringLiteral'] },
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner', './test/mutation/sample.ts'],
  checkers: ['sample'],
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // What runs only while a module loads would need all tests.
  ignoreStatic: true,
  concurrency: Number(values.concurrency),
  timeoutMS: 60_000,
  dryRunTimeoutMinutes: 60,
  // TypeScript 7 has no API with which Stryker could rewrite a configuration, and none needs it.
  tsconfigFile: 'none',
  tempDirName: 'out/stryker',
  ignorePatterns: ['out', 'dist', 'web'],
  reporters: ['clear-text', 'progress-append-only', 'json', 'event-recorder'],
  clearTextReporter: { logTests: false, reportTests: false },
  jsonReporter: { fileName: 'out/mutation.json' },
  // A run that is stopped leaves the results until then.
  eventReporter: { baseDir: 'out/mutation-events' },
}).runMutationTest();

const tested = results.map((result) => ({ ...result, path: pathOf(result) }));
const table = tableOfScores(tested);
console.log(table);
for (const { file, line, becomes } of findUnlisted(tested))
  console.log(`Not in the list: ${file}\n- ${line}\n+ ${becomes}`);
if (values.write) {
  writeSurvivors(tested);
  const [begin, end] = ['<!-- mutation: written by `npm run mutation -- --write` -->', '<!-- /mutation -->'];
  const [before, rest = ''] = readFileSync('CONTRIBUTING.md', 'utf8').split(begin);
  writeFileSync('CONTRIBUTING.md', `${before}${begin}\n\n${table}\n\n${end}${rest.split(end)[1] ?? ''}`);
}

const tooLow = scoresBelow(Number(values.least), tested);
for (const line of tooLow) console.error(line);
if (tooLow.length > 0) process.exitCode = 1;
