import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define.ts';
import { describeForeign, findForeign } from '../../../lib/operations/foreign-rows.ts';
import { costOf } from '../../cost-of.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { model } from '../../fixtures/model.ts';
import { baseValues } from '../../kit/base.ts';
import type { Entity } from '../../kit/define.ts';
import { engineCore, engineRead, engineWrite } from '../../kit/engine.ts';
import { operationsCheck, operationsModel } from '../../kit/operations.ts';
import { storageAccounts, storageSlots, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const notes = (table: string, over: { readonly sharedTable?: boolean } = {}) =>
  deploy(
    defineEntity('notes', {
      schema: z.object({ city: z.string(), id: z.string(), text: z.string() }),
      table,
      key: { partition: '{city}', row: '{id}' },
      access: { read: [], write: [] },
      ...over,
    }),
  ).notes;

let count = 0;
let entity = notes('notes0');
const open = () =>
  engineCore.createEngine(storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }));
let engine = open();

beforeEach(async () => {
  count += 1;
  entity = notes(`notes${count}`);
  engine = open();
  await storageTables.provision(engine.storage, {
    ...operationsModel.resourcesOf([entity]),
    queues: [],
    containers: [],
  });
  // The record has a row for each name.
  await engine.storage
    .table('system')
    .deleteEntity('model', 'notes')
    .catch(() => undefined);
});

const key = { city: 'Bern', id: '1' };
const put = (text: string) => engineWrite.putEntity(engine, entity, key, { text }, {});
const place = (row: string) =>
  engine.storage.table(entity.table).createEntity({ partitionKey: 'Bern', rowKey: row, Name: 'of another program' });
const verify = () => operationsCheck.verifyPage(engine, entity, { top: 100, repair: true, patience: 0 });
const start = async () => {
  engine = open();
  const guarded = await operationsModel.guardModel(engine, [entity], undefined);
  return [...guarded, ...(await findForeign(engine, [entity]))];
};

describe('a table of the app alone', () => {
  test('is written without a read', async () => {
    expect(await start()).toEqual([]);
    expect(await costOf(() => put('a'))).toBe(1);
    expect(await costOf(() => engineWrite.deleteEntity(engine, entity, key, {}))).toBe(1);
  });

  test('is searched at the start with one transaction', async () => {
    await start();
    for (const id of ['1', '2', '3']) await engineWrite.putEntity(engine, entity, { ...key, id }, { text: 'a' }, {});
    expect(await costOf(() => findForeign(engine, [entity]))).toBe(1);
  });
});

test('the fence and the mark of a move are no rows of another program', async () => {
  await start();
  const fences = ['!mabc', '0123abcd4567ef01'].flatMap((move) => [
    storageSlots.fenceOf(move),
    storageSlots.markOf(move),
  ]);
  for (const rowKey of fences) await engine.storage.table(entity.table).createEntity({ partitionKey: 'Bern', rowKey });
  expect(await start()).toEqual([]);
  expect(await engineCore.searchForeign(engine, entity.table)).toBe('none');
  expect(await costOf(() => put('a'))).toBe(1);
});

test('a row that a client has written to any key is no row of another program', async () => {
  const written = model.list.find(({ isWrittenByClients, period }) => isWrittenByClients && !period) as Entity;
  await storageTables.provision(engine.storage, {
    ...operationsModel.resourcesOf([written]),
    queues: [],
    containers: [],
  });
  await engine.storage.table(written.table).createEntity({ partitionKey: 'ann', rowKey: 'other', Id: 'x' });
  expect(await findForeign(engine, [written])).toEqual([]);
});

describe('a row of another program', () => {
  const isAbsent = async () => {
    const deleted = await engineWrite.deleteEntity(engine, entity, key, {}).catch((error: unknown) => error);
    expect(baseValues.hasCode(deleted, 'not-found')).toBe(true);
    const replaced = await put('b').catch((error: unknown) => error);
    expect(baseValues.hasCode(replaced, 'duplicate-key')).toBe(true);
    expect(await engine.storage.table(entity.table).getEntity('Bern', '1')).toMatchObject({
      Name: 'of another program',
    });
  };

  test('is found at the start, which names the option, and each write reads first from then on', async () => {
    await start();
    await place('1');
    await engineWrite.putEntity(engine, entity, { ...key, id: '2' }, { text: 'a' }, {});
    expect(await start()).toEqual([
      expect.stringMatching(/^The table notes\d+ of notes has rows of another program\..*sharedTable: true/),
    ]);
    await isAbsent();
    // Recorded for each process that starts later.
    engine = open();
    expect(await operationsModel.guardModel(engine, [entity], undefined)).toEqual([
      expect.stringContaining('sharedTable: true'),
    ]);
    await isAbsent();
    expect(await costOf(() => engineWrite.putEntity(engine, entity, { ...key, id: '2' }, { text: 'c' }, {}))).toBe(2);
  });

  test('is counted by the consistency check, and forgotten when it is gone', async () => {
    await start();
    await place('1');
    await engineWrite.putEntity(engine, entity, { ...key, id: '2' }, { text: 'a' }, {});
    expect(await verify()).toMatchObject({ checked: 2, findings: [], foreign: 1 });
    await isAbsent();
    await engine.storage.table(entity.table).deleteEntity('Bern', '1');
    expect(await verify()).toMatchObject({ checked: 1, findings: [], foreign: 0 });
    expect(await costOf(() => put('d'))).toBe(1);
    expect(await start()).toEqual([]);
  });

  test('that a read has found is recorded by the consistency check for each process that starts later', async () => {
    await start();
    await place('1');
    await expect(engineRead.readEntity(engine, entity, key)).rejects.toMatchObject({ code: 'not-found' });
    expect(await verify()).toMatchObject({ foreign: 1 });
    engine = open();
    expect(await operationsModel.guardModel(engine, [entity], undefined)).toEqual([
      expect.stringContaining('sharedTable: true'),
    ]);
    await isAbsent();
  });

  test('is recorded again by a process that recorded it before another one recorded that it is gone', async () => {
    await start();
    await place('1');
    await verify();
    const first = engine;
    await engine.storage.table(entity.table).deleteEntity('Bern', '1');
    await start();
    await verify();
    await place('1');
    await operationsCheck.verifyPage(first, entity, { top: 100, repair: true, patience: 0 });
    expect(await operationsModel.guardModel(open(), [entity], undefined)).toHaveLength(1);
  });

  test('is left in a table that is declared as shared, without a note', async () => {
    entity = notes(entity.table, { sharedTable: true });
    await place('1');
    expect(await start()).toEqual([]);
    await isAbsent();
  });
});

test('proposes sharedTable only where it is accepted', () => {
  expect(describeForeign(engine, entity)).toContain('Declare sharedTable: true of notes');
  const ofClients = model.list.find(({ isWrittenByClients }) => isWrittenByClients) as Entity;
  expect(describeForeign(engine, ofClients)).toMatch(
    / cannot share its table: move these rows to a table of their own\.$/,
  );
});

test('rejects sharedTable where nothing tells whose a row is', () => {
  const schema = z.object({ city: z.string(), at: z.iso.datetime() });
  const declare = () =>
    defineEntity('visits', {
      schema,
      table: 'visits',
      key: { partition: '{city}', row: '{at}' },
      period: { per: 'day', field: 'at', keep: 2 },
      sharedTable: true,
      access: { read: [], write: [] },
    });
  expect(declare).toThrow('an entity with a period cannot have sharedTable');
});
