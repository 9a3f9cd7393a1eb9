import { glob, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Returns the names of the example packs: the folders of examples whose README says so. Other folders are the adopter's. */
export async function listPacks(root: string): Promise<string[]> {
  const examples = join(root, 'examples');
  const entries = await readdir(examples, { withFileTypes: true }).catch(() => []);
  const folders = entries.filter((entry) => entry.isDirectory());
  const packs: string[] = [];
  for (const { name } of folders) {
    const readme = await readFile(join(examples, name, 'README.md'), 'utf8').catch(() => '');
    if (readme.startsWith('# Example pack:')) packs.push(name);
  }
  return packs;
}

/** Throws, and names the command, in a repository without the example pack whose entities it needs. */
export async function requirePack(pack: string, command: string): Promise<void> {
  const packs = await listPacks(fileURLToPath(new URL('../..', import.meta.url)));
  if (!packs.includes(pack))
    throw new Error(`${command} needs the example pack ${pack}, which this repository does not have.`);
}

/** Deletes each pack's folder and its line in the model, and adds a note to the pages whose examples use the packs. */
export async function removePacks(root: string, packs: readonly string[]): Promise<void> {
  const list = join(root, 'model', 'entities.ts');
  const lines = (await readFile(list, 'utf8')).split('\n');
  await writeFile(
    list,
    lines.filter((line) => !packs.some((pack) => line.includes(`'../examples/${pack}/`))).join('\n'),
  );
  for (const pack of packs) await rm(join(root, 'examples', pack), { recursive: true });
  for await (const page of glob(['README.md', 'docs/**/*.md'], { cwd: root })) {
    const text = await readFile(join(root, page), 'utf8');
    await writeFile(join(root, page), addNote(text, packs));
  }
}

function addNote(page: string, packs: readonly string[]): string {
  if (!/\b(employees|customers|movies|example packs?)\b/.test(page)) return page;
  const note = `> Examples on this page use entities of Rowkey's example packs (${packs.join(', ')}), which this repository does not have.`;
  return page.replace(/^# .*\n/, (title) => `${title}\n${note}\n`);
}
