import { randomUUID } from 'node:crypto';
import { createDefaultHttpClient, createHttpHeaders, type HttpClient } from '@azure/core-rest-pipeline';
import { afterEach, describe, expect, test } from 'vitest';
import { RowkeyError } from '../../lib/index.ts';
import { logins } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { type Engine, engineRead, engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { storageTables } from '../kit/storage.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { putAll } from '../put-all.ts';
import { countTried } from '../tried-faults.ts';
import { openWorld } from '../world.ts';

/** Days that are dropped during writes, and tables that the service is still dropping. */

const world = await openWorld(import.meta.url);
afterEach(async () => {
  for (const table of await storageTables.listTables(world.storage, 'logins'))
    await storageTables.dropTable(world.storage, table);
});

const NOON = Date.parse('2026-11-20T12:00:00Z');
const day = (offset: number, from = NOON) => new Date(from + offset * baseValues.DAY_MS).toISOString();
const tableOf = (offset: number, from = NOON) => `logins${day(offset, from).slice(0, 10).replaceAll('-', '')}`;
const at = (engine: Engine, now: number): Engine => ({ ...engine, now: () => now });
const login = (offset: number, from = NOON) => ({ employeeId: '000123', at: day(offset, from), succeeded: true });

/** The response of the service while it drops a table in the background; Azurite drops tables immediately. */
function beingDeleted(table: string): HttpClient & { isOver: boolean } {
  const storage = createDefaultHttpClient();
  const body = {
    'odata.error': {
      code: 'TableBeingDeleted',
      message: { lang: 'en-US', value: 'The specified table is being deleted.' },
    },
  };
  return {
    isOver: false,
    async sendRequest(request) {
      const isAbout = request.url.includes(table) || String(request.body ?? '').includes(`"${table}"`);
      if (this.isOver || !isAbout) return storage.sendRequest(request);
      const headers = createHttpHeaders({ 'content-type': 'application/json', 'x-ms-error-code': 'TableBeingDeleted' });
      return { request, status: 409, headers, bodyAsText: JSON.stringify(body) };
    },
  };
}

describe('a table that is being deleted', () => {
  test('is created again later: writes are rejected for a while, reads skip it, and the timer continues', async () => {
    const client = beingDeleted(tableOf(0));
    const through = at(world.engineThrough(client), NOON);
    for (const offset of [-1, -70]) await world.storage.table(tableOf(offset)).createTable();
    await engineWrite.createEntity(at(world.engine, NOON), logins, login(-1));

    await expect(engineWrite.createEntity(through, logins, login(0))).rejects.toMatchObject({
      code: 'storage-unavailable',
      retryAfter: 30,
    });
    const { items } = await engineRead.readEntities(through, logins, { employeeId: '000123' }, { top: 100 });
    expect(items).toHaveLength(1);
    expect((await featureUpkeep.rollPeriods(through, logins)).dropped).toEqual([tableOf(-70)]);
    client.isOver = true;
    await engineWrite.createEntity(through, logins, login(0));
    expect((await engineRead.readEntities(through, logins, { employeeId: '000123' }, { top: 100 })).items).toHaveLength(
      2,
    );
  });

  test('of an expired day is dropped by the next run of the timer', async () => {
    await world.storage.table(tableOf(-61)).createTable();
    const client = beingDeleted(tableOf(-61));
    const through = at(world.engineThrough(client), NOON);
    await featureUpkeep.rollPeriods(through, logins);
    expect(await storageTables.listTables(world.storage, 'logins')).toContain(tableOf(-61));
    client.isOver = true;
    await featureUpkeep.rollPeriods(through, logins);
    expect(await storageTables.listTables(world.storage, 'logins')).not.toContain(tableOf(-61));
  });
});

test('a batch creates the missing tables of its days', async () => {
  const engine = at(world.engine, NOON);
  const all = [-3, -2, -2].map((offset) => ({ ...login(offset), loginId: randomUUID() }));
  expect(await putAll(engine, logins, all)).toEqual(['stored', 'stored', 'stored']);
  const { items } = await engineRead.readEntities(engine, logins, { employeeId: '000123' }, { top: 100 });
  expect(items).toHaveLength(3);
});

describe('a login of the last retained day', () => {
  test('that races the drop of its day is stored, dropped or rejected, and no expired day is left', {
    tags: ['slow'],
  }, async () => {
    // The clock of the writer is a second before midnight, the clock of the timer as long after as an archive waits.
    const midnight = Date.parse('2026-11-21T00:00:00Z');
    const writer = at(world.engine, midnight - 1_000);
    const timer = at(world.engine, midnight + 2 * baseValues.MINUTE_MS);
    const rounds = IS_EVERY_POINT ? 40 : 10;
    const play = async (round: number) => {
      await featureUpkeep.rollPeriods(writer, logins);
      const outcomes = await Promise.allSettled([
        ...[-60, -59, 0].flatMap((offset) =>
          [0, 1, 2].map(() => engineWrite.createEntity(writer, logins, login(offset))),
        ),
        featureUpkeep.rollPeriods(timer, logins),
        featureUpkeep.rollPeriods(timer, logins),
      ]);
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') {
          expect(outcome.reason).toBeInstanceOf(RowkeyError);
          expect(['storage-unavailable', 'invalid-input']).toContain(outcome.reason.code);
        }
      await featureUpkeep.rollPeriods(timer, logins);
      const left = await storageTables.listTables(world.storage, 'logins');
      expect(left.filter((table) => table < tableOf(-60, midnight + 2 * baseValues.MINUTE_MS))).toEqual([]);
      const { items } = await engineRead.readEntities(timer, logins, { employeeId: '000123' }, { top: 1_000 });
      // Every acknowledged write of a kept day is stored.
      expect(items).toHaveLength((round + 1) * 6);
    };
    for (let round = 0; round < rounds; round += 1)
      await countTried({ what: 'Write that races the retention of its table' }, () => play(round));
  });

  test('is handled the same when the timer was skipped for ninety days, late or doubled', {
    tags: ['slow'],
  }, async () => {
    for (let offset = 0; offset >= -100; offset -= 1) await world.storage.table(tableOf(offset)).createTable();
    const late = at(world.engine, NOON + 90 * baseValues.DAY_MS);
    await Promise.all([
      featureUpkeep.rollPeriods(late, logins),
      featureUpkeep.rollPeriods(late, logins),
      featureUpkeep.rollPeriods(late, logins),
    ]);
    await featureUpkeep.rollPeriods(late, logins);
    const from = NOON + 90 * baseValues.DAY_MS;
    expect(await storageTables.listTables(world.storage, 'logins')).toEqual([tableOf(0, from), tableOf(1, from)]);
  });
});
