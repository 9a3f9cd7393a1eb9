import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildApp } from '../../local/package/build-app.ts';
import { type Loaded, measureLoad } from '../../local/package/measure-load.ts';

/** Measures the load of the app up to the registration of all functions, as a ratio to an app with one function. */

const ROUNDS = 9;
const OUT = fileURLToPath(new URL('../../out', import.meta.url));
const HELLO = `import { app } from '@azure/functions';
app.http('hello', { methods: ['GET'], route: 'hello', authLevel: 'anonymous', handler: () => ({ body: 'hello' }) });
`;

export interface ColdStart {
  readonly app: Medians;
  /** With the code that V8 compiled in an earlier load, from a folder that a new instance of an app does not have. */
  readonly compiled: Medians;
  readonly hello: Medians;
}

export type Medians = Omit<Loaded, 'functions' | 'builtins'> & { readonly functions: number };

/** Builds both apps and loads them in turn, each time in a new process. */
export async function measureColdStart(): Promise<ColdStart> {
  await mkdir(OUT, { recursive: true });
  // Inside of the repository, where the packages are found.
  const folder = await mkdtemp(join(OUT, 'cold-start-'));
  try {
    await writeFile(join(folder, 'hello.ts'), HELLO);
    await buildApp({ folder: join(folder, 'app') });
    await buildApp({ entry: join(folder, 'hello.ts'), folder: join(folder, 'hello') });
    for (const name of ['app', 'hello']) await writeFile(join(folder, name, 'package.json'), '{"type":"module"}');
    const bundle = [join(folder, 'app', 'app.js')];
    const compileCache = join(folder, 'compiled');
    await measureLoad(bundle, compileCache);
    const rounds: { app: Loaded; compiled: Loaded; hello: Loaded }[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      rounds.push({
        app: await measureLoad(bundle),
        compiled: await measureLoad(bundle, compileCache),
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

function mediansOf(loads: readonly Loaded[]): Medians {
  const medianOf = (of: (load: Loaded) => number) =>
    loads.map(of).toSorted((one, other) => one - other)[loads.length >> 1] ?? Number.NaN;
  return {
    milliseconds: medianOf(({ milliseconds }) => milliseconds),
    cpuMilliseconds: medianOf(({ cpuMilliseconds }) => cpuMilliseconds),
    megabytes: medianOf(({ megabytes }) => megabytes),
    functions: loads[0]?.functions.length ?? 0,
  };
}

if (import.meta.main) {
  const { app, compiled, hello } = await measureColdStart();
  for (const [name, of] of Object.entries({ 'hello world': hello, app, 'app, compiled before': compiled })) {
    const ratios = `${(of.cpuMilliseconds / hello.cpuMilliseconds).toFixed(1)} of CPU, ${(of.megabytes / hello.megabytes).toFixed(2)} of memory`;
    console.log(
      `${name.padEnd(20)} ${of.functions} functions, ${of.milliseconds.toFixed(0)} ms, ${of.cpuMilliseconds.toFixed(0)} ms of CPU, ${of.megabytes.toFixed(0)} MB; ${ratios}`,
    );
  }
}
