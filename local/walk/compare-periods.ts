import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { omit, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { addPeriods, periodOf, periodOfTable } from '../../lib/define/keys/calendar.ts';
import { rollPeriods } from '../../lib/features/high-volume-delete/high-volume-delete.ts';
import { listPeriodArchives } from '../../lib/features/high-volume-delete/period-archive.ts';
import { streamBlob } from '../../lib/storage/blobs.ts';
import { listTables } from '../../lib/storage/provision.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import type { WalkWorld } from './walk-world.ts';

/** The tables that an entity has: of its periods, or its own. */
export async function tablesOf(storage: Storage, { table, period }: Entity): Promise<readonly string[]> {
  if (!period) return [table];
  const tables = await listTables(storage, table);
  return tables.filter((name) => periodOfTable(period.per, table, name) !== undefined);
}

/** Lets the time pass until no period is kept, and compares the archives with the entities. Drops the tables of the entity. */
export async function compareArchives(
  { engine }: WalkWorld,
  entity: Entity,
  current: readonly Values[],
): Promise<string[]> {
  const { period, name, encrypted } = entity;
  if (!period?.archiveTo) return [];
  const { storage } = engine;
  // The archives of earlier rounds stay.
  const earlier = new Set((await listPeriodArchives(storage, name)).map((archive) => archive.name));
  const later = Date.parse(addPeriods(period.per, periodOf(period.per, engine.now()), period.keep + 3));
  const { archiving } = await rollPeriods({ ...engine, now: () => later }, entity);
  const archives = (await listPeriodArchives(storage, name)).filter((archive) => !earlier.has(archive.name));
  const lines: string[] = [];
  for (const archive of archives) {
    const bytes = await streamBlob(storage, archive);
    const content = bytes ? await text(Readable.from(bytes).pipe(createGunzip())) : '';
    lines.push(...content.split('\n').filter((line) => line !== ''));
  }
  // Encrypted fields are archived as they are stored.
  const shown = (values: Values) =>
    JSON.stringify(Object.entries(omit(values, [...entity.decidedFields, ...encrypted])).sort());
  const found = lines.map((line) => shown(JSON.parse(line)));
  const wanted = current.map(shown);
  return [
    ...archiving.map((table) => `${name}: the archive of ${table} is not finished`),
    ...wanted.filter((one) => !found.includes(one)).map((one) => `${name}: no archive has ${one}`),
    ...found.filter((one) => !wanted.includes(one)).map((one) => `${name}: an archive has ${one}, which is not stored`),
    ...(found.length === wanted.length ? [] : [`${name}: the archives have ${found.length} of ${wanted.length}`]),
  ];
}
