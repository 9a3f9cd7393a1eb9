import type { LinkedModel } from '../../lib/define/define-model.ts';
import { ARRIVALS_CONTAINER } from '../../lib/features/large-entities/attachment.ts';
import { rootOf } from '../../lib/http/route.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { AUDIT_CONTAINER, PERIOD_ARCHIVES_CONTAINER } from '../../lib/storage/blob-owner.ts';
import { prefixTable, prefixWithHyphen } from '../../lib/storage/resource-names.ts';
import { BACKUP_CONTAINER } from '../../lib/storage/row-journal.ts';

/** Returns the text of infra/model.json for a model. The tables of periods are omitted: the app creates and deletes them. */
export function formatInfraModel({
  list,
  prefix,
  queueParts,
  backup,
}: Pick<LinkedModel, 'list' | 'prefix' | 'queueParts' | 'backup'>): string {
  const { tables, queues, containers } = resourcesOf(list, undefined, { queueParts, backup });
  const hyphenated = (name: string) => prefixWithHyphen(prefix, name);
  const infra = {
    tables: sortUnique(tables.map((name) => prefixTable(prefix, name))),
    queues: sortUnique(queues.map(hyphenated)),
    containers: sortUnique(containers.map(hyphenated)),
    auditContainer: hyphenated(AUDIT_CONTAINER),
    uploadsContainer: hyphenated(ARRIVALS_CONTAINER),
    archivesContainer: hyphenated(PERIOD_ARCHIVES_CONTAINER),
    coolContainers: coolContainers(list).map(({ name, days }) => ({ name: hyphenated(name), days })),
    publicPaths: list.filter(hasPublicFiles).map(({ name }) => `${rootOf('')}/${name}/*`),
    functionPrefix: hyphenated(''),
    backupContainer: hyphenated(BACKUP_CONTAINER),
    backupDays: backup?.days ?? 0,
  };
  return `${JSON.stringify(infra, null, 2)}\n`;
}

function hasPublicFiles({ attachments }: LinkedModel['list'][number]): boolean {
  return Object.values(attachments).some((declared) => declared.public);
}

/** The containers whose blobs a lifecycle rule moves to the cool tier, with the days after which it does. */
function coolContainers(list: LinkedModel['list']): { name: string; days: number }[] {
  const attachments = list.flatMap((entity) => Object.values(entity.attachments));
  const days = new Map(attachments.map(({ container, coolAfterDays }) => [container, coolAfterDays] as const));
  return [...days]
    .flatMap(([name, after]) => (after === undefined ? [] : [{ name, days: after }]))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function sortUnique(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}
