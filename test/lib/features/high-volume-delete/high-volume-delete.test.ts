import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { rollPeriods } from '../../../../lib/features/high-volume-delete/high-volume-delete.ts';
import { defineEntity, type Values } from '../../../../lib/index.ts';
import { allItems, allPages } from '../../../all-pages.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { logins } from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import type { CalendarUnit, Entity } from '../../../kit/define.ts';
import { type Engine, engineCore, engineRead, engineWrite, type Position } from '../../../kit/engine.ts';
import { storageAccounts, storageBlobs, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
const NOON = Date.parse('2026-11-20T12:00:00Z');

beforeAll(() =>
  storageTables.provision(storage, { tables: [], queues: [], containers: [storageBlobs.PERIOD_ARCHIVES_CONTAINER] }),
);

let now = NOON;
const engine: Engine = engineCore.createEngine(storage, { now: () => now });
beforeEach(async () => {
  now = NOON;
  for (const table of await storageTables.listTables(storage, 'l')) await storageTables.dropTable(storage, table);
});

const day = (offset: number) => new Date(NOON + offset * baseValues.DAY_MS).toISOString().slice(0, 10);
const table = (offset: number) => `logins${day(offset).replaceAll('-', '')}`;

describe('the daily timer', () => {
  test('creates the tables of today and tomorrow, and drops only the days past retention', async () => {
    const kept = [table(0), table(-1), table(-59), table(-60)];
    // Not days of this entity: too short, too long, an invalid date, a month, a year, another name.
    const others = [
      'logins',
      'logins2020',
      'logins202001',
      'logins2026112',
      'logins202611201',
      'logins20261399',
      'logins20260230',
      'loginsarchive20200101',
      'loginss20200101',
      'login20200101',
    ];
    for (const name of [...kept, ...others, table(-61), table(-62), table(-400)])
      await storageTables.createTable(storage, name);
    expect(await rollPeriods(engine, logins)).toMatchObject({
      created: [table(0), table(1)],
      dropped: [table(-400), table(-62), table(-61)].sort(),
    });
    expect(await storageTables.listTables(storage, 'login')).toEqual(
      [...new Set([...kept, ...others, table(1)])].sort(),
    );
  });

  test('has the same result when it runs twice, concurrently, or ninety days late', async () => {
    await Promise.all([rollPeriods(engine, logins), rollPeriods(engine, logins)]);
    expect((await rollPeriods(engine, logins)).dropped).toEqual([]);
    expect(await storageTables.listTables(storage, 'logins')).toEqual([table(0), table(1)]);
    now = NOON + 90 * baseValues.DAY_MS;
    await rollPeriods(engine, logins);
    expect(await storageTables.listTables(storage, 'logins')).toEqual([table(90), table(91)]);
  });
});

describe('rows of many days', () => {
  const employeeId = '000001';
  const write = (offset: number, minute: number) =>
    engineWrite.createEntity(engine, logins, {
      employeeId,
      succeeded: true,
      at: new Date(NOON + offset * baseValues.DAY_MS + minute * 60_000).toISOString(),
    });
  const instants = ({ items }: { items: readonly object[] }) =>
    items.map((item) => ('at' in item ? String(item.at) : ''));

  beforeAll(() => rollPeriods(engine, logins));

  test('are written to the table of their day, which is created if the timer is late', async () => {
    await write(-3, 0);
    expect(await storageTables.listTables(storage, 'logins')).toEqual([table(-3)]);
    for (const offset of [-61, 2])
      await expect(write(offset, 0)).rejects.toMatchObject({ code: 'invalid-input', field: 'at' });
  });

  test('are read in order, page by page and once each, even if the tables of some days do not exist', {
    tags: ['slow'],
  }, async () => {
    const written: string[] = [];
    for (const offset of [-50, -20, -19, -1, 0])
      for (const minute of [0, 1, 2]) written.push(String((await write(offset, minute)).values.at));
    for (const top of [1, 2, 3, 4, 15, 100]) {
      const pages = await allPages((after: Position | undefined) =>
        engineRead.readEntities(engine, logins, { employeeId }, { top, after }),
      );
      for (const { items } of pages) expect(items.length).toBeLessThanOrEqual(top);
      expect(pages.flatMap(instants), `by ${top}`).toEqual(written);
    }
    const some = await engineRead.readEntities(
      engine,
      logins,
      { employeeId },
      { top: 100, from: day(-20), to: day(-1) },
    );
    expect(instants(some)).toEqual(written.slice(3, 12));
    expect(
      instants(await engineRead.readEntities(engine, logins, { employeeId }, { top: 100, from: day(1), to: day(-1) })),
    ).toEqual([]);
  });
});

const schema = z.object({ id: z.string(), at: z.iso.datetime(), note: z.string() });
const access = { read: ['hr'], write: ['hr'] } as const;
const entry = { id: 'a', note: 'b' };
const paid = (keep: number, per: CalendarUnit) =>
  deploy(
    defineEntity('payments', {
      schema,
      table: 'lpayments',
      key: { partition: '{id}', row: '{at}' },
      period: { per, field: 'at', keep },
      access,
    }),
  ).payments;

describe('monthly and yearly tables', () => {
  const roll = async (entity: Entity, at: string) => {
    now = Date.parse(at);
    await rollPeriods(engine, entity);
    return storageTables.listTables(storage, 'lpayments');
  };

  test('are created before their period begins and dropped after their retention', async () => {
    const monthly = paid(1, 'month');
    expect(await roll(monthly, '2024-01-31T23:59:59.999Z')).toEqual(['lpayments202401', 'lpayments202402']);
    expect(await roll(monthly, '2024-02-29T23:59:59.999Z')).toEqual([
      'lpayments202401',
      'lpayments202402',
      'lpayments202403',
    ]);
    expect(await roll(monthly, '2024-03-01T00:00:00.000Z')).toEqual([
      'lpayments202402',
      'lpayments202403',
      'lpayments202404',
    ]);
    expect(await roll(paid(1, 'year'), '2024-12-31T23:59:59.999Z')).toEqual(
      expect.arrayContaining(['lpayments2024', 'lpayments2025', 'lpayments202402']),
    );
  });

  test('accept instants of the kept periods and of the next one only', async () => {
    const monthly = paid(2, 'month');
    now = Date.parse('2026-01-31T12:00:00Z');
    for (const at of ['2025-11-01T00:00:00.000Z', '2026-01-31T12:00:00.000Z', '2026-02-28T23:59:59.999Z'])
      await engineWrite.createEntity(engine, monthly, { ...entry, at });
    for (const at of ['2025-10-31T23:59:59.999Z', '2026-03-01T00:00:00.000Z'])
      await expect(engineWrite.createEntity(engine, monthly, { ...entry, at })).rejects.toMatchObject({
        code: 'invalid-input',
        field: 'at',
        accepted: 'an instant from 2025-11-01T00:00:00.000Z to 2026-02-28T23:59:59.999Z',
      });
    expect(await storageTables.listTables(storage, 'lpayments')).toEqual([
      'lpayments202511',
      'lpayments202601',
      'lpayments202602',
    ]);
    const { items } = await engineRead.readEntities(
      engine,
      monthly,
      { id: 'a' },
      { top: 100, from: '2025-12', to: '2026-01' },
    );
    expect(items).toMatchObject([{ at: '2026-01-31T12:00:00.000Z' }]);
    expect((await engineRead.readEntities(engine, monthly, { id: 'a' }, { top: 100 })).items).toHaveLength(3);
    await expect(
      engineRead.readEntities(engine, monthly, { id: 'a' }, { top: 100, to: '2026-13' }),
    ).rejects.toMatchObject({
      field: 'to',
    });
  });
});

test('list rows that sort newest first from the newest period to the oldest', async () => {
  const { visits: newest } = deploy(
    defineEntity('visits', {
      schema,
      table: 'lvisits',
      key: { partition: '{id}', row: '{at~}' },
      period: { per: 'month', field: 'at', keep: 3 },
      access,
    }),
  );
  const written = ['2026-08-01', '2026-09-30', '2026-10-02', '2026-10-03', '2026-11-20'].map(
    (on) => `${on}T10:00:00.000Z`,
  );
  for (const at of written) await engineWrite.createEntity(engine, newest, { ...entry, at });
  for (const top of [1, 2, 100]) {
    const read = await allItems((after: Position | undefined) =>
      engineRead.readEntities(engine, newest, { id: 'a' }, { top, after }),
    );
    expect(
      read.map(({ at }) => at),
      `by ${top}`,
    ).toEqual(written.toReversed());
  }
  const options = { top: 100, from: '2026-09-30', to: '2026-10-02' };
  const some = await engineRead.readEntities(engine, newest, { id: 'a' }, options);
  expect(some.items.map(({ at }) => at)).toEqual([written[2], written[1]]);
});

test('are read alone if the partition key contains the period, and all if the bounds are of another field', async () => {
  const common = { schema, access, period: { per: 'day', field: 'at', keep: 3 } } as const;
  const { byday: byDay } = deploy(
    defineEntity('byday', { ...common, table: 'lbyday', key: { partition: '{at}', row: '{id}', appends: true } }),
  );
  const at = '2026-11-19T10:00:00.000Z';
  const inPartition = (key: Values) => engineRead.periodsToRead(byDay, { key, from: 'b', to: 'c', now });
  expect(inPartition({ at })).toEqual(['2026-11-19']);
  expect(inPartition({ at: '2026-10-19T10:00:00.000Z' })).toEqual([]);
  const { bynote: byNote } = deploy(
    defineEntity('bynote', {
      ...common,
      table: 'lbynote',
      key: { partition: '{id}', row: '{note}_{at}' },
    }),
  );
  for (const note of ['b', 'c', 'd']) await engineWrite.createEntity(engine, byNote, { id: 'a', note, at });
  const { items } = await engineRead.readEntities(engine, byNote, { id: 'a' }, { top: 100, from: 'b', to: 'c' });
  expect(items.map(({ note }) => note)).toEqual(['b', 'c']);
});
