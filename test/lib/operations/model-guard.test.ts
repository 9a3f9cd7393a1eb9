import { beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineSeries,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../lib/index.ts';
import { checkModel, guardModel } from '../../../lib/operations/model-guard.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { baseValues } from '../../kit/base.ts';
import { type CalendarUnit, defineCodec, type Entity } from '../../kit/define.ts';
import { engineCore } from '../../kit/engine.ts';
import { operationsModel } from '../../kit/operations.ts';
import { type Storage, storageAccounts, storageRows, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';
import { provisionAccounts } from '../storage/several-accounts.ts';

/** Compares a declaration with the one that was in use before. */

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
const engine = engineCore.createEngine(storage);
const schema = z.object({ a: z.string(), b: z.string(), c: z.string(), at: z.iso.date() });
const access = { read: ['hr'], write: ['hr'], restricted: { c: ['hr'] } } as const;
const email = { table: 'byb', partition: '{b#}', row: '{b}_{a}' } as const;
const { things: first } = deploy(
  defineEntity('things', {
    schema,
    table: 'things',
    key: { partition: '{a}', row: 'b_{b}' },
    indexes: { here: intraPartitionIndex({ row: 'c_{b}' }) },
    archive: { table: 'oldthings' },
    access,
  }),
);
const archivedWithout = (...without: 'c'[]): Entity =>
  deploy(
    defineEntity('things', {
      schema,
      table: 'things',
      key: { partition: '{a}', row: 'b_{b}' },
      indexes: { here: intraPartitionIndex({ row: 'c_{b}' }) },
      archive: { table: 'oldthings', without },
      access,
    }),
  ).things;
const withPhone = (phone: z.ZodType): Entity =>
  deploy(
    defineEntity('things', {
      schema: schema.extend({ phone }),
      table: 'things',
      key: { partition: '{a}', row: 'b_{b}' },
      indexes: { here: intraPartitionIndex({ row: 'c_{b}' }) },
      archive: { table: 'oldthings' },
      access,
    }),
  ).things;
const days = { schema, table: 'days', key: { partition: '{a}', row: '{at}_{b}' }, access } as const;
const kept = (keep: number, per: CalendarUnit = 'day', archiveTo?: 'blob') =>
  deploy(defineEntity('days', { ...days, period: { per, field: 'at', keep, archiveTo } })).days;

const counted = (first: number, last: number, perRow = last - first + 1, keep = 12, overflow?: 'blob') =>
  deploy(
    defineSeries('counts', {
      schema: z.object({ a: z.string(), at: z.iso.date() }),
      table: 'counts',
      key: { partition: '{a}', row: '{at}' },
      slots: { name: 'slot', first, last, perRow, ...(overflow ? { overflow } : {}) },
      period: { per: 'month', field: 'at', keep },
      access: { read: ['hr'], write: ['hr'] },
    }),
  ).counts;

const photo = (container: string) => ({ photo: { container, maxBytes: 5, types: ['image/png'] } });

const guard = (entity: Entity, agreed?: string) => guardModel(engine, [entity], agreed);

beforeEach(async () => {
  await storageTables.dropTable(storage, 'system');
  await storageTables.provision(storage, { tables: ['system'], queues: [], containers: [] });
});

describe('guardModel', () => {
  test('accepts new and unchanged declarations', async () => {
    expect(await guard(first)).toEqual([]);
    expect(await guard(first)).toEqual([]);
  });

  const unique = { ...email, row: '{b}', unique: true } as const;
  const changes: [string, Entity, Entity, RegExp][] = [
    [
      'another key of an entity with tables of periods',
      kept(60),
      { ...kept(60), row: first.row },
      /the row changed from/,
    ],
    ['no archive', first, { ...first, archive: undefined }, /the archive changed from oldthings/],
    [
      'an archive without a field',
      first,
      archivedWithout('c'),
      /archive.without changed: c; archived entities would lose/,
    ],
    [
      'an archive with a field again',
      archivedWithout('c'),
      first,
      /archive.without changed: c; archived entities would lose/,
    ],
    ['a field that becomes encrypted', first, { ...first, encrypted: ['c'] }, /the field c was not declared encrypted/],
    ['a text that is no longer large', { ...first, large: ['c'] }, first, /the field c was declared large/],
    [
      'a field of another type',
      first,
      { ...first, columns: { ...first.columns, c: 'Int32' } },
      /the type of the field c changed from String to Int32/,
    ],
    [
      'a field that was removed',
      { ...first, columns: { ...first.columns, phone: 'String' } },
      first,
      /the field phone was removed without a new version; each write/,
    ],
    ['a field that becomes required', withPhone(z.string().optional()), withPhone(z.string()), /phone became required/],
    ['a new required field', first, withPhone(z.string()), /phone became required without a new version/],
    [
      'another container for its files',
      { ...first, attachments: photo('photos') },
      { ...first, attachments: photo('pictures') },
      /the container of the attachment photo changed from photos/,
    ],
    [
      'no files any longer',
      { ...first, attachments: photo('photos') },
      first,
      /the container of the attachment photo changed from photos/,
    ],
    ['an earlier version', { ...first, version: 2 }, first, /the version decreased from 2 to 1/],
    ['a shorter retention', kept(60), kept(30), /retention would shrink from 60 to 30 days and drop 30 tables/],
    ['fewer months', kept(12, 'month'), kept(6, 'month'), /would shrink from 12 to 6 months and drop 6 tables/],
    [
      'months instead of days',
      kept(60),
      kept(60, 'month'),
      /the tables changed from one for each day of "at" to one for each month of "at"; stored rows/,
    ],
    ['periods that are no longer archived', kept(60, 'day', 'blob'), kept(60), /archiveTo was removed; tables past/],
    ['one table instead of days', kept(60), { ...kept(60), period: undefined }, /of "at" to one table;/],
    ['a shorter retention of a series', counted(0, 9), counted(0, 9, 10, 6), /would shrink from 12 to 6 months/],
    ['fewer slots of a series', counted(0, 9), counted(0, 8), /the slots changed from 0 to 9 to 0 to 8/],
    [
      'other rows for the slots of a series',
      counted(0, 9, 5),
      counted(0, 9, 4),
      /the rows of the slots changed from 5 for each/,
    ],
    [
      'another first row of a series',
      counted(1, 9, 3),
      counted(0, 9, 3),
      /3 for each row, beginning with 1, to 3 .* with 0/,
    ],
    [
      'a series whose blobs would not be read',
      counted(0, 9, 10, 12, 'blob'),
      counted(0, 9),
      /slots.overflow was removed; counts that are in blobs could not be read/,
    ],
    [
      'an index that becomes unique',
      { ...first, indexes: { b: interPartitionIndex(email) } },
      { ...first, indexes: { b: interPartitionIndex(unique) } },
      /the index b became unique/,
    ],
  ];
  test.each(changes)('rejects %s until an operator agrees to that change', async (_, before, after, why) => {
    await guard(before);
    const refused = await guard(after).catch((error: Error) => error.message);
    expect(refused).toMatch(why);
    const [, word] = /set AGREED_MODEL_CHANGES to (\w+)/.exec(String(refused)) ?? [];
    await expect(guard(after, 'another')).rejects.toMatchObject({ code: 'wrong-setting' });
    expect(await guard(before)).toEqual([]);
    await guard(after, word);
    await guard(after);
  });

  describe('another key of an entity', () => {
    const otherKey = { ...first, row: deploy(defineEntity('things', days)).things.row };
    const withRow = async (table: string, properties: object, check: () => Promise<void>) => {
      await storageTables.provision(storage, { tables: [table], queues: [], containers: [] });
      await storage.table(table).createEntity({ partitionKey: 'a', rowKey: 'b_b', ...properties });
      await check();
      await storageTables.dropTable(storage, table);
    };

    test.each<[string, Entity, RegExp]>([
      ['key', otherKey, /^.*things: the row changed from b_\{b\} to \{at\}_\{b\}, and the table things has rows/],
      ['partition', { ...first, partition: first.row }, /the partition changed from \{a\} to b_\{b\}, and the table/],
      [
        'table',
        { ...first, table: 'others' },
        /the table changed from things to others, and the table things has rows/,
      ],
    ])('that has rows is rejected, whatever an operator agrees to: another %s', async (_, after, why) => {
      await guard(first);
      await withRow('things', { EntityType: 'things' }, async () => {
        const refused = await guard(after).catch((error: Error) => error.message);
        expect(refused).toMatch(why);
        expect(refused).toMatch(/delete the rows with the former release: npm run purge -- things\.$/);
        expect(await guard(first)).toEqual([]);
      });
      expect(await guard(after)).toEqual([]);
    });

    test('is accepted if the table has rows of other entities only', async () => {
      await guard(first);
      await withRow('things', { EntityType: 'others' }, async () => {
        expect(await guard(otherKey)).toEqual([]);
      });
    });

    test('whose archive has rows is accepted if an operator agrees', async () => {
      await guard(first);
      await withRow('oldthings', { EntityType: 'oldthings' }, async () => {
        const refused = await guard(otherKey).catch((error: Error) => error.message);
        expect(refused).toMatch(/the row changed from b_\{b\}; stored rows would not be found/);
        const [, word] = /set AGREED_MODEL_CHANGES to (\w+)/.exec(String(refused)) ?? [];
        expect(await guard(otherKey, word)).toEqual([]);
      });
    });
  });

  test('reads shapes stored by releases without months and years', async () => {
    await guard(kept(60));
    const address = { table: 'system', partition: 'model', row: 'days' };
    const row = await storageRows.readRow(storage, address);
    const { period: _, ...shape } = JSON.parse(String(row?.properties.Shape));
    const Shape = JSON.stringify({ ...shape, perDay: { field: 'at', keepDays: 60 } });
    const action = { kind: 'replace', row: 'days', properties: { Shape }, etag: row?.etag ?? '' } as const;
    expect(await storageRows.tryAction(storage, address, action)).toBeTruthy();
    expect(await guard(kept(60))).toEqual([]);
    await expect(guard(kept(30))).rejects.toThrow(/from 60 to 30 days/);
  });

  test('accepts more slots of a series and a longer row', async () => {
    await guard(counted(1, 9));
    const wider = [counted(1, 20), counted(0, 20), counted(0, 40, 41), counted(0, 999, 1_000, 12, 'blob')];
    for (const now of wider) expect(await guard(now)).toEqual([]);
  });

  test('accepts further rows of a series', async () => {
    await guard(counted(0, 9));
    expect(await guard(counted(0, 40, 10))).toEqual([]);
  });

  test('accepts a longer retention', async () => {
    await guard(kept(30));
    expect(await guard(kept(60))).toEqual([]);
  });

  test('accepts a field that becomes large and a new index', async () => {
    await guard(first);
    expect(await guard({ ...first, large: ['c'] })).toEqual([]);
    const indexes = { ...first.indexes, b: interPartitionIndex(email) };
    const said = await guard({ ...first, large: ['c'], indexes });
    expect(said).toEqual([expect.stringContaining('npm run reindex -- things b')]);
    const withPath = await guardModel(engine, [{ ...first, large: ['c'], indexes }], undefined, 'shop');
    expect(withPath).toEqual([expect.stringMatching(/npm run reindex -- things b --path shop$/)]);
    await operationsModel.markBuilt(engine, { ...first, indexes }, 'b');
    expect(await guard({ ...first, large: ['c'], indexes })).toEqual([]);
  });

  test('reports the rows of a removed or changed index', async () => {
    await guard(first);
    const former = 'former index here of things still exist: npm run reindex -- things here --clean-up';
    expect(await guard({ ...first, indexes: {} })).toEqual([expect.stringContaining(former)]);
    const refused = await guard(first).catch((error: Error) => error.message);
    expect(refused).toContain('the index here would read stale rows of the former index here');
    const [, word] = /set AGREED_MODEL_CHANGES to (\w+)/.exec(String(refused)) ?? [];
    expect(await guard(first, word)).toEqual([expect.stringContaining('reindex -- things here')]);
    await operationsModel.markBuilt(engine, first, 'here');
    expect(await guard(first)).toEqual([]);
    const other = { ...first, indexes: { here: indexEntity({ row: 'd_{c}', holds: '{b}' }) } };
    expect(await guard(other)).toEqual([
      expect.stringContaining('reindex'),
      expect.stringContaining('former index here'),
    ]);
  });

  test('records several former indexes of the same name', async () => {
    const here = (row: 'c_{b}' | 'd_{b}' | 'e_{b}') => ({ ...first, indexes: { here: intraPartitionIndex({ row }) } });
    await guard(here('c_{b}'));
    await guard(here('d_{b}'));
    expect(await guard(here('e_{b}'))).toEqual([
      expect.stringContaining('reindex -- things here'),
      expect.stringContaining('reindex -- things here --clean-up'),
      expect.stringContaining('reindex -- things here-2 --clean-up'),
    ]);
    await expect(guard(here('c_{b}'))).rejects.toMatchObject({ code: 'wrong-setting' });
  });

  test('accepts another type of a field in a new version', async () => {
    await guard(first);
    const { c: _, ...columns } = first.columns;
    const upgraded = { ...first, version: 2, columns: { ...columns, b: 'Int32', d: 'Boolean' } } as const;
    expect(await guard(upgraded)).toEqual([]);
    await expect(guard({ ...upgraded, columns: first.columns })).rejects.toMatchObject({ code: 'wrong-setting' });
  });

  test('accepts a removed and a required field in a new version, optional fields and fields with a default', async () => {
    await guard(withPhone(z.string().optional()));
    expect(await guard({ ...withPhone(z.string()), version: 2 })).toEqual([]);
    expect(await guard({ ...first, version: 3 })).toEqual([]);
    expect(await guard({ ...withPhone(z.string().optional()), version: 3 })).toEqual([]);
    expect(await guard({ ...withPhone(z.string().default('none')), version: 3 })).toEqual([]);
  });

  test('accepts a renamed field in a new version, whose upgrade keeps the stored value', async () => {
    const before = withPhone(z.string().optional());
    const { things: renamed } = deploy(
      defineEntity('things', {
        schema: schema.extend({ mobile: z.string().optional() }),
        table: 'things',
        key: { partition: '{a}', row: 'b_{b}' },
        indexes: { here: intraPartitionIndex({ row: 'c_{b}' }) },
        archive: { table: 'oldthings' },
        access,
        version: 2,
        upgrades: { 1: ({ phone, ...thing }) => ({ ...thing, mobile: phone }) },
      }),
    );
    await guard(before);
    expect(await guard(renamed)).toEqual([]);
    const values = { a: 'a', b: 'b', c: 'c', at: '2026-11-20' };
    const properties = defineCodec.toProperties(
      before,
      { ...values, phone: '030' },
      { WriteId: '1', Incarnation: '1' },
    );
    expect(defineCodec.toValues(renamed, properties)).toEqual({ ...values, mobile: '030' });
  });

  test('accepts that a derived field is removed, whose values are computed, or becomes a required one', async () => {
    const optional = withPhone(z.string().optional());
    const derived = { ...optional, derived: { phone: ({ b }: Values) => b }, decidedFields: ['phone'] };
    await guard(derived);
    expect(await guard(withPhone(z.string()))).toEqual([]);
    await storageTables.dropTable(storage, 'system');
    await storageTables.provision(storage, { tables: ['system'], queues: [], containers: [] });
    await guard(derived);
    expect(await guard(first)).toEqual([]);
  });

  test('accepts that a derived field becomes one with a default, and back, and a new field with a default', async () => {
    const form = {
      schema: schema.extend({ id: z.string() }),
      table: 'things',
      key: { partition: '{a}', row: 'b_{id}' },
      access,
    } as const;
    const computed = { id: ({ b }: Values) => b };
    const { things: derived } = deploy(defineEntity('things', { ...form, derived: computed }));
    const { things: once } = deploy(defineEntity('things', { ...form, defaults: computed }));
    await guard(derived);
    expect(await guard(once)).toEqual([]);
    expect(await guard(derived)).toEqual([]);
    await storageTables.dropTable(storage, 'system');
    await storageTables.provision(storage, { tables: ['system'], queues: [], containers: [] });
    await guard(first);
    const phoned = { ...withPhone(z.string()), defaults: { phone: () => 'none' } };
    expect(await guard(phoned)).toEqual([]);
  });

  test('accepts the fields of the release before for a week, and says what its writes do', async () => {
    const newer = withPhone(z.string().optional());
    await guard(first);
    await guard(newer);
    vi.useFakeTimers({ now: Date.now() + 6 * baseValues.DAY_MS, toFake: ['Date'] });
    const note = expect.stringMatching(/^things has the fields of an older release: the field phone was removed/);
    expect(await guard(first)).toEqual([note]);
    expect(await guard(newer)).toEqual([]);
    vi.setSystemTime(Date.now() + 8 * baseValues.DAY_MS);
    await expect(guard(first)).rejects.toThrow('the field phone was removed');
    vi.useRealTimers();
  });

  test('rejects fields that the release before did not have', async () => {
    await guard(withPhone(z.string().optional()));
    await guard({ ...first, columns: { ...first.columns, phone: 'String', fax: 'String' } });
    await expect(guard(first)).rejects.toThrow('the field fax was removed');
    await expect(guard(first)).rejects.toThrow('the field phone was removed');
  });

  test('reads shapes stored by releases without types and containers', async () => {
    await guard(first);
    const system = storage.table('system');
    const { Shape } = await system.getEntity<{ Shape: string }>('model', 'things');
    const { columns, required, decided, attachments, ...earlier } = JSON.parse(Shape);
    const row = { partitionKey: 'model', rowKey: 'things', Shape: JSON.stringify(earlier) };
    await system.updateEntity(row, 'Merge');
    expect(await guard({ ...first, attachments: photo('photos') })).toEqual([]);
    const kept = JSON.parse((await system.getEntity<{ Shape: string }>('model', 'things')).Shape);
    expect(kept).toMatchObject({ columns, required, decided, attachments: { photo: 'photos' } });
  });

  describe('names the tables that an earlier declaration left, until they are deleted:', () => {
    const left = (names: string) =>
      expect.stringContaining(
        `left tables that nothing reads or drops: ${names}. Delete each: az storage table delete`,
      );
    const create = (...tables: string[]) => storageTables.provision(storage, { tables, queues: [], containers: [] });

    test('the index table of expiry', async () => {
      const expiring = { ...first, expiry: { days: 3, clock: 'at' } };
      await create('thingsexpiry');
      expect(await guard(expiring)).toEqual([]);
      expect(await guard(first)).toEqual([left('thingsexpiry')]);
      expect(await guard(expiring)).toEqual([]);
      expect(await guard(first)).toEqual([left('thingsexpiry')]);
      const gone = expect.stringMatching(/things is no longer declared, .* thingsexpiry still exist/);
      expect(await guardModel(engine, [], undefined)).toEqual([gone]);
      await storageTables.dropTable(storage, 'thingsexpiry');
      expect(await guard(first)).toEqual([]);
    });

    test('the tables of another calendar unit, and no table of another entity', async () => {
      const agree = async (entity: Entity) => {
        const refused = await guard(entity).catch((error: Error) => error.message);
        return guard(entity, /AGREED_MODEL_CHANGES to (\w+)/.exec(String(refused))?.[1]);
      };
      await create('days20261120', 'days20261121', 'days202611', 'days2026', 'days20269999', 'daysother20261120');
      await guard(kept(60));
      expect(await agree(kept(60, 'month'))).toEqual([left('days20261120, days20261121')]);
      expect(await agree(kept(60, 'year'))).toEqual([left('days202611, days20261120, days20261121')]);
      expect(await agree(kept(60))).toEqual([left('days2026, days202611')]);
      const other = { ...first, name: 'other', table: 'days2026' };
      expect(await guardModel(engine, [kept(60), other], undefined)).toEqual([]);
      for (const table of ['days202611', 'days2026']) await storageTables.dropTable(storage, table);
      expect(await guardModel(engine, [kept(60), other], undefined)).toEqual([]);
    });
  });

  test('reports the tables of an entity that is no longer declared', async () => {
    const remote = { ...first, indexes: { b: interPartitionIndex(email) } };
    await guard(remote);
    expect(await guard(kept(30))).toEqual([
      expect.stringMatching(/entity things is no longer declared, but its rows in things, oldthings, byb still exist/),
    ]);
    expect(await guardModel(engine, [remote, kept(30)], undefined)).toEqual([]);
  });

  test('names tables as the account has them, with the prefix of the app', async () => {
    const prefixed = engineCore.createEngine(storageAccounts.openStorage({ connectionString }, 'shop'));
    await storageTables.provision(prefixed.storage, { tables: ['system'], queues: [], containers: [] });
    await guardModel(prefixed, [first], undefined);
    const [note] = await guardModel(prefixed, [], undefined);
    expect(note).toContain('its rows in shop0things, shop0oldthings still exist');
    expect(note).toContain('from the table shop0system.');
  });

  test('rejects a process that lacks one of the accounts', async () => {
    const { open, openWith } = await provisionAccounts();
    const guardWith = (of: Storage) => guardModel(engineCore.createEngine(of), [first], undefined);
    expect(await guardWith(open())).toEqual([]);
    expect(await guardWith(open())).toEqual([]);
    await expect(guardWith(open(2))).rejects.toThrow(
      'STORAGE_ACCOUNTS does not name: third. Set STORAGE_ACCOUNTS="second third"',
    );
    const [account] = openWith(undefined, 0).options;
    if (!account) throw new Error('There is no account.');
    await expect(guardWith(storageAccounts.openStorage(account))).rejects.toThrow('does not name: second, third');
  });
});

test('checkModel rejects what the guard rejects, and stores nothing', async () => {
  const check = (entity: Entity, agreed?: string) => checkModel(engine, [entity], agreed);
  await guard(withPhone(z.string().optional()));
  const refused = await check(first).catch((error: Error) => error.message);
  expect(refused).toContain('the field phone was removed without a new version');
  const [, word] = /set AGREED_MODEL_CHANGES to (\w+)/.exec(String(refused)) ?? [];
  await check(first, word);
  await check({ ...withPhone(z.string().optional()), indexes: {} });
  // The model in use is the one before, with its index.
  expect(await guard(withPhone(z.string().optional()))).toEqual([]);

  await storageTables.dropTable(storage, 'system');
  await check(first);
});
