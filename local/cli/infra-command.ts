import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { z } from 'zod';
import type { Model } from '../../lib/define/define-model.ts';
import { loadModel } from '../instance/load-local-app.ts';
import { formatInfraModel } from './infra-model.ts';

/** The template: infra/ of the repository, and of the package. */
const TEMPLATE = fileURLToPath(new URL('../../infra', import.meta.url));
/** Files of the template that are only for an app of the package, and where the app has them. */
const OWN_PLACES: Readonly<Record<string, string>> = {
  'app/azure.yaml': 'azure.yaml',
  'app/deploy.yml': '.github/workflows/deploy.yml',
};
const IS_OWN = /^app\/|\.bicepparam$/;
const ORIGINS = "readEnvironmentVariable('ALLOWED_ORIGINS', '')";
const WITH_PAGE_ORIGIN = `'\${${ORIGINS}},\${readEnvironmentVariable('PAGE_ORIGIN', '')}'`;
const HAS_PAGE = '\n// The page of the folder page, as a static web app.\nparam hasPage = true\n';
/** Lines from one marker to the next are for apps with a page. Without a page, they are left out with the markers. */
const PAGE_PART = /^ *# begin page\n[\s\S]*?^ *# end page\n/gm;
const MARKERS = /^ *# (?:begin|end) page\n/gm;

const MODEL_FILE = 'infra/model.json';
const BACKUP_ROLE =
  'The backup needs a role, which an owner of the subscription creates once: az deployment sub create --name rowkey-backup-role --location <region> -f infra/backup-role.bicep';

interface InfraOptions {
  readonly check?: true;
}

/** Creates the command that writes the template for Azure. */
export function createInfraCommand(): Command {
  return new Command()
    .description(
      'Writes the template for Azure, with the tables, queues and containers of the model, into infra. Parameters, azure.yaml and the workflow are yours: they are written once.',
    )
    .argument('[folder]', 'the folder of the app', '.')
    .option('--check', 'write nothing, and fail if the template is not that of the model and of this version')
    .showHelpAfterError()
    .action(async (folder: string, { check }: InfraOptions) => {
      const model = await loadModel(folder);
      const files = await templateOf(model, folder);
      const stale = await findStale(folder, files);
      if (check) {
        if (stale.length === 0) return console.log('infra is up to date.');
        throw new Error(`Not up to date: ${stale.join(', ')}. Run npx rowkey infra.`);
      }
      await writeFiles(folder, files, stale);
      for (const path of stale) console.log(`${path} written.`);
      if (model.backup && stale.includes(MODEL_FILE)) console.log(BACKUP_ROLE);
      if (stale.length === 0) console.log('infra is up to date.');
    });
}

interface TemplateFile {
  /** In the folder of the app. */
  readonly path: string;
  readonly text: string;
  /** True if the app may change it: then an existing file stays as it is. */
  readonly isOwn: boolean;
}

/** Writes the template for a model into the folder of an app. Files that are the app's own are not replaced. */
export async function writeInfra(folder: string, model: Model): Promise<void> {
  const files = await templateOf(model, folder);
  await writeFiles(folder, files, await findStale(folder, files));
}

async function writeFiles(folder: string, files: readonly TemplateFile[], paths: readonly string[]): Promise<void> {
  for (const { path, text } of files) {
    if (!paths.includes(path)) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** Returns the files that are missing, or that are those of another model or version. */
async function findStale(folder: string, files: readonly TemplateFile[]): Promise<string[]> {
  const stale = await Promise.all(
    files.map(async ({ path, text, isOwn }) => {
      const present = await readFile(join(folder, path), 'utf8').catch(() => undefined);
      return present === undefined || (!isOwn && present !== text) ? [path] : [];
    }),
  );
  return stale.flat();
}

/** An app has a page if its folder `page` has an `index.html`, which a bundler builds into `page/dist`. */
async function templateOf(model: Model, folder: string): Promise<TemplateFile[]> {
  const hasPage = existsSync(join(folder, 'page', 'index.html'));
  const { name = 'rowkey' } = Manifest.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
  const entries = await readdir(TEMPLATE, { recursive: true, withFileTypes: true });
  const sources = entries
    .filter((entry) => entry.isFile() && entry.name !== 'model.json')
    .map(({ parentPath, name: file }) =>
      join(parentPath, file)
        .slice(TEMPLATE.length + 1)
        .replaceAll('\\', '/'),
    )
    .toSorted();
  const files = await Promise.all(
    sources.map(async (source) => {
      const isOwn = IS_OWN.test(source);
      const text = toAppText(await readFile(join(TEMPLATE, source), 'utf8'), { name, hasPage });
      const isParameters = source.endsWith('.bicepparam');
      return {
        path: OWN_PLACES[source] ?? `infra/${source}`,
        text: isParameters && hasPage ? `${text.replace(ORIGINS, () => WITH_PAGE_ORIGIN)}${HAS_PAGE}` : text,
        isOwn,
      };
    }),
  );
  return [...files, { path: MODEL_FILE, text: formatInfraModel(model), isOwn: false }];
}

const Manifest = z.object({ name: z.string().optional() });

/** Returns a file of the template as an app has it: the template names commands and pages of the repository. */
export function toAppText(
  text: string,
  { name, hasPage }: { readonly name: string; readonly hasPage: boolean },
): string {
  return text
    .replaceAll(hasPage ? MARKERS : PAGE_PART, '')
    .replaceAll(/(?<!node_modules\/rowkey\/)\bdocs\/(?=[\w/-]+\.md)/g, 'node_modules/rowkey/docs/')
    .replaceAll('npm run infra', 'npx rowkey infra')
    .replace(/^name: my-app$/m, `name: ${name.replace(/^@[^/]+\//, '')}`);
}
