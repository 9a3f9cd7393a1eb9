import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startFunctionsHost } from '../../local/instance/functions-host.ts';
import { buildApp, compileApp } from '../../local/package/build-app.ts';
import { measureLoad } from '../../local/package/measure-load.ts';
import { model } from '../../model/model.ts';
import { startSurroundings } from './first-request.ts';

/**
 * Prints what a start of the app costs with one function for all routes, with one for each entity, and with one for each path:
 * in the worker alone and, with `--func`, under Azure Functions Core Tools. Linux only, because it reads /proc.
 */

const GROUPINGS = ['one', 'by-entity', 'by-path'] as const;
type Grouping = (typeof GROUPINGS)[number];
const { values } = parseArgs({ options: { func: { type: 'boolean' }, rounds: { type: 'string', default: '5' } } });
const OUT = fileURLToPath(new URL('../../out', import.meta.url));
const READY_WITHIN_MS = 300_000;
/** `USER_HZ`: /proc counts CPU time in hundredths of a second. */
const TICK_MS = 10;

await mkdir(OUT, { recursive: true });
// Inside of the repository, where the packages are found.
const folder = await mkdtemp(join(OUT, 'function-count-'));
try {
  await buildApp({ files: [fileURLToPath(new URL('grouped-functions.ts', import.meta.url))], folder });
  await compileApp(folder);
  await writeFile(join(folder, 'package.json'), '{"type":"module","main":"app.js"}');
  await copyFile('host.json', join(folder, 'host.json'));
  await report('worker', async () => {
    const { functions, cpuMilliseconds, megabytes, milliseconds } = await measureLoad([join(folder, 'app.js')]);
    return {
      functions: functions.length,
      'CPU ms': cpuMilliseconds,
      MB: megabytes,
      'registered after ms': milliseconds,
    };
  });
  if (values.func) {
    const { settings, stop } = await startSurroundings(model);
    await report('func', () => measureHost(settings)).finally(stop);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

type Figures = Readonly<Record<string, number>>;

/** Measures the groupings in turn, so that other work of the machine affects all of them, and prints the medians. */
async function report(what: string, measure: () => Promise<Figures>): Promise<void> {
  const rounds = new Map<Grouping, Figures[]>(GROUPINGS.map((grouping) => [grouping, []]));
  for (let round = 0; round < Number(values.rounds); round += 1)
    for (const grouping of GROUPINGS) {
      process.env.GROUPING = grouping;
      rounds.get(grouping)?.push(await measure());
    }
  for (const [grouping, figures] of rounds) {
    const names = Object.keys(figures[0] ?? {});
    const medians = names.map((name) => `${name} ${medianOf(figures.map((each) => each[name] ?? 0)).toFixed(0)}`);
    console.log(`${what}, ${grouping}: ${medians.join(', ')}`);
  }
}

function medianOf(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[figures.length >> 1] ?? Number.NaN;
}

/** Starts the host and waits for its first response. The CPU and the memory are those of the host and its worker. */
async function measureHost(settings: Readonly<Record<string, string>>): Promise<Figures> {
  const since = performance.now();
  const logged: string[] = [];
  const host = await startFunctionsHost({
    app: folder,
    port: 0,
    settings,
    func: true,
    log: (line) => logged.push(line),
  });
  try {
    while (!(await isServing(`${host.url}/api/health`))) {
      if (performance.now() - since > READY_WITHIN_MS) throw new Error(`The host is not ready.\n${logged.join('\n')}`);
      await sleep(50);
    }
    const milliseconds = performance.now() - since;
    const processes = await readTree(host.process.pid ?? 0);
    const sum = (name: 'cpu' | 'megabytes') => processes.reduce((total, each) => total + each[name], 0);
    return { 'CPU ms': sum('cpu'), MB: sum('megabytes'), 'first response after ms': milliseconds };
  } finally {
    await host.stop();
  }
}

function isServing(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ status }) => status === 200,
    () => false,
  );
}

/** A process and all that descend from it. */
async function readTree(root: number) {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  const all = stats.filter(Boolean).map((stat) => {
    // The name of the program may have spaces; the fields begin after it.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [, parent = 0] = fields;
    const [user = 0, system = 0] = fields.slice(11, 13);
    const PAGE_BYTES = 4_096;
    const megabytes = ((fields[21] ?? 0) * PAGE_BYTES) / 1_000_000;
    return { pid: Number.parseInt(stat, 10), parent, cpu: (user + system) * TICK_MS, megabytes };
  });
  const family = new Set([root]);
  for (let size = 0; size < family.size; ) {
    size = family.size;
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid);
  }
  return all.filter(({ pid }) => family.has(pid));
}
