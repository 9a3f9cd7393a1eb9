import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createEngine, type Engine } from '../../../lib/engine/engine.ts';
import { readEntities } from '../../../lib/engine/read/retrieve.ts';
import { createEntity } from '../../../lib/engine/write/entity-store.ts';
import { logins } from '../../../lib/model/directory/logins.ts';
import { rollDays } from '../../../lib/patterns/high-volume-delete.ts';
import { createTable, dropTable, listTables } from '../../../lib/storage/provision.ts';
import { openStorage } from '../../../lib/storage/storage.ts';
import { testStorage } from '../../storage.ts';

const storage = openStorage({ connectionString: testStorage(import.meta.url) });
const DAY_MS = 24 * 60 * 60 * 1_000;
const NOON = Date.parse('2026-11-20T12:00:00Z');

let now = NOON;
const engine: Engine = createEngine(storage, { now: () => now });
beforeEach(async () => {
  now = NOON;
  for (const table of await listTables(storage, 'l')) await dropTable(storage, table);
});

const day = (offset: number) => new Date(NOON + offset * DAY_MS).toISOString().slice(0, 10);
const table = (offset: number) => `logins${day(offset).replaceAll('-', '')}`;

describe('the daily timer', () => {
  test('makes the tables of today and tomorrow and drops the days past keeping, and those alone', async () => {
    const kept = [table(0), table(-1), table(-59), table(-60)];
    // Not a day: too short, too long, no such date, of another name.
    const others = [
      'logins',
      'logins2026112',
      'logins202611201',
      'logins20261399',
      'logins20260230',
      'loginsarchive20200101',
      'loginss20200101',
      'login20200101',
    ];
    for (const name of [...kept, ...others, table(-61), table(-62), table(-400)]) await createTable(storage, name);
    expect(await rollDays(engine, logins)).toEqual({
      created: [table(0), table(1)],
      dropped: [table(-400), table(-62), table(-61)].sort(),
    });
    expect(await listTables(storage, 'login')).toEqual([...new Set([...kept, ...others, table(1)])].sort());
  });

  test('run twice, beside itself, or after ninety days comes to the same', async () => {
    await Promise.all([rollDays(engine, logins), rollDays(engine, logins)]);
    expect((await rollDays(engine, logins)).dropped).toEqual([]);
    expect(await listTables(storage, 'logins')).toEqual([table(0), table(1)]);
    now = NOON + 90 * DAY_MS;
    await rollDays(engine, logins);
    expect(await listTables(storage, 'logins')).toEqual([table(90), table(91)]);
  });
});

describe('rows of many days', () => {
  const employeeId = '000001';
  const write = (offset: number, minute: number) =>
    createEntity(engine, logins, {
      employeeId,
      succeeded: true,
      at: new Date(NOON + offset * DAY_MS + minute * 60_000).toISOString(),
    });
  const instants = ({ items }: { items: readonly object[] }) =>
    items.map((item) => ('at' in item ? String(item.at) : ''));

  beforeAll(() => rollDays(engine, logins));

  test('are written to the table of their day, which is made where the timer was late', async () => {
    await write(-3, 0);
    expect(await listTables(storage, 'logins')).toEqual([table(-3)]);
    for (const offset of [-61, 2])
      await expect(write(offset, 0)).rejects.toMatchObject({ code: 'invalid-input', details: { field: 'at' } });
  });

  test('are read in order and by pages, each once, whatever days are missing', async () => {
    const written: string[] = [];
    for (const offset of [-50, -20, -19, -1, 0])
      for (const minute of [0, 1, 2]) written.push(String((await write(offset, minute)).values.at));
    for (const top of [1, 2, 3, 4, 15, 100]) {
      const read: string[] = [];
      let after: Awaited<ReturnType<typeof readEntities>>['next'];
      let pages = 0;
      do {
        const page = await readEntities(engine, logins, { employeeId }, { top, after });
        expect(page.items.length).toBeLessThanOrEqual(top);
        read.push(...instants(page));
        after = page.next;
        pages += 1;
      } while (after && pages < 50);
      expect(read, `by ${top}`).toEqual(written);
    }
    const some = await readEntities(engine, logins, { employeeId }, { top: 100, from: day(-20), to: day(-1) });
    expect(instants(some)).toEqual(written.slice(3, 12));
    expect(
      instants(await readEntities(engine, logins, { employeeId }, { top: 100, from: day(1), to: day(-1) })),
    ).toEqual([]);
  });
});
