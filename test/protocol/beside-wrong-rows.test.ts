import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineUnion, interPartitionIndex, RowkeyError, type Values } from '../../lib/index.ts';
import { deploy } from '../fixtures/deploy.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces } from '../kit/define.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { operationsCheck } from '../kit/operations.ts';
import { openWorld, rowsOf } from '../world.ts';

/** A command over many rows goes on beside a wrong one, which it names or takes along as it is. */

const access = { read: [], write: [] };
const { goods, pets } = deploy(
  defineEntity('goods', {
    schema: z.object({
      site: z.string(),
      id: z.string(),
      amount: z.number(),
      doc: z.json().optional(),
      note: z.string().optional(),
      day: z.iso.date().optional(),
    }),
    table: 'goods',
    key: { partition: '{site}', row: '{id}' },
    version: 2,
    upgrades: { 1: ({ price, ...others }) => ({ ...others, amount: Number((price as string).trim()) }) },
    large: ['note'],
    indexes: {
      amount: interPartitionIndex({ table: 'goodsbyamount', partition: '{amount}', row: '{site}_{id}' }),
      id: interPartitionIndex({ table: 'goodsbyid', partition: '{id#}', row: '{site}_{id}', copies: 'keys' }),
    },
    expiry: { days: 30, clock: 'day' },
    access,
  }),
  defineUnion('pets', {
    schema: z.object({ site: z.string(), id: z.string(), day: z.iso.date().optional() }),
    kinds: { cat: z.object({ amount: z.number() }), dog: z.object({ amount: z.number() }) },
    table: 'pets',
    key: { partition: '{site}', row: '{id}' },
    expiry: { days: 30, clock: 'day' },
    access,
  }),
);
const world = await openWorld(import.meta.url, [goods, pets]);
const { engine } = world;

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
/** By the id of the row. Those after the first four keep their entity from being handled. */
const WRONG: Record<string, Values> = {
  'b-type': { amount: 'lots' },
  'c-deep': { doc: nested(150) },
  'd-deeper': { doc: nested(8_000) },
  'e-blob': { Blob_note: '{"blob":"none","length":5,"sha256":"x"}' },
  'f-no-blob': { Blob_note: 5 },
  'g-key': { id: 5 },
  'h-other': { id: 'z-good' },
  'i-old': { EntityVersion: 1 },
};
const KEPT = ['g-key', 'h-other', 'i-old'];
const IDS = ['a-good', ...Object.keys(WRONG), 'z-good'];

/** Stores good rows around the wrong ones. */
async function store(site: string) {
  for (const id of IDS) await engineWrite.createEntity(engine, goods, { site, id, amount: 1 });
  await world.settle();
  for (const [id, wrong] of Object.entries(WRONG))
    await world.storage.table('goods').updateEntity({ partitionKey: site, rowKey: id, ...wrong }, 'Merge');
}
async function left(site: string, type = 'goods') {
  const rows = await rowsOf(world.storage, type);
  return rows.filter(({ partitionKey, EntityType }) => partitionKey === site && EntityType === type);
}
const markIn = (site: string, id: string) => engineRead.markOf(definePlaces.addressOf(goods, { site, id }));

test('the consistency check names each', { tags: ['slow'] }, async () => {
  await store('Checked');
  const { findings } = await operationsCheck.verifyPage(engine, goods, {
    top: 100,
    repair: true,
    patience: 0,
    maxTransactions: 10_000,
  });
  const found = findings.filter(({ partition }) => partition === 'Checked');
  const deep = 'The field "doc" is nested more than 100 levels deep.';
  expect(Object.fromEntries(found.map(({ row, kind, reason }) => [row, reason ?? kind]))).toEqual({
    'b-type': 'The field "amount" must be number.',
    'c-deep': deep,
    'd-deeper': deep,
    'e-blob': 'lost-blob',
    'f-no-blob': 'The field "note" must be string.',
    'g-key': 'unreachable',
    'h-other': 'unreachable',
    'i-old': 'The row cannot be processed: An entity of goods cannot be upgraded from version 1: TypeError.',
  });
});

test('a scan and a list return each, with null in place of what cannot be read', async () => {
  await store('Listed');
  const { items } = await engineRead.readEntities(engine, goods, { site: 'Listed' }, { top: 100 });
  expect(items).toHaveLength(IDS.length);
  const scanned = (await engineRead.scanEntities(engine, goods, { top: 100, marksLost: true })).items;
  const old = scanned.find(({ site, id }) => site === 'Listed' && id === 'i-old');
  expect(JSON.parse(JSON.stringify(old))).toMatchObject({ site: 'Listed', id: 'i-old', amount: null });
  await engineWrite.deleteRange(engine, goods, { site: 'Listed' }, { all: true });
});

test('a batch writes the entities beside them', async () => {
  await store('Written');
  const puts = IDS.map((id) => ({ put: { site: 'Written', id, amount: 2 } }));
  const outcomes = await engineWrite.writeBatch(engine, goods, puts);
  const refused = IDS.filter((_, at) => outcomes[at] instanceof RowkeyError);
  // No write reaches an entity of which the row has another key, or of which the former values are unknown.
  expect(refused).toEqual(['g-key', 'i-old']);
});

test('a range delete deletes the others, and no entity outside of the range', async () => {
  await store('Deleted');
  const { deleted, failed } = await engineWrite.deleteRange(engine, goods, { site: 'Deleted' }, { from: 'a', to: 'y' });
  expect(deleted).toBe(IDS.length - 1 - KEPT.length);
  expect((await left('Deleted')).map(({ rowKey }) => rowKey)).toEqual([...KEPT, 'z-good']);
  for (const id of KEPT)
    expect(failed.map(({ message }) => message)).toContain(
      `A row of goods is no entity of its declaration (table goods, row ${markIn('Deleted', id)}). npm run verify -- goods finds its key.`,
    );
});

test('expiry deletes the others, and says which it cannot delete', { tags: ['slow'] }, async () => {
  for (const { partitionKey = '', rowKey = '' } of await rowsOf(world.storage, 'goods'))
    await world.storage.table('goods').deleteEntity(String(partitionKey), String(rowKey));
  await store('Expired');
  const late = { ...engine, now: () => Date.now() + 40 * baseValues.DAY_MS };
  const { failed, reasons } = await featureUpkeep.expireEntities(late, goods, { until: Infinity });
  await world.settle();
  const kept = (await left('Expired')).map(({ rowKey }) => rowKey);
  expect(kept).toEqual(['g-key', 'h-other', 'i-old']);
  expect(failed).toBe(2);
  for (const id of ['g-key', 'i-old'])
    expect(reasons).toContainEqual(expect.stringContaining(`goods ${markIn('Expired', id)}: `));
});

test('an entity of an unknown kind expires and is deleted like the others', async () => {
  const table = world.storage.table('pets');
  const storePets = async (site: string) => {
    for (const id of ['1', '2', '3'])
      await engineWrite.createEntity(engine, pets, { site, id, kind: 'cat', amount: 1 });
    await table.updateEntity({ partitionKey: site, rowKey: '2', kind: 'boat' }, 'Merge');
    await table.updateEntity({ partitionKey: site, rowKey: '3', kind: 5 }, 'Merge');
  };
  await storePets('Expired');
  const late = { ...engine, now: () => Date.now() + 40 * baseValues.DAY_MS };
  expect(await featureUpkeep.expireEntities(late, pets, { until: Infinity })).toMatchObject({ deleted: 3, failed: 0 });
  await storePets('Deleted');
  expect(await engineWrite.deleteRange(engine, pets, { site: 'Deleted' }, { all: true })).toMatchObject({
    deleted: 3,
    failed: [],
  });
});
