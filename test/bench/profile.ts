import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Profiles the host of the product under GETs of a sample by 16 callers, and prints the time of a GET by the code that spends it,
 * as a ratio to the time in the SDK of storage: a busy machine slows both down. Uses only what commits before the benchmarks have,
 * too, so that a copy of this file profiles these as well. `--functions 30` also prints the functions with the largest shares.
 */

const SAMPLE = '/api/employees/Sales/000123';
const SDK = 'The SDK of storage';
const CALLERS = 16;
const WARM_UP_MS = 6_000;
const MEASURED_MS = 8_000;
/** The first match counts. What has no file, such as `JSON.parse`, belongs to its caller. */
const GROUPS: readonly (readonly [RegExp, string])[] = [
  [/@azure\/functions\//, 'The library @azure/functions'],
  [/node_modules\/(@azure|@typespec)\//, SDK],
  [/node_modules\/zod\//, 'zod'],
  [/node_modules\/jose\//, 'jose (tokens)'],
  [/node_modules\/@opentelemetry\//, 'OpenTelemetry'],
  [/\/local\/host\//, 'The local host'],
  [/\/lib\/storage\//, 'Rowkey: storage'],
  [/\/lib\/(http|access)\/|register-functions/, 'Rowkey: http and access'],
  [/\/lib\//, 'Rowkey: all else'],
  [/^node:internal\/(crypto|webcrypto)|^node:crypto/, 'Node: crypto'],
  [/undici|^node:internal\/(url|webstreams)/, 'Node: Headers, Request, URL, streams'],
  [/^node:internal\/stream_base_commons/, 'Node: writes to sockets'],
  [/^node:/, 'Node: HTTP and all else'],
];

interface Profile {
  readonly startTime: number;
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly children?: readonly number[];
  readonly callFrame: Readonly<Record<'functionName' | 'url', string> & Record<'lineNumber' | 'columnNumber', number>>;
}

const folder = await mkdtemp(join(tmpdir(), 'rowkey-profile-'));
const command = (name: string) => `local/commands/${name}.ts`;
try {
  execFileSync(process.execPath, [command('build')]);
  const profiled = { ...process.env, NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` };
  const args = [command('start'), '--port', '0', '--data', join(folder, 'data')];
  const running = spawn(process.execPath, args, { env: profiled, stdio: ['ignore', 'pipe', 'inherit'] });
  let greeting = '';
  for await (const text of running.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    greeting += text;
    if (/Bearer \S+/.test(greeting)) break;
  }
  running.stdout.resume();
  const [, origin = ''] = /(http:\/\/[\w.]+:\d+)/.exec(greeting) ?? [];
  const token = execFileSync(process.execPath, [command('token'), '--role', 'hr', '--data', join(folder, 'data')]);
  const since = await load(origin + SAMPLE, String(token).trim());
  running.kill('SIGTERM');
  await once(running, 'exit');
  await report(since);
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Returns the measured period, in microseconds of the clock that profiles have, and the number of its requests. */
async function load(url: string, token: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  const options = { agent, headers: { authorization: `Bearer ${token}` } };
  const getOnce = async () => {
    const sent = get(url, options);
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 200) throw new Error(`GET ${url} returned ${response.statusCode}.`);
  };
  const repeat = async (milliseconds: number) => {
    const until = performance.now() + milliseconds;
    let count = 0;
    const call = async () => {
      for (; performance.now() < until; count += 1) await getOnce();
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
    return count;
  };
  await repeat(WARM_UP_MS);
  const since = Number(process.hrtime.bigint() / 1_000n);
  const requests = await repeat(MEASURED_MS);
  agent.destroy();
  return { since, until: Number(process.hrtime.bigint() / 1_000n), requests };
}

async function report({ since, until, requests }: Awaited<ReturnType<typeof load>>): Promise<void> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.cpuprofile'));
  const profiles: Profile[] = await Promise.all(
    files.map(async (file) => JSON.parse(await readFile(join(folder, file), 'utf8'))),
  );
  const host = profiles.find(({ nodes }) => nodes.some(({ callFrame }) => callFrame.url.endsWith('/http-listener.ts')));
  if (!host) throw new Error('The host has written no profile.');
  const place = await placesOf(host);
  const [byGroup, byFunction] = [new Map<string, number>(), new Map<string, number>()];
  const names = new Map(host.nodes.map(({ id, callFrame }) => [id, callFrame.functionName]));
  let at = host.startTime;
  for (const [index, id] of host.samples.entries()) {
    const took = host.timeDeltas[index] ?? 0;
    at += took;
    const name = names.get(id) ?? '';
    if (at < since || at > until || name === '(idle)') continue;
    const file = place(id);
    const group = name.startsWith('(')
      ? name === '(garbage collector)'
        ? 'Garbage collection'
        : 'Native code'
      : (GROUPS.find(([pattern]) => pattern.test(file))?.[1] ?? 'All else');
    byGroup.set(group, (byGroup.get(group) ?? 0) + took);
    const named = `${name} ${file.replace(/^.*\/(?=node_modules|lib|local)/, '')}`;
    byFunction.set(named, (byFunction.get(named) ?? 0) + took);
  }
  const sdk = byGroup.get(SDK) ?? Number.NaN;
  const print = (costs: ReadonlyMap<string, number>, most = costs.size) => {
    for (const [what, cost] of [...costs].toSorted(([, one], [, other]) => other - one).slice(0, most))
      console.log(`| ${what} | ${(cost / sdk).toFixed(2)} |`);
  };
  const total = [...byGroup.values()].reduce((sum, cost) => sum + cost, 0);
  console.log(`| ${requests} requests | Ratio to the SDK |\n|---|---:|\n| All | ${(total / sdk).toFixed(2)} |`);
  print(byGroup);
  const [, most] = process.argv.slice(2);
  if (most !== undefined) print(byFunction, Number(most));
}

/** Returns the function that finds the file of a node: the source if the file is bundled, and that of the caller if there is none. */
async function placesOf({ nodes }: Profile): Promise<(id: number) => string> {
  const maps = new Map<string, SourceMap>();
  for (const url of new Set(nodes.map(({ callFrame }) => callFrame.url))) {
    const map = url.includes('/dist/') && (await readFile(new URL(`${url}.map`), 'utf8').catch(() => undefined));
    if (map) maps.set(url, new SourceMap(JSON.parse(map)));
  }
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map<number, string>();
  const place = (id: number | undefined): string => {
    const node = id === undefined ? undefined : byId.get(id);
    if (!node || id === undefined) return '';
    const { url, lineNumber, columnNumber } = node.callFrame;
    const entry = maps.get(url)?.findEntry(lineNumber, columnNumber);
    const file =
      found.get(id) ?? ((entry && 'originalSource' in entry && entry.originalSource) || url || place(parents.get(id)));
    found.set(id, file);
    return file;
  };
  return place;
}
