import { z } from 'zod';
import { admitGrant } from '../../access/grant-limits.ts';
import { requireWholeReader } from '../../access/rule.ts';
import { validityAt } from '../../access/validity.ts';
import { RowkeyError } from '../../base/errors.ts';
import { isoInstant } from '../../base/time.ts';
import { parse } from '../../define/codec/validation.ts';
import { tableOfPeriod } from '../../define/keys/calendar.ts';
import { noteChange } from '../../engine/note-change.ts';
import { listPeriodArchives, type PeriodArchive, State } from '../../pattern-helpers/period-archive.ts';
import { READ_PERMISSIONS, signBlobUrl } from '../../storage/blob-sas.ts';
import { countGrant } from '../../telemetry/metrics.ts';
import type { OperatorRoute, RequestContext, RouteResult } from '../route.ts';

const PATH = 'operations/period-archives';

const Archive = z.object({
  name: z.string(),
  entity: z.string(),
  period: z.string().describe('A day, a month or a year, in UTC'),
  rows: z.int(),
  bytes: z.int().describe('Compressed'),
  state: State.describe('Only a verified archive has all rows of its table'),
  hash: z.string().describe('SHA-256 of the hash of the lines before the last line, followed by the last line'),
  changedAt: z.iso.datetime(),
});
const Named = z.strictObject({ name: z.string().min(1).max(200) });
const Link = z.object({ url: z.url(), expiresAt: z.iso.datetime() });

/** High volume delete pattern: the archives of dropped tables. */
export const periodArchiveRoutes: readonly OperatorRoute[] = [
  {
    name: 'operations-period-archives-list',
    method: 'GET',
    path: PATH,
    summary: 'List the archives of periods past retention',
    success: { status: 200, description: 'The archives by name', body: () => z.object({ items: z.array(Archive) }) },
    handle: async ({ app }) => {
      const archives = await listPeriodArchives(app.engine.storage);
      return { status: 200, body: { items: archives.map(presentArchive) } };
    },
  },
  {
    name: 'operations-period-archives-grant',
    method: 'POST',
    path: `${PATH}/grants`,
    summary: 'Get a link to download an archive from storage; requires a role that may read the whole entity',
    requestBody: () => Named,
    success: { status: 201, description: 'The link', body: () => Link },
    handle: grantArchive,
  },
];

async function grantArchive({ app, caller, json }: RequestContext): Promise<RouteResult> {
  const { engine } = app;
  const { name } = parse(Named, await json());
  const [entityName = ''] = name.split('/');
  const entity = app.entities.find((each) => each.name === entityName);
  const archives = entity ? await listPeriodArchives(engine.storage, entity.name) : [];
  const archive = archives.find((each) => each.name === name);
  if (!entity || !archive)
    throw new RowkeyError('not-found', 'Archive not found.', {
      field: 'name',
      accepted: `a name that GET ${PATH} returns`,
    });
  requireWholeReader(entity, caller);
  const times = validityAt(await admitGrant(engine, caller.subject));
  const url = await signBlobUrl(engine.storage, archive, { permissions: READ_PERMISSIONS, ...times });
  const address = { table: tableOfPeriod(entity.table, archive.period), partition: '' };
  const until = times.expiresAt.toISOString();
  noteChange(engine, { operation: 'grant', entity: entity.name, address, permissions: READ_PERMISSIONS, until });
  countGrant({ entity: entity.name });
  return { status: 201, headers: { 'cache-control': 'no-store' }, body: { url, expiresAt: times.expiresAt } };
}

function presentArchive({ name, entity, period, rows, length, state, hash, modifiedAt }: PeriodArchive) {
  return { name, entity, period, rows, bytes: length, state, hash, changedAt: isoInstant(modifiedAt) };
}
