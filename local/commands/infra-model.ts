import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import type { Model } from '../../lib/define/define-model.ts';
import { model } from '../../lib/model/model.ts';
import { AUDIT_CONTAINER } from '../../lib/operations/audit-log.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { ARRIVALS_CONTAINER } from '../../lib/pattern-helpers/attachment.ts';
import { prefixTable, prefixWithHyphen } from '../../lib/storage/resource-names.ts';

export const MODEL_FILE = new URL('../../infra/model.json', import.meta.url);

/** Returns the text of infra/model.json. The tables of periods are omitted: the app creates and deletes them. */
export function formatInfraModel({ list, prefix }: Omit<Model, 'entities'> = model): string {
  const { tables, queues, containers } = resourcesOf(list);
  const hyphenated = (name: string) => prefixWithHyphen(prefix, name);
  const infra = {
    tables: sortUnique(tables.map((name) => prefixTable(prefix, name))),
    queues: sortUnique(queues.map(hyphenated)),
    containers: sortUnique(containers.map(hyphenated)),
    auditContainer: hyphenated(AUDIT_CONTAINER),
    uploadsContainer: hyphenated(ARRIVALS_CONTAINER),
    functionPrefix: hyphenated(''),
  };
  return `${JSON.stringify(infra, null, 2)}\n`;
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
