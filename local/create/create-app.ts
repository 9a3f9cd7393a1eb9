import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The folders of the template, one for each choice, and how the initializer names them. */
export const PAGES = {
  plain: 'TypeScript without a framework',
  tanstack: 'React with TanStack Query',
  none: 'no page: the API alone',
} as const;
export type Page = keyof typeof PAGES;

/** The name of the app in the template. */
const TEMPLATE_NAME = 'rowkey-app';
/** npm leaves files of the name .gitignore out of a package. */
const PACKED_NAMES: Readonly<Record<string, string>> = { _gitignore: '.gitignore' };

/** Names of npm packages and of resources in Azure accept at least these. */
const NAME = /^[a-z][a-z0-9-]{0,38}[a-z0-9]$/;
const ACCEPTED_NAME =
  '2 to 40 lower-case letters, digits and hyphens, which begin with a letter and do not end with a hyphen';

interface AppOptions {
  /** The folder of the templates. */
  readonly template: string;
  /** The folder in which the app gets one of its own. */
  readonly parent: string;
  readonly name: string;
  readonly page: Page;
}

/** Says why an app cannot have this name. Returns undefined if it can. */
export function checkName(name: string): string | undefined {
  return NAME.test(name) ? undefined : `The name "${name}" must be ${ACCEPTED_NAME}.`;
}

/**
 * Writes an app into a folder of its name, which must not exist or be empty, and returns the paths of its files. Throws before
 * anything is written.
 */
export async function createApp({ template, parent, name, page }: AppOptions): Promise<readonly string[]> {
  const reason = checkName(name);
  if (reason !== undefined) throw new Error(reason);
  const from = join(template, page);
  const files = (await readdir(from, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(from.length + 1))
    .toSorted();
  const { dependencies, devDependencies } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8'));
  if (Object.hasOwn({ ...dependencies, ...devDependencies }, name))
    throw new Error(`The name "${name}" is that of a package which the app installs: choose another name.`);
  const folder = join(parent, name);
  await requireEmpty(folder);
  const written: string[] = [];
  for (const file of files) {
    const path = PACKED_NAMES[file] ?? file;
    const text = await readFile(join(from, file), 'utf8');
    await mkdir(dirname(join(folder, path)), { recursive: true });
    // Never replaces a file, even one that has appeared meanwhile.
    await writeFile(join(folder, path), text.replaceAll(TEMPLATE_NAME, name), { flag: 'wx' });
    written.push(path);
  }
  return written;
}

async function requireEmpty(folder: string): Promise<void> {
  const found = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    if (error.code === 'ENOTDIR') throw new Error(`${folder} is a file: choose another name.`);
    throw error;
  });
  if (found.length > 0) throw new Error(`The folder ${folder} is not empty: choose another name. Nothing was written.`);
}
