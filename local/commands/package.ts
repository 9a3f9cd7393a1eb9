import { copyFile, glob, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import { Command } from 'commander';
import ignore from 'ignore';
import { run } from '../cli/command.ts';
import { measureLoad } from '../package/measure-load.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUT = join(ROOT, 'out');
const LOADS = 7;

export interface PackagedFile {
  /** With slashes, from the folder of the package. */
  readonly path: string;
  readonly bytes: number;
  /** The size after compression. */
  readonly zippedBytes: number;
}

interface PackageOptions {
  /** Default: true. */
  readonly compiledCode?: boolean;
}

/** Replaces a folder with the files to deploy: all files that .funcignore does not exclude. Build the app first. */
export async function packageApp(
  folder: string,
  { compiledCode = true }: PackageOptions = {},
): Promise<readonly PackagedFile[]> {
  const rules = ignore().add(await readFile(join(ROOT, '.funcignore'), 'utf8'));
  if (!compiledCode) rules.add('/dist/main.cjs.*');
  await rm(folder, { recursive: true, force: true });
  const files: PackagedFile[] = [];
  for await (const path of listDeployedFiles('', rules)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await copyFile(join(ROOT, path), join(folder, path));
    const content = await readFile(join(folder, path));
    files.push({ path, bytes: content.length, zippedBytes: deflateRawSync(content).length });
  }
  return files;
}

async function* listDeployedFiles(folder: string, rules: ReturnType<typeof ignore>): AsyncGenerator<string> {
  for (const entry of await readdir(join(ROOT, folder), { withFileTypes: true })) {
    const path = `${folder}${entry.name}`;
    if (entry.isDirectory() && !rules.ignores(`${path}/`)) yield* listDeployedFiles(`${path}/`, rules);
    if (entry.isFile() && !rules.ignores(path)) yield path;
  }
}

async function report(options: PackageOptions): Promise<void> {
  const files = await packageApp(OUT, options);
  const sumKilobytes = (of: (file: PackagedFile) => number) =>
    formatKilobytes(files.reduce((sum, file) => sum + of(file), 0));
  const width = Math.max(...files.map(({ path }) => path.length)) + 1;
  for (const { path, bytes, zippedBytes } of files)
    console.log(
      `  ${path.padEnd(width)}${formatKilobytes(bytes).padStart(9)} ${formatKilobytes(zippedBytes).padStart(9)} zipped`,
    );
  console.log(
    `out/ has ${files.length} files: ${sumKilobytes(({ bytes }) => bytes)}, ${sumKilobytes(({ zippedBytes }) => zippedBytes)} zipped.`,
  );

  // Outside the repository, so that no installed package is found.
  const remote = await mkdtemp(join(tmpdir(), 'rowkey-package-'));
  try {
    await packageApp(remote, options);
    const sources = await Array.fromAsync(glob('functions/*.ts', { cwd: ROOT }), (file) => join(ROOT, file));
    const bundled: number[] = [];
    const unbundled: number[] = [];
    let functions: readonly string[] = [];
    // Alternating, so that other load on this machine affects both.
    for (let count = 0; count < LOADS; count++) {
      const loaded = await measureLoad([join(remote, 'dist', 'app.js')]);
      bundled.push(loaded.milliseconds);
      unbundled.push((await measureLoad(sources.toSorted())).milliseconds);
      functions = loaded.functions;
    }
    console.log(
      `It registers ${functions.length} functions and loads in ${formatMedian(bundled)} ms, the sources in ${formatMedian(unbundled)} ms (medians of ${LOADS}).`,
    );
  } finally {
    await rm(remote, { recursive: true, force: true });
  }
}

function formatKilobytes(bytes: number): string {
  return `${(bytes / 1000).toLocaleString('en', { maximumFractionDigits: 1 })} kB`;
}

function formatMedian(values: readonly number[]): string {
  return (values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN).toFixed(0);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  await run(
    new Command()
      .description('Writes the files to deploy to out/, and prints their sizes and the load time.')
      .option('--no-compiled-code', 'leave the compiled code out, which only one version of Node uses')
      .action(report),
  );
