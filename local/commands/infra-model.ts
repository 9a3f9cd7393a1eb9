import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { model } from '../../lib/model/model.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';

export const MODEL_FILE = new URL('../../infra/model.json', import.meta.url);

/** Returns the text of infra/model.json. The tables of periods are omitted: the app creates and deletes them. */
export function formatInfraModel(): string {
  const { tables, queues, containers } = resourcesOf(model.list);
  return `${JSON.stringify({ tables: sortUnique(tables), queues: sortUnique(queues), containers: sortUnique(containers) }, null, 2)}\n`;
}

function sortUnique(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const before = await readFile(MODEL_FILE, 'utf8').catch(() => '');
  const after = formatInfraModel();
  await writeFile(MODEL_FILE, after);
  console.log(before === after ? 'infra/model.json is up to date.' : 'infra/model.json updated.');
}
