import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import type { Model } from '../../lib/define/define-model.ts';
import { writeInfra } from '../cli/infra-command.ts';
import { PAGES, type Page } from '../create/create-app.ts';
import { publishedFields } from './build-library.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = join(ROOT, 'local', 'create');
/** Each app is made of these folders of `local/create/template`, each laid over those before it. */
const LAYERS: Readonly<Record<Page, readonly string[]>> = {
  none: ['app'],
  plain: ['app', 'page', 'plain'],
  tanstack: ['app', 'page', 'tanstack'],
};

/** Builds the package `create-rowkey`: the initializer in one file, and a whole app for each page that it offers. */
export async function buildCreate(folder = join(ROOT, 'dist', 'create')): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  const bundle = await rolldown({ input: join(SOURCE, 'create-rowkey.ts'), platform: 'node' });
  await bundle.write({ file: join(folder, 'create-rowkey.js'), format: 'esm', codeSplitting: false });
  await bundle.close();
  const root = await readJson(join(ROOT, 'package.json'));
  const manifest = {
    ...{ name: 'create-rowkey', description: 'Creates an app that uses Rowkey.', ...publishedFields(root) },
    ...{
      engines: root.engines,
      bin: { 'create-rowkey': './create-rowkey.js' },
      files: ['create-rowkey.js', 'template'],
    },
  };
  await writeJson(join(folder, 'package.json'), manifest);
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const model = await loadTemplateModel(folder);
  for (const page of Object.keys(PAGES) as Page[]) await buildTemplate(join(folder, 'template', page), page, model);
}

async function buildTemplate(folder: string, page: Page, model: Model): Promise<void> {
  for (const layer of LAYERS[page]) await addLayer(join(SOURCE, 'template', layer), folder);
  await addVersions(join(folder, 'package.json'));
  await addGeneratedFiles(folder, model);
}

/** Adds what Rowkey itself has or makes, so that the template does not repeat it. */
async function addGeneratedFiles(folder: string, model: Model): Promise<void> {
  await cp(join(ROOT, 'host.json'), join(folder, 'host.json'));
  await writeInfra(folder, model);
}

/** Returns the model of the template, which imports the package: here, its source. */
async function loadTemplateModel(folder: string): Promise<Model> {
  const bundle = await rolldown({
    input: join(SOURCE, 'template', 'app', 'model.ts'),
    platform: 'node',
    resolve: { alias: { rowkey: join(ROOT, 'lib', 'define.ts') } },
  });
  const file = join(folder, 'model.mjs');
  await bundle.write({ file, format: 'esm', codeSplitting: false });
  await bundle.close();
  const { model } = await import(pathToFileURL(file).href);
  await rm(file);
  return model;
}

/** Copies a layer: JSON is merged into that of the layers before it, and Markdown is appended. No other file may exist. */
async function addLayer(layer: string, folder: string): Promise<void> {
  for (const entry of await readdir(layer, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(folder, source.slice(layer.length));
    await mkdir(dirname(target), { recursive: true });
    const before = await readFile(target, 'utf8').catch(() => undefined);
    if (before === undefined) await cp(source, target);
    else if (target.endsWith('.json')) await writeJson(target, merge(JSON.parse(before), await readJson(source)));
    else if (target.endsWith('.md')) await writeFile(target, before + (await readFile(source, 'utf8')));
    else throw new Error(`${source} is in another layer, too.`);
  }
}

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** RFC 7396, without removals. Members keep their order, so that the manifest of an app looks as npm writes it. */
function merge(before: Json, layer: Json): Json {
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(layer)) {
    const old = merged[name];
    merged[name] = isObject(old) && isObject(value) ? merge(old, value) : value;
  }
  return merged;
}

/** An app gets the versions with which this repository is tested, or later ones that are compatible. */
async function addVersions(file: string): Promise<void> {
  const root = await readJson(join(ROOT, 'package.json'));
  const { version, devDependencies, overrides } = root;
  const versions: Json = { ...(isObject(devDependencies) && devDependencies), rowkey: version };
  const toVersions = (dependencies: unknown) =>
    Object.fromEntries(
      Object.keys(dependencies as Json)
        .toSorted()
        .map((name) => {
          if (versions[name] === undefined) throw new Error(`package.json has no version of ${name}.`);
          return [name, `^${versions[name]}`];
        }),
    );
  const { dependencies, devDependencies: tools, ...manifest } = await readJson(file);
  await writeJson(file, {
    ...manifest,
    dependencies: toVersions(dependencies),
    devDependencies: toVersions(tools),
    overrides,
  });
}

async function readJson(file: string): Promise<Json> {
  return JSON.parse(await readFile(file, 'utf8'));
}

async function writeJson(file: string, value: Json): Promise<void> {
  await writeFile(file, `${JSON.stringify(value, undefined, 2)}\n`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await buildCreate();
