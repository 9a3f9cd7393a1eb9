import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildApp, compileApp } from '../../local/package/build-app.ts';
import { type Loaded, measureLoad } from '../../local/package/measure-load.ts';
import { buildFixtures } from '../fixtures/build.ts';
import { deployedApp } from '../fixtures/deployed-app.ts';
import { type FirstRequest, prepareFirstRequests } from './first-request.ts';

/**
 * Measures the load of the app up to the registration of all functions, and a new process up to its first response, as ratios to
 * an app with one function, and writes the figures into the documentation.
 */

const PAGE = 'docs/internals/performance.md';
const ROUNDS = 9;
const OUT = fileURLToPath(new URL('../../out', import.meta.url));
const HELLO = `import { app } from '@azure/functions';
app.http('hello', { methods: ['GET'], route: 'hello', authLevel: 'anonymous', handler: () => ({ body: 'hello' }) });
`;

interface ColdStart {
  readonly app: Medians;
  /** With the compiled code that the package has for this build of Node. */
  readonly compiled: Medians;
  readonly hello: Medians;
}

interface FirstResponse {
  readonly app: FirstRequest;
  /** With a pause before the first request, in which a real host indexes the functions. */
  readonly afterPause: FirstRequest;
  readonly hello: FirstRequest;
  /** The median of the rounds' ratios of the time from the start of the process. */
  readonly ratio: number;
}

type Medians = Omit<Loaded, 'functions' | 'builtins'> & { readonly functions: number };

/** Builds both apps and loads them in turn, each time in a new process. */
async function measureColdStart(): Promise<ColdStart> {
  await mkdir(OUT, { recursive: true });
  // Inside of the repository, where the packages are found.
  const folder = await mkdtemp(join(OUT, 'cold-start-'));
  try {
    await writeFile(join(folder, 'hello.ts'), HELLO);
    await buildApp({ folder: join(folder, 'app') });
    await buildApp({ folder: join(folder, 'compiled') });
    await compileApp(join(folder, 'compiled'));
    await buildApp({ files: [join(folder, 'hello.ts')], folder: join(folder, 'hello') });
    for (const name of ['app', 'compiled', 'hello'])
      await writeFile(join(folder, name, 'package.json'), '{"type":"module"}');
    const bundle = [join(folder, 'app', 'app.js')];
    const rounds: { app: Loaded; compiled: Loaded; hello: Loaded }[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      rounds.push({
        app: await measureLoad(bundle),
        compiled: await measureLoad([join(folder, 'compiled', 'app.js')]),
        hello: await measureLoad([join(folder, 'hello', 'app.js')]),
      });
    return {
      app: mediansOf(rounds.map(({ app }) => app)),
      compiled: mediansOf(rounds.map(({ compiled }) => compiled)),
      hello: mediansOf(rounds.map(({ hello }) => hello)),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts a host of the fixtures' model, with compiled code, and one with a single function in turn, each with one first request. */
async function measureFirstResponse(): Promise<FirstResponse> {
  await mkdir(OUT, { recursive: true });
  const folder = await mkdtemp(join(OUT, 'first-response-'));
  const [product, hello] = [join(folder, 'product'), join(folder, 'hello')];
  try {
    await writeFile(join(folder, 'hello.ts'), HELLO);
    await buildFixtures({ ...deployedApp, folder: product });
    await compileApp(product);
    await buildApp({ files: [join(folder, 'hello.ts')], folder: hello });
    await writeFile(join(hello, 'package.json'), '{"type":"module","main":"app.js"}');
    // As in a package: with them, the local host does not use compiled code.
    for (const app of [product, hello]) await rm(join(app, 'main.cjs.map'));
    const requests = await prepareFirstRequests({ product, hello });
    const rounds: Record<'app' | 'afterPause' | 'hello', FirstRequest>[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      rounds.push({
        app: await requests.product(),
        afterPause: await requests.productAfterPause(),
        hello: await requests.hello(),
      });
    await requests.stop();
    const of = (side: 'app' | 'afterPause' | 'hello'): FirstRequest => ({
      answered: medianOf(rounds.map((round) => round[side].answered)),
      first: medianOf(rounds.map((round) => round[side].first)),
      second: medianOf(rounds.map((round) => round[side].second)),
    });
    const ratio = medianOf(rounds.map((round) => round.app.answered / round.hello.answered));
    return { app: of('app'), afterPause: of('afterPause'), hello: of('hello'), ratio };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function medianOf(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[figures.length >> 1] ?? Number.NaN;
}

function mediansOf(loads: readonly Loaded[]): Medians {
  return {
    milliseconds: medianOf(loads.map(({ milliseconds }) => milliseconds)),
    cpuMilliseconds: medianOf(loads.map(({ cpuMilliseconds }) => cpuMilliseconds)),
    megabytes: medianOf(loads.map(({ megabytes }) => megabytes)),
    functions: loads[0]?.functions.length ?? 0,
  };
}

/** The page with these figures between its marks. Throws if it has no marks. */
export function withFigures(page: string, cold: ColdStart, response: FirstResponse): string {
  const figures = { 'cold start': formatColdStart(cold), 'first response': formatFirstResponse(response) };
  return Object.entries(figures).reduce((text, [name, figure]) => {
    const marked = new RegExp(`(<!-- ${name}: .* -->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
    if (!marked.test(text)) throw new Error(`${PAGE} has no marks for the figures of the ${name}.`);
    return text.replace(marked, `$1${figure}\n$2`);
  }, page);
}

function formatColdStart({ hello, app, compiled }: ColdStart): string {
  const toRow = (name: string, of: Medians) => {
    const cpu = (of.cpuMilliseconds / hello.cpuMilliseconds).toFixed(1);
    const memory = (of.megabytes / hello.megabytes).toFixed(2);
    return `| ${name} | ${of.functions} | ${cpu} (${of.cpuMilliseconds.toFixed(0)} ms) | ${memory} (${of.megabytes.toFixed(0)} MB) | ${of.milliseconds.toFixed(0)} ms |`;
  };
  return `| | Functions | CPU, ratio | Memory, ratio | All functions registered after |
|---|---:|---:|---:|---:|
${toRow('An app with one function', hello)}
${toRow('This app', app)}
${toRow('This app, with [compiled code](#compiled-code) for this version of Node', compiled)}`;
}

function formatFirstResponse({ ratio, app, afterPause, hello }: FirstResponse): string {
  const toRow = (name: string, of: FirstRequest) =>
    `| ${name} | ${of.answered.toFixed(0)} ms | ${of.first.toFixed(0)} ms | ${of.second.toFixed(0)} ms |`;
  return `| | First response after | The first request took | The next one |
|---|---:|---:|---:|
${toRow('The app with one function', hello)}
${toRow('This app', app)}
${toRow('This app, first request a second after the host listened', afterPause)}

The first response of this app takes **${ratio.toFixed(2)}** times as long as that of the app with one function.`;
}

if (import.meta.main) {
  const page = withFigures(await readFile(PAGE, 'utf8'), await measureColdStart(), await measureFirstResponse());
  await writeFile(PAGE, page);
}
