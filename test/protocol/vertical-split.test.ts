import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, intraPartitionIndex, type Values } from '../../lib/index.ts';
import { allItems, allPages } from '../all-pages.ts';
import { collectAllOrphans } from '../collect-all-orphans.ts';
import { costOf } from '../cost-of.ts';
import { interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { testFurtherRows } from '../further-rows-contract.ts';
import { baseValues } from '../kit/base.ts';
import { defineCodec, definePlaces, type Entity, type Finding } from '../kit/define.ts';
import { engineRead, engineTransfer, engineWrite, type Position } from '../kit/engine.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { type Action, storageAccounts, storageKeys, storageRows } from '../kit/storage.ts';
import { openWorld, rowsOf } from '../world.ts';
import { creating, deleting, patching, replacing, testWrites, type WriteSubject } from '../write-contract.ts';

/** An entity whose rarely read fields are in rows of their own. */

const access = { read: ['hr'], write: ['hr'] } as const;
const schema = z.object({
  office: z.string(),
  assetId: z.string(),
  name: z.string(),
  label: z.string().optional(),
  price: z.number(),
  stock: z.int32().optional(),
  description: z.string().max(30_000).optional(),
  specification: z.string(),
  contract: z.string().max(1_000_000).optional(),
  secret: z.string().optional(),
});
const ofAssets = {
  schema,
  table: 'assets',
  key: { partition: '{office}', row: 'asset_{assetId}' },
  access: { ...access, restricted: { secret: ['hr'] } },
} as const;
const name = intraPartitionIndex({ row: 'name_{name}_{assetId}' });
const split = { text: ['description', 'specification'], legal: ['contract', 'secret'] } as const;
const declared = defineEntity('assets', {
  ...ofAssets,
  split,
  large: ['contract'],
  encrypted: ['secret'],
  indexes: {
    name,
    stocked: interPartitionIndex({
      table: 'assetsbystock',
      partition: '{stock}',
      row: '{office}_{assetId}',
      copies: 'keys',
      when: ({ specification, price }) => specification === undefined && Number(price) >= 0,
    }),
    label: indexEntity({ row: 'label_{label}', holds: '{assetId}' }),
  },
  archive: { table: 'formerassets' },
  movable: ['office'],
});
const declaredParts = defineEntity('parts', {
  schema: z.object({ office: z.string(), assetId: z.string(), part: z.string() }),
  table: 'assets',
  key: { partition: '{office}', row: 'asset_{assetId}_{part}' },
  childOf: declared,
  access,
});
const { assets, parts } = deploy(declared, declaredParts);
/** The same rows as they were stored before the split was declared. */
const { assets: unsplit } = deploy(defineEntity('assets', ofAssets));
const former = assets.archive as Entity;
const every = Object.keys(assets.columns);

const world = await openWorld(import.meta.url, [assets, parts]);

let counter = 0;
function asset(over: Values = {}): Values {
  counter += 1;
  const assetId = `A${counter}`;
  const texts = { description: `About ${assetId}`, specification: `Made of ${assetId}` };
  return { office: 'Oslo', assetId, name: `Name ${assetId}`, price: 1.5, ...texts, ...over };
}
const create = (one: Values, entity: Entity = assets) => engineWrite.createEntity(world.engine, entity, one);
const selectOf = (entity: Entity, groups: readonly string[]) =>
  defineCodec.toSelection(entity, undefined, { groups })[entity.name];
const read = (one: Values, groups: readonly string[] = [], entity: Entity = assets) =>
  engineRead.readEntity(world.engine, entity, one, { select: selectOf(entity, groups) });
const whole = async (one: Values, entity: Entity = assets) =>
  engineWrite.toPlain(world.engine, entity, (await read(one, Object.keys(entity.split), entity)).values);
const without = ({ description: _, specification: __, contract: ___, secret: ____, ...rest }: Values) => rest;
const rowOf = (one: Values, group: string) => ({
  ...definePlaces.addressOf(assets, one),
  row: `asset_${one.assetId}!-${group}`,
});
async function stored(one: Values, group?: string, entity: Entity = assets) {
  const { partition, row } = definePlaces.addressOf(entity, one);
  const rows = await rowsOf(world.storage, entity.table);
  const key = group === undefined ? row : `${row}!-${group}`;
  return rows.find(({ partitionKey, rowKey }) => partitionKey === partition && rowKey === key);
}
const verify = async (repair: boolean | 'safe'): Promise<readonly Finding[]> =>
  (
    await operationsCheck.verifyPage(world.engine, assets, {
      top: 1_000,
      repair,
      patience: 10,
      maxTransactions: 100_000,
    })
  ).findings;

const subject: WriteSubject = {
  world: () => world,
  entity: assets,
  what: 'Split entity',
  newcomer: (name) => asset({ office: name, contract: 'Signed' }),
  whole,
};

describe('a read', () => {
  test('leaves the groups out, and returns one that is asked for, in one transaction each', async () => {
    const one = asset({ contract: 'Signed', secret: '1234' });
    await create(one);
    expect((await read(one)).values).toEqual(without(one));
    for (const field of [...split.text, ...split.legal]) expect(await stored(one)).not.toHaveProperty(field);
    expect(await stored(one, 'text')).toMatchObject(baseValues.pick(one, split.text));
    expect((await read(one, ['text'])).values).toEqual({ ...without(one), ...baseValues.pick(one, split.text) });
    expect(await whole(one)).toEqual(one);
    expect(await costOf(() => read(one))).toBe(1);
    expect(await costOf(() => read(one, ['text', 'legal']))).toBe(1);
    const selected = () => engineRead.readEntity(world.engine, assets, one, { select: ['price', 'description'] });
    expect((await selected()).values).toEqual(baseValues.pick(one, ['price', 'description']));
    expect(await costOf(selected)).toBe(1);
    expect(await storageAccounts.explain(() => read(one))).toMatchObject([
      { read: 'row', row: `asset_${one.assetId}` },
    ]);
  });

  test('of a range leaves them out too, and reads the selected ones in the same query', async () => {
    const all = Array.from({ length: 7 }, (_, index) => asset({ office: 'Range', contract: `${index}` }));
    for (const one of all) await create(one);
    const list = (top: number, select?: string[], after?: Position) =>
      engineRead.readEntities(world.engine, assets, { office: 'Range' }, { top, select, after, from: 'A', to: 'A' });
    const shown = all.map((one) => without(one));
    expect((await list(100, Object.keys(without(all[0] ?? {})))).items).toEqual(shown);
    const selected = all.map((one) => baseValues.pick(one, ['assetId', 'description']));
    expect((await list(100, ['assetId', 'description'])).items).toEqual(selected);
    expect(await costOf(() => list(100, ['assetId', 'description']))).toBe(1);
    const readPages = async () => {
      const pages = await allPages((after: Position | undefined) => list(3, ['assetId', 'description'], after));
      expect(pages.map(({ items }) => items.length)).toEqual([3, 3, 1]);
      expect(pages.flatMap(({ items }) => items)).toEqual(selected);
    };
    expect(await costOf(readPages)).toBe(3);
    expect((await engineRead.scanEntities(world.engine, assets, { top: 1_000 })).items).toContainEqual(
      expect.objectContaining({ office: 'Range', description: all[0]?.description }),
    );
  });

  test('beside keys that begin with its key does not mix entities', async () => {
    const [one, other] = [asset({ office: 'Mixed', assetId: 'A' }), asset({ office: 'Mixed', assetId: 'A B' })];
    const third = asset({ office: 'Mixed', assetId: 'A!-text' });
    for (const each of [one, other, third]) await create(each);
    for (const each of [one, other, third]) expect(await whole(each)).toEqual(each);
    for (const top of [1, 2, 3]) {
      const range = { from: 'A', to: 'A', top, select: every };
      const items = await allItems((after: Position | undefined) =>
        engineRead.readEntities(world.engine, assets, { office: 'Mixed' }, { ...range, after }),
      );
      expect(items).toEqual([one, other, third]);
    }
  });

  test('of one group reads no other group, and takes a second query if other keys fill the first', async () => {
    const one = asset({ office: 'Crowded', assetId: 'A', contract: 'Signed', secret: '1234' });
    await create(one);
    const readText = () => read(one, ['text']);
    expect(await storageAccounts.explain(readText)).toMatchObject([
      { filter: expect.stringContaining("EntityType ne 'assets.legal'") },
    ]);
    expect(JSON.stringify(await storageAccounts.explain(readText))).not.toContain(' or ');
    const change = async (kind: 'upsert' | 'delete') => {
      for (const letter of ['x', 'y']) {
        const actions = Array.from({ length: 100 }, (_, index): Action => {
          return { kind, row: `asset_A ${letter}${index}`, properties: { EntityType: 'others' } };
        });
        await storageRows.submit(world.storage, { table: assets.table, partition: 'Crowded', actions });
      }
    };
    await change('upsert');
    expect((await readText()).values).toEqual({ ...without(one), ...baseValues.pick(one, split.text) });
    expect(await whole(one)).toEqual(one);
    expect(await costOf(readText)).toBe(2);
    await change('delete');
  });

  test('includes groups and children in one query', async () => {
    const one = asset({ office: 'Children' });
    await create(one);
    await create(asset({ office: 'Children', assetId: `${one.assetId} 2` }));
    const part = { office: 'Children', assetId: one.assetId, part: 'lid' };
    await create(part, parts);
    const get = (groups: readonly string[]) =>
      engineRead.readWithChildren(world.engine, assets, one, [parts], {
        select: defineCodec.toSelection(assets, undefined, { groups }),
      });
    expect((await get([])).values).toEqual({ ...without(one), parts: [part] });
    expect((await get(['text'])).values).toEqual({ ...one, parts: [part] });
    expect(await costOf(() => get(['text']))).toBe(1);
  });

  test('through an index has no group, unless it is selected from the entities themselves', async () => {
    const one = asset({ office: 'Indexed', label: 'L', stock: 4711 });
    await create(one);
    const { stocked, label } = assets.indexes;
    const named = { office: 'Indexed', name: one.name };
    expect(await engineRead.readByCopy(world.engine, assets, name, { ...named, assetId: one.assetId })).toEqual(
      without(one),
    );
    const byName = (select?: string[]) =>
      engineRead.readByCopies(world.engine, assets, name, named, { top: 9, select });
    expect((await byName()).items).toEqual([without(one)]);
    expect((await byName(['description'])).items).toMatchObject([{ description: one.description }]);
    const byStock = await engineRead.readByCopies(
      world.engine,
      assets,
      stocked,
      { stock: 4711 },
      { top: 9, select: ['price'] },
    );
    expect(byStock.items).toMatchObject([{ price: 1.5 }]);
    const labelled = { office: 'Indexed', label: 'L' };
    expect(
      (await engineRead.readByList(world.engine, assets, label, labelled, { top: 9, select: every })).items,
    ).toEqual([one]);
  });

  test('of a range filters by other fields, in the same query, and never by a field of a group', async () => {
    const all = Array.from({ length: 4 }, (_, index) => asset({ office: 'Filtered', price: index }));
    for (const one of all) await create(one);
    const list = (filter: Values, select: string[]) => {
      const where = defineCodec.compileFilter(assets, filter);
      return engineRead.readEntities(
        world.engine,
        assets,
        { office: 'Filtered' },
        { top: 9, where, select, from: 'A', to: 'A' },
      );
    };
    const cheap = { price: { lt: 2 } };
    const selected = all.slice(0, 2).map((one) => baseValues.pick(one, ['assetId', 'description']));
    expect((await list(cheap, ['assetId', 'description'])).items).toEqual(selected);
    expect(await costOf(() => list(cheap, ['assetId', 'description']))).toBe(1);
    expect(await costOf(() => list(cheap, ['assetId']))).toBe(1);
    expect(() => defineCodec.compileFilter(assets, { description: 'x' })).toThrow(/further row/);
  });
});

describe('a write', () => {
  test('touches only the rows of what it changes', async () => {
    const one = asset({ office: 'Touched', contract: 'Signed' });
    const written = async (work: () => Promise<unknown>) => {
      const steps = await storageAccounts.explain(work);
      const actions = steps.flatMap((step) => ('write' in step && step.write === 'rows' ? step.actions : []));
      const kinds = steps.map((step) => ('read' in step ? step.read : step.write));
      return { rows: actions.map(({ kind, row }) => `${kind} ${row}`).filter((text) => !/name_/.test(text)), kinds };
    };
    await create(one);
    const row = `asset_${one.assetId}`;
    const patch = (change: Values) => written(() => engineWrite.patchEntity(world.engine, assets, one, change));
    expect(await patch({ price: 2 })).toEqual({ rows: [`replace ${row}`], kinds: ['row', 'rows'] });
    const text = [`replace ${row}`, `upsert ${row}!-text`];
    expect(await patch({ description: 'New' })).toEqual({ rows: text, kinds: ['rows', 'rows'] });
    expect(await patch({ contract: null })).toEqual({
      rows: [`replace ${row}`, `delete ${row}!-legal`],
      kinds: ['rows', 'rows'],
    });
    expect(await patch({ description: one.description })).toEqual({ rows: [], kinds: ['rows'] });
    expect(await patch({ price: one.price })).toEqual({ rows: [], kinds: ['row'] });
    const replace = (change: Values) =>
      written(() => engineWrite.replaceEntity(world.engine, assets, one, { ...one, ...change }));
    expect(await replace({ price: 9 })).toEqual({ rows: [`replace ${row}`], kinds: ['rows', 'rows'] });
    expect(await replace({})).toEqual({ rows: [], kinds: ['rows'] });
  });

  test('of another field keeps the groups', async () => {
    const one = asset({ contract: 'Signed', secret: '1234' });
    await create(one);
    const before = await stored(one, 'text');
    const { etag, values } = await engineWrite.patchEntity(world.engine, assets, one, { price: 2 });
    expect(values).toEqual({ ...without(one), price: 2 });
    expect(await stored(one, 'text')).toEqual(before);
    expect(await whole(one)).toEqual({ ...one, price: 2 });
    expect((await read(one)).etag).toBe(etag);
  });

  test('of a group changes the ETag of the entity', async () => {
    const one = asset();
    const { etag } = await create(one);
    await engineWrite.patchEntity(world.engine, assets, one, { description: 'Other' });
    const stale = engineWrite.patchEntity(world.engine, assets, one, { price: 3 }, { ifMatch: etag });
    await expect(stale).rejects.toMatchObject({ code: 'etag-mismatch' });
    await expect(engineWrite.deleteEntity(world.engine, assets, one, { ifMatch: etag })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    expect(await whole(one)).toEqual({ ...one, description: 'Other' });
  });

  test('validates a group when it writes the group', async () => {
    const { specification: _, ...one } = asset();
    await expect(create(one)).rejects.toMatchObject({ code: 'invalid-input', field: 'specification' });
    const valid = asset();
    await create(valid);
    await engineWrite.patchEntity(world.engine, assets, valid, { price: 4 });
    await expect(engineWrite.patchEntity(world.engine, assets, valid, { specification: null })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'specification',
    });
    const { values } = await engineWrite.patchEntity(world.engine, assets, valid, { description: null });
    expect(values).toEqual({ ...without(valid), price: 4, specification: valid.specification });
    await expect(create(asset({ assetId: 'x'.repeat(505) }))).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'assetId',
    });
  });

  test('creates, replaces and deletes whole entities, alone and in a batch', async () => {
    const [one, other] = [asset({ contract: 'c'.repeat(300_000) }), asset()];
    const batch = async (...actions: Parameters<typeof engineWrite.writeBatch>[2]) =>
      (await engineWrite.writeBatch(world.engine, assets, actions)).map((each) =>
        'outcome' in each ? each.outcome : each.code,
      );
    expect(await batch({ put: one }, { create: other })).toEqual(['created', 'created']);
    const next = { ...one, contract: undefined, description: 'Next' };
    expect(await batch({ put: next }, { put: other })).toEqual(['stored', 'unchanged']);
    const key = baseValues.pick(other, assets.keyFields);
    expect(
      await batch(
        { patch: { ...key, price: 3 } },
        { patch: { ...baseValues.pick(one, assets.keyFields), label: 'L' } },
      ),
    ).toEqual(['stored', 'stored']);
    expect(await whole(other)).toEqual({ ...other, price: 3 });
    expect(await batch({ patch: { ...key, description: null } })).toEqual(['stored']);
    const { description: _, ...described } = other;
    expect(await whole(other)).toEqual({ ...described, price: 3 });
    expect(await stored(one, 'legal')).toBeUndefined();
    expect(await whole(one)).toEqual(JSON.parse(JSON.stringify({ ...next, label: 'L' })));
    const put = await engineWrite.putEntity(world.engine, assets, other, { ...other, price: 7 });
    expect(put).toMatchObject({ isCreated: false, values: { ...other, price: 7 } });
    await engineWrite.deleteEntity(world.engine, assets, one);
    await engineWrite.deleteEntity(world.engine, assets, other);
    await world.settle();
    for (const group of [undefined, 'text', 'legal'])
      for (const each of [one, other]) expect(await stored(each, group)).toBeUndefined();
  });

  test('deletes a range with its groups', async () => {
    const all = Array.from({ length: 3 }, () => asset({ office: 'Emptied', contract: 'c'.repeat(300_000) }));
    for (const one of all) await create(one);
    const deleted = await engineWrite.deleteRange(world.engine, assets, { office: 'Emptied' }, { all: true });
    expect(deleted).toMatchObject({ deleted: 3, failed: [] });
    await world.settle();
    const left = (await rowsOf(world.storage, 'assets')).filter(({ partitionKey }) => partitionKey === 'Emptied');
    expect(left.filter(({ rowKey }) => !/^(name|label)_/.test(String(rowKey)))).toEqual([]);
  });

  test('stores what was stored before the split was declared', async () => {
    const one = asset({ office: 'Legacy', contract: 'Signed' });
    await create(one, unsplit);
    expect((await read(one)).values).toEqual(without(one));
    expect(await whole(one)).toEqual(one);
    expect((await read(one, ['text'])).values).toEqual({ ...without(one), ...baseValues.pick(one, split.text) });
    await engineWrite.patchEntity(world.engine, assets, one, { price: 5 });
    expect(await stored(one, 'text')).toMatchObject(baseValues.pick(one, split.text));
    expect(await stored(one)).not.toHaveProperty('description');
    expect(await whole(one)).toEqual({ ...one, price: 5 });
  });

  test('upgrades the whole entity', async () => {
    const one = asset({ office: 'Upgraded' });
    await create(one);
    const { assets: next } = deploy(
      defineEntity('assets', {
        ...ofAssets,
        split,
        indexes: { name },
        version: 2,
        upgrades: { 1: (values) => ({ ...values, label: `L ${values.description}` }) },
      }),
    );
    const label = `L ${one.description}`;
    expect((await read(one, undefined, next)).values).toEqual({ ...without(one), label });
    const listed = await engineRead.readEntities(
      world.engine,
      next,
      { office: 'Upgraded' },
      { top: 9, select: ['label'] },
    );
    expect(listed.items).toEqual([{ label }]);
    await engineWrite.patchEntity(world.engine, next, one, { price: 6 });
    expect(await whole(one, next)).toEqual({ ...one, label, price: 6 });
    expect(await costOf(() => read(one, undefined, next))).toBe(1);
    await engineWrite.deleteEntity(world.engine, next, one);
  });

  test('is read without its groups by a later version without a split', async () => {
    const one = asset({ office: 'Joined' });
    await create(one);
    const { assets: next } = deploy(
      defineEntity('assets', { ...ofAssets, version: 2, upgrades: { 1: (values) => values } }),
    );
    expect((await engineRead.readEntity(world.engine, next, one)).values).toEqual(without(one));
  });

  test('encrypts, rewraps and keeps texts in blobs for a group', async () => {
    const one = asset({ office: 'Sealed', secret: 'Top', contract: 'c'.repeat(400_000) });
    await create(one);
    expect(await stored(one, 'legal')).toMatchObject({ secret: expect.any(Uint8Array) });
    await storageKeys.rotateLocalKey(world.keyFile);
    expect(await operationsModel.rewrapEntities(world.engine, assets, { top: 1_000 })).toMatchObject({ failed: 0 });
    expect(await operationsModel.rewrapEntities(world.engine, assets, { top: 1_000 })).toMatchObject({
      rewrapped: 0,
      failed: 0,
    });
    const later = { ...world.engine, now: () => Date.now() + 3 * 86_400_000 };
    await collectAllOrphans(later, [assets]);
    expect(await whole(one)).toEqual(one);
  });
});

testWrites(subject, {
  'a create': creating(assets),
  'a patch of a field': patching(assets, { price: 2 }),
  'a patch of a group': patching(assets, { description: 'Changed', price: 2 }),
  'the end of a group': patching(assets, { contract: null, price: 2 }),
  'a replace': replacing(assets, (one) => ({ ...one, description: 'Replaced', contract: undefined, price: 3 })),
  'a delete': deleting(assets),
});

testFurtherRows(subject, {
  archive: former,
  entities: [assets, parts],
  elsewhere: { office: 'There' },
  long: (office) => asset({ office, contract: 'c'.repeat(300_000), secret: 'S' }),
  together: (text) => ({ label: text, description: text }),
  alone: (number) => ({ stock: number }),
  further: 'text',
  verify,
});

describe('an entity that lost a row', () => {
  test('is in no list without the fields of the row, and is neither archived nor moved', async () => {
    const one = asset({ office: 'Partial', contract: 'Signed' });
    await create(one);
    await world.storage.table('assets').deleteEntity('Partial', rowOf(one, 'text').row);
    const list = (select?: readonly string[]) =>
      engineRead.readEntities(world.engine, assets, one, { top: 10, select });
    const lost = { code: 'needs-repair' };
    await expect(list(['name', 'description'])).rejects.toMatchObject(lost);
    await expect(engineRead.scanEntities(world.engine, assets, { top: 1_000 })).rejects.toMatchObject(lost);
    await expect(engineTransfer.requestArchive(world.engine, assets, one)).rejects.toMatchObject(lost);
    await expect(engineTransfer.requestMove(world.engine, assets, one, { office: 'Elsewhere' })).rejects.toMatchObject(
      lost,
    );
    // What is stored elsewhere can be read.
    expect((await list()).items).toEqual([without(one)]);
    expect((await list(['name', 'contract'])).items).toMatchObject([{ name: one.name }]);
    await engineWrite.deleteEntity(world.engine, assets, one);
    await world.settle();
    expect((await list(['description'])).items).toEqual([]);
  });
});

describe('the consistency check', () => {
  test('finds and repairs further rows that are missing, stale or left over', { tags: ['slow'] }, async () => {
    const [lost, changed, moved] = [
      asset({ office: 'Checked' }),
      asset({ office: 'Checked' }),
      asset({ office: 'Checked' }),
    ];
    for (const one of [lost, changed, moved]) await create(one);
    const table = world.storage.table('assets');
    await table.deleteEntity('Checked', rowOf(lost, 'text').row);
    await table.updateEntity(
      { partitionKey: 'Checked', rowKey: rowOf(changed, 'text').row, WriteId: 'other' },
      'Merge',
    );
    await table.createEntity({
      partitionKey: 'Checked',
      rowKey: 'asset_nobody!-text',
      EntityType: 'assets.text',
      WriteId: 'none',
    });
    await table.deleteEntity('Checked', `asset_${moved.assetId}`);
    await expect(read(lost, ['text'])).rejects.toMatchObject({ code: 'needs-repair' });
    await expect(read(changed, ['text'])).rejects.toMatchObject({ code: 'needs-repair' });
    expect((await read(lost)).values).toEqual(without(lost));
    await expect(engineWrite.patchEntity(world.engine, assets, lost, { description: 'x' })).rejects.toMatchObject({
      code: 'needs-repair',
    });
    await engineWrite.patchEntity(world.engine, assets, lost, { price: 8 });
    const expected = [
      { kind: 'missing', of: 'text', row: rowOf(lost, 'text').row },
      { kind: 'stale', of: 'text', row: rowOf(changed, 'text').row },
      { kind: 'orphaned', of: 'text', row: rowOf(moved, 'text').row },
      { kind: 'orphaned', of: 'text', row: 'asset_nobody!-text' },
    ].map((finding) => expect.objectContaining({ ...finding, repaired: true }));
    // Only the copy of the entity that was deleted by hand is mended without losing a value.
    const safe = Map.groupBy(await verify('safe'), ({ of }) => of);
    expect(safe.get('name')).toMatchObject([{ kind: 'orphaned', repaired: true }]);
    expect(new Set(safe.get('text')?.map(({ kind, repaired }) => `${kind} ${repaired}`))).toEqual(
      new Set(['missing false', 'stale false', 'orphaned false']),
    );
    const found = await verify(true);
    expect(found).toHaveLength(expected.length);
    expect(found).toEqual(expect.arrayContaining(expected));
    expect(await verify(false)).toEqual([]);
    const { specification: _, description: __, ...left } = lost;
    expect(await whole(lost)).toEqual({ ...left, price: 8 });
    expect(await whole(changed)).toEqual(changed);
    expect(await stored(moved, 'text')).toBeUndefined();
  });

  test('a row that is lost while a write removes it does not stop the write', async () => {
    const one = asset({ office: 'Vanished', contract: 'Signed' });
    await create(one);
    const vanish = () => world.storage.table('assets').deleteEntity('Vanished', rowOf(one, 'legal').row);
    const engine = world.engineThrough(interruptedHttpClient(2, vanish));
    await engineWrite.patchEntity(engine, assets, one, { contract: null, description: 'Kept' });
    const { contract: _, ...left } = one;
    expect(await whole(one)).toEqual({ ...left, description: 'Kept' });
  });
});
