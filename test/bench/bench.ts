import { readFile, writeFile } from 'node:fs/promises';
import { createCommand, run } from '../../local/cli/command.ts';
import { reportAlternatives } from './alternatives.ts';
import { reportBackup } from './backup.ts';
import { reportGrowth } from './growth-report.ts';
import { besideComparison, lagComparison } from './lag.ts';
import { type Comparison, compare, type Effort, type Result } from './measure.ts';
import { formatPage } from './page.ts';
import { findWorse, readRecorded, record } from './recorded.ts';
import { drawCharts } from './recorded-charts.ts';
import { formatEnvironment, formatLine } from './report.ts';
import { requestComparisons } from './requests.ts';
import { type Servers, startServers } from './servers.ts';
import { grantComparison, importComparison, reconcileComparison } from './work.ts';

interface Options {
  readonly quick: boolean;
  readonly only: string;
  readonly check: boolean;
  readonly record: boolean;
  readonly redraw: boolean;
  readonly million: boolean;
  readonly compare: boolean;
}

const FULL: Effort = { rounds: 5, milliseconds: 1_000, callers: [1, 16, 64] };
const QUICK: Effort = { rounds: 5, milliseconds: 600, callers: [1, 16] };
const GROWTH = 'growth';
const BACKUP = 'backup';
const PAGE = 'docs/internals/benchmarks.md';

const program = createCommand('Measures the product against plain code that does the same storage calls.')
  .option('--quick', 'fewer and shorter rounds, and no page', false)
  .option('--only <name>', 'comparisons whose name contains this text', '')
  .option('--check', 'fails if a ratio is worse than the recorded one by more than its spread', false)
  .option('--record', 'records the ratios for later checks', false)
  .option('--redraw', 'draws the charts of the last run, and measures nothing', false)
  .option('--million', 'growth to a million entities, which takes some GiB of memory', false)
  .option('--compare', 'installs other packages into a temporary folder, and compares them with the product', false)
  .action(bench);

async function bench(options: Options): Promise<void> {
  const { quick, only, million } = options;
  if (options.redraw) return drawCharts();
  const environment = formatEnvironment();
  if (options.compare) return reportAlternatives(environment);
  if (only === BACKUP) return replaceChapter(await reportBackup(quick ? QUICK : FULL));
  const results = only === GROWTH ? [] : await measureAll(options);
  if (options.record) await record(results);
  if (quick || (only !== '' && only !== GROWTH)) return;
  const growth = await reportGrowth({ isMillion: million });
  if (only === '')
    await writeFile(PAGE, formatPage({ environment, results, ...growth, backup: await reportBackup(FULL) }));
  else console.log(growth.chapter, growth.settling);
}

/** Writes a chapter into the page, whose other figures are of an earlier run. */
async function replaceChapter(chapter: string): Promise<void> {
  const [heading = ''] = chapter.split('\n');
  const page = await readFile(PAGE, 'utf8');
  const start = page.indexOf(`\n${heading}\n`) + 1;
  if (start === 0) throw new Error(`${PAGE} has no chapter "${heading}".`);
  const end = page.indexOf('\n## ', start) + 1;
  await writeFile(PAGE, `${page.slice(0, start)}${chapter}\n${page.slice(end)}`);
}

async function measureAll(options: Options): Promise<Result[]> {
  const servers = await startServers();
  try {
    return await measureComparisons(servers, options);
  } finally {
    await servers.stop();
  }
}

async function measureComparisons(servers: Servers, { quick, only, check }: Options): Promise<Result[]> {
  const effort = quick ? QUICK : FULL;
  const recorded = await readRecorded();
  const results: Result[] = [];
  for (const { name, prepare, callers = effort.callers, maxRounds = effort.rounds } of listComparisons(
    servers,
    quick,
  )) {
    if (!name.includes(only)) continue;
    const sides = await prepare();
    for (const count of callers) {
      const measure = async () => {
        const { milliseconds } = effort;
        const rounds = Math.min(effort.rounds, maxRounds);
        const result = await compare(name, sides, { callers: count, milliseconds, rounds });
        console.log(formatLine(result));
        return result;
      };
      let result = await measure();
      if (check && findWorse(result, recorded).length > 0) {
        console.log('Worse than recorded. Measured again, to tell a slower product from a busy machine:');
        result = await measure();
        const worse = findWorse(result, recorded);
        for (const line of worse) console.error(`WORSE: ${line}`);
        if (worse.length > 0) process.exitCode = 1;
      }
      results.push(result);
    }
  }
  return results;
}

function listComparisons(servers: Servers, quick: boolean): Comparison[] {
  return [
    grantComparison(servers),
    ...requestComparisons(servers),
    // Before the import: the emulator saves all rows every five seconds, and serves nothing for a second if there are many.
    ...(quick ? [] : [lagComparison(servers), besideComparison(servers)]),
    importComparison(servers, quick ? 10_000 : 20_000),
    reconcileComparison(servers, quick ? 300 : 500),
  ];
}

await run(program);
