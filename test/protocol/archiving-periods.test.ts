import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createGunzip, gunzipSync, gzipSync } from 'node:zlib';
import pMap from 'p-map';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, RowkeyError, type Values } from '../../lib/index.ts';
import { costOf } from '../cost-of.ts';
import { tryFaults } from '../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { baseValues } from '../kit/base.ts';
import { type Engine, engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { storageBlobs, storageRows, storageTables } from '../kit/storage.ts';
import { samplePoints } from '../points.ts';
import { countTried } from '../tried-faults.ts';
import { openWorld, QUICK } from '../world.ts';

/** Periods whose rows are archived in blobs before their table is dropped. */

const { visits } = deploy(
  defineEntity('visits', {
    schema: z.object({
      door: z.string(),
      at: z.iso.datetime(),
      badge: z.string().optional(),
      note: z.string().optional(),
      day: z.string().optional(),
    }),
    table: 'visits',
    key: { partition: '{door}', row: '{at}' },
    period: { per: 'day', field: 'at', keep: 3, archiveTo: 'blob' },
    large: ['note'],
    encrypted: ['badge'],
    derived: { day: ({ at }) => String(at).slice(0, 10) },
    access: { read: ['hr'], write: ['hr'], restricted: { badge: ['hr'] } },
  }),
);

const world = await openWorld(import.meta.url, [visits]);
afterEach(async () => {
  for (const table of await storageTables.listTables(world.storage, 'visits'))
    await storageTables.dropTable(world.storage, table);
  const container = world.storage.container(storageBlobs.PERIOD_ARCHIVES_CONTAINER);
  for await (const { name } of container.listBlobsFlat()) await container.deleteBlob(name);
});

const NOON = Date.parse('2026-11-20T12:00:00Z');
/** The first day past retention, its table and an instant at which it is archived. */
const DAY = '2026-11-20';
const TABLE = 'visits20261120';
const PAST = NOON + 4 * baseValues.DAY_MS;
const at = (engine: Engine, now: number): Engine => ({ ...engine, now: () => now });
const roll = (engine = world.engine, until?: number) =>
  featureUpkeep.rollPeriods(at(engine, PAST), visits, until === undefined ? {} : { until });
const visit = (minute: number, over: Values = {}) => ({
  door: `door${minute % 3}`,
  at: new Date(NOON + minute * baseValues.MINUTE_MS).toISOString(),
  ...over,
});
const write = (count: number, from = 0) =>
  pMap(
    Array.from({ length: count }, (_, index) => visit(from + index)),
    (values) => engineWrite.createEntity(at(world.engine, NOON), visits, values),
    { concurrency: 8 },
  );
/** The lines of all archives of the day whose state is given, each archive decompressed as one file. */
async function readArchives(state = 'verified'): Promise<Values[]> {
  const archives = (await featureUpkeep.listPeriodArchives(world.storage, 'visits')).filter(
    (archive) => archive.state === state,
  );
  const files = await Promise.all(
    archives.map(async (archive) => {
      const bytes = await storageBlobs.streamBlob(world.storage, archive);
      return text(Readable.from(bytes ?? []).pipe(createGunzip()));
    }),
  );
  return files.flatMap((file) =>
    file
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line)),
  );
}
const instantsOf = (lines: readonly Values[]) => [...new Set(lines.map((line) => String(line.at)))].sort();
const instants = (count: number) => Array.from({ length: count }, (_, minute) => visit(minute).at);

describe('a period past retention', () => {
  test('is archived in a blob of the cool tier, verified, and dropped', async () => {
    await write(25);
    expect(await roll()).toMatchObject({ dropped: [TABLE], archiving: [] });
    expect(await storageTables.listTables(world.storage, TABLE)).toEqual([]);
    const archives = await featureUpkeep.listPeriodArchives(world.storage, 'visits');
    expect(archives).toMatchObject([
      { name: `visits/${DAY}/1.ndjson.gz`, state: 'verified', rows: 25, entity: 'visits', period: DAY, part: 1 },
    ]);
    const blob = world.storage
      .container(storageBlobs.PERIOD_ARCHIVES_CONTAINER)
      .getBlobClient(`visits/${DAY}/1.ndjson.gz`);
    expect(await blob.getProperties()).toMatchObject({ accessTier: 'Cool', contentType: 'application/gzip' });
    const lines = await readArchives();
    expect(lines).toHaveLength(25);
    expect(instantsOf(lines)).toEqual(instants(25));
  });

  test('has the stored properties of a row with a value of another type, and does not stop at it', async () => {
    await write(3);
    const [row] = await Array.fromAsync(world.storage.table(TABLE).listEntities());
    const { partitionKey = '', rowKey = '' } = row ?? {};
    await world.storage.table(TABLE).updateEntity({ partitionKey, rowKey, day: 5, Blob_note: 7 }, 'Merge');
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    const lines = await readArchives();
    expect(lines).toHaveLength(3);
    const stored = { PartitionKey: partitionKey, RowKey: rowKey, day: 5, Blob_note: 7 };
    expect(lines).toContainEqual({ row: expect.objectContaining(stored) });
  });

  test('has a line for each row, as an import accepts it: long texts complete, secrets as they are stored', async () => {
    const writer = at(world.engine, NOON);
    const note = 'é\u{1f600}\n'.repeat(150_000);
    await engineWrite.createEntity(writer, visits, visit(0, { badge: 'top secret', note }));
    await engineWrite.createEntity(writer, visits, visit(1, { note: 'short' }));
    const properties = { EntityType: 'former', WriteId: 'w', Count: 2n, Bytes: new Uint8Array([1, 2]) };
    await storageRows.submit(world.storage, {
      table: TABLE,
      partition: 'other',
      actions: [{ kind: 'insert', row: 'x', properties }],
    });
    await roll();
    const [first, second, third] = await readArchives();
    expect(first?.note === note).toBe(true);
    expect(first).toEqual({ ...visit(0), note, badge: { sealed: expect.not.stringContaining('secret') } });
    expect(second).toEqual({ ...visit(1), note: 'short' });
    expect(third).toEqual({
      row: { PartitionKey: 'other', RowKey: 'x', EntityType: 'former', WriteId: 'w', Count: '2', Bytes: 'AQI=' },
    });
  });

  test('takes eleven transactions if it has few rows, and no archive if it has none', async () => {
    await write(3);
    await roll(world.engine);
    await write(3);
    // Two tables to create, two listings; the search for rows of other programs; a page, a block, a commit; the blob is read, marked and the
    // table dropped.
    expect(await costOf(() => roll())).toBe(11);
    await storageTables.createTable(world.storage, TABLE);
    // An empty table needs no archive.
    expect(await costOf(() => roll())).toBe(7);
    expect(await featureUpkeep.listPeriodArchives(world.storage, 'visits')).toHaveLength(2);
  });

  test('gets the part after its last one, whatever parts another period has', async () => {
    const container = storageBlobs.PERIOD_ARCHIVES_CONTAINER;
    const lastrow = Buffer.from(JSON.stringify(['a', 'b', 'c'])).toString('base64url');
    const metadata = { state: 'verified', rows: '1', hash: 'x', lastrow };
    const earlier = Array.from({ length: 10 }, (_, index) => `visits/${DAY}/${index + 1}.ndjson.gz`);
    for (const name of [...earlier, 'visits/2026-11-21/12.ndjson.gz', 'visits/2026-11-19/13.ndjson.gz'])
      await storageBlobs.writeBlob(world.storage, { container, name }, Buffer.from('x'), {
        type: 'application/gzip',
        metadata,
      });
    await write(1);
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    const archives = await featureUpkeep.listPeriodArchives(world.storage, 'visits');
    const parts = archives.filter(({ period }) => period === DAY).map(({ part }) => part);
    expect(parts.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 11 }, (_, index) => index + 1));
    expect(archives.find(({ period, part }) => period === DAY && part === 11)).toMatchObject({ rows: 1 });
  });

  test('is not archived before writers with a late clock have finished', async () => {
    await write(2);
    const midnight = Date.parse('2026-11-24T00:00:00Z');
    expect(
      (await featureUpkeep.rollPeriods(at(world.engine, midnight + baseValues.MINUTE_MS), visits)).dropped,
    ).toEqual([]);
    expect(
      (await featureUpkeep.rollPeriods(at(world.engine, midnight + 2 * baseValues.MINUTE_MS), visits)).dropped,
    ).toEqual([TABLE]);
  });

  test('rejects changes, so that its archive is not stale', async () => {
    await write(1);
    const late = at(world.engine, PAST);
    const refusal = { code: 'invalid-input', field: 'at' };
    await expect(engineWrite.createEntity(late, visits, visit(5))).rejects.toMatchObject(refusal);
    await expect(engineWrite.patchEntity(late, visits, visit(0), { note: 'late' })).rejects.toMatchObject(refusal);
    await expect(engineWrite.deleteEntity(late, visits, visit(0))).rejects.toMatchObject(refusal);
    await expect(engineWrite.deleteEntity(late, visits, visit(5))).rejects.toMatchObject({ code: 'not-found' });
  });
});

describe('an archive', () => {
  /** Each row takes a block of its own: a text of a block's length. */
  const writeLong = async (count: number) => {
    const note = 'x'.repeat(4_194_304);
    for (let minute = 0; minute < count; minute += 1)
      await engineWrite.createEntity(at(world.engine, NOON), visits, visit(minute, { door: 'a', note }));
  };
  /** Ends a run after `count` blocks. */
  const rollUntil = (count: number, engine = world.engine) => {
    let now = PAST;
    let times = 0;
    // The clock is read once to begin and once before each block.
    const clock = () => (times++ > count ? now + 10 * baseValues.MINUTE_MS : now++);
    return featureUpkeep.rollPeriods({ ...engine, now: clock }, visits, { until: PAST + baseValues.MINUTE_MS });
  };

  test('is continued by later runs, and its table is dropped by the last one', { tags: ['slow'] }, async () => {
    await writeLong(5);
    for (const rows of [2, 4]) {
      expect(await rollUntil(2)).toMatchObject({ dropped: [], archiving: [TABLE] });
      expect(await featureUpkeep.listPeriodArchives(world.storage)).toMatchObject([{ state: 'partial', rows }]);
      expect(await storageTables.listTables(world.storage, TABLE)).toEqual([TABLE]);
      // As after a move to another account.
      const table = world.storage.table(TABLE);
      for await (const { partitionKey = '', rowKey = '' } of table.listEntities())
        await table.updateEntity({ partitionKey, rowKey }, 'Merge');
    }
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    const lines = await readArchives();
    expect(lines.map((line) => line.at)).toEqual(instants(5));
    expect(await featureUpkeep.listPeriodArchives(world.storage)).toMatchObject([{ part: 1, rows: 5 }]);
  });

  test('is begun again if the table was created again meanwhile, or if its period is kept again', {
    tags: ['slow'],
  }, async () => {
    await writeLong(3);
    await rollUntil(2);
    await storageTables.dropTable(world.storage, TABLE);
    await write(3);
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    expect(await featureUpkeep.listPeriodArchives(world.storage)).toMatchObject([
      { part: 1, state: 'partial', rows: 2 },
      { part: 2, state: 'verified', rows: 3 },
    ]);
    await featureUpkeep.rollPeriods(at(world.engine, NOON), visits);
    expect(await featureUpkeep.listPeriodArchives(world.storage)).toMatchObject([{ part: 2 }]);
  });

  test('is not used again if its table was not dropped, because rows may have been added while the period was kept again', async () => {
    const counting = faultyHttpClient();
    await write(3, 1);
    await roll(world.engineThrough(counting));
    await write(3, 1);
    // The last call drops the table.
    const dying = world.engineThrough(faultyHttpClient('crash before', counting.calls));
    await expect(roll(dying)).rejects.toThrow();
    await write(1);
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    expect(instantsOf(await readArchives())).toEqual(instants(4));
  });

  test('keeps rows that were written after its table was dropped, in another part', async () => {
    await write(3);
    await roll();
    await write(2, 3);
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    expect(instantsOf(await readArchives())).toEqual(instants(5));
  });

  test.each([
    ['other rows', async (bytes: Buffer) => Buffer.concat([bytes, bytes])],
    ['bytes that cannot be decompressed', async (bytes: Buffer) => bytes.fill(0, 100)],
    [
      'as many rows with one other value',
      async (bytes: Buffer) => gzipSync(String(gunzipSync(bytes)).replace('door1', 'door2')),
    ],
    ['missing bytes', async (bytes: Buffer) => bytes.subarray(0, bytes.length - 9)],
  ])('that has %s keeps its table from being dropped, and is written again', async (_, spoil) => {
    await write(20);
    const blob = world.storage
      .container(storageBlobs.PERIOD_ARCHIVES_CONTAINER)
      .getBlockBlobClient(`visits/${DAY}/1.ndjson.gz`);
    const client = faultyHttpClient();
    const counting = world.engineThrough(client);
    await roll(counting);
    await world.storage.container(storageBlobs.PERIOD_ARCHIVES_CONTAINER).deleteBlob(`visits/${DAY}/1.ndjson.gz`);
    await write(20);
    const spoilAfterCommit = async () => {
      const bytes = await blob.downloadToBuffer();
      const { metadata = {} } = await blob.getProperties();
      const spoilt = await spoil(bytes);
      await blob.upload(spoilt, spoilt.length, { metadata });
    };
    // The fourth last call is the one that reads the blob back, before the mark and the drop.
    const through = world.engineThrough(interruptedHttpClient(client.calls - 2, spoilAfterCommit));
    await expect(roll(through)).rejects.toThrow(/differs from its table/);
    expect(await storageTables.listTables(world.storage, TABLE)).toEqual([TABLE]);
    expect(await featureUpkeep.listPeriodArchives(world.storage)).toMatchObject([{ state: 'complete' }]);
    await expect(roll()).rejects.toThrow(/differs from its table/);
    expect(await storageTables.listTables(world.storage, TABLE)).toEqual([TABLE]);
    expect(await roll()).toMatchObject({ dropped: [TABLE] });
    expect(instantsOf(await readArchives())).toEqual(instants(20));
  });

  test('has every row after any fault at any call, and no table is dropped without it', {
    tags: ['slow'],
  }, async () => {
    await tryFaults(
      async ({ fault, client }) => {
        await afterEachRound();
        await write(7);
        await roll(world.engineThrough(client, fault && QUICK)).catch(() => undefined);
        if ((await storageTables.listTables(world.storage, TABLE)).length === 0)
          expect(instantsOf(await readArchives())).toEqual(instants(7));
        await roll();
        await roll();
        expect(await storageTables.listTables(world.storage, TABLE)).toEqual([]);
        expect(instantsOf(await readArchives())).toEqual(instants(7));
      },
      { what: 'Archive of a period, each storage call: every fault' },
    );
  });

  test('is written once by concurrent runs, whichever is faster', { tags: ['slow'] }, async () => {
    const rounds = 5;
    for (let round = 0; round < rounds; round += 1) {
      await afterEachRound();
      await write(7);
      const runs = await Promise.allSettled([roll(), roll(), roll()]);
      for (const run of runs) if (run.status === 'rejected') expect(run.reason).toBeInstanceOf(RowkeyError);
      await roll();
      expect(instantsOf(await readArchives())).toEqual(instants(7));
    }
  });

  test('is completed by a run that is overtaken by another at any call', async () => {
    await write(7);
    const counting = faultyHttpClient();
    await roll(world.engineThrough(counting));
    for (const point of samplePoints(counting.calls))
      await countTried({ what: 'Archive of a period overtaken by another run' }, async () => {
        await afterEachRound();
        await write(7);
        await roll(world.engineThrough(interruptedHttpClient(point, () => roll()))).catch((error: unknown) =>
          expect(error).toBeInstanceOf(RowkeyError),
        );
        await roll();
        expect(await storageTables.listTables(world.storage, TABLE)).toEqual([]);
        expect(instantsOf(await readArchives())).toEqual(instants(7));
      });
  });

  const afterEachRound = async () => {
    await storageTables.dropTable(world.storage, TABLE);
    const container = world.storage.container(storageBlobs.PERIOD_ARCHIVES_CONTAINER);
    for await (const { name } of container.listBlobsFlat()) await container.deleteBlob(name);
  };
});
