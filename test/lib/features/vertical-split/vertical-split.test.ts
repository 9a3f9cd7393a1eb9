import { beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  type DeclaredEntity,
  defineEntity,
  defineModel,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../../lib/define.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { engineCore } from '../../../kit/engine.ts';
import { operationsModel } from '../../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { openApp } from '../../../open-app.ts';
import { testStorage } from '../../../storage.ts';
import { entity, load, type Parts } from '../../define/validate/declarations.ts';

const access = { read: ['reader'], write: ['hr'] } as const;
const schema = z.object({
  shelf: z.string(),
  itemId: z.string(),
  name: z.string(),
  day: z.iso.date(),
  total: z.int32().optional(),
  text: z.string(),
  note: z.string().optional(),
});
const common = { schema, table: 'items', key: { partition: '{shelf}', row: 'item_{itemId}' }, access } as const;
const items = (over: Parts) => entity('items', { ...common, ...over });
const child = (parent: DeclaredEntity, over: Parts = {}) =>
  entity('remarks', {
    ...common,
    key: { partition: '{shelf}', row: 'item_{itemId}_{name}' },
    childOf: parent,
    ...over,
  });

describe('a declaration of split is rejected', () => {
  test.each<[Parts, RegExp]>([
    [
      { split: { 'two words': ['text'] } },
      /group name "two words" of split is not accepted\. Use 1 to 40 letters, a lower-case letter first/,
    ],
    [{ split: { texts: [] } }, /group "texts" of split has no field/],
    [{ split: { texts: ['none'] } }, /has the field "none", which the schema does not have/],
    [{ split: { texts: ['text'], notes: ['note', 'text'] } }, /"text" is in split twice/],
    [
      { split: { texts: ['itemId'] } },
      /"itemId" of the group "texts" is in the key, which needs fields that every write reads/,
    ],
    [
      { split: { texts: ['name'] }, indexes: { name: intraPartitionIndex({ row: 'name_{name}' }) } },
      /"name" of the group "texts" is in the key of the index "name"/,
    ],
    [
      {
        split: { texts: ['text'] },
        indexes: { name: interPartitionIndex({ table: 'byname', partition: '{name}', row: 'a', copies: ['text'] }) },
      },
      /"text" of the group "texts" is copied by the index "name"/,
    ],
    [{ split: { texts: ['text'] }, derived: { text: () => 'x' } }, /"text" of the group "texts" is derived/],
    [
      { split: { texts: ['day'] }, expiry: { days: 1, clock: 'day' } },
      /"day" of the group "texts" is set by the engine \(expiry\) at every write/,
    ],
    [
      {
        key: { partition: '{shelf}', row: '{day}_{itemId}' },
        split: { texts: ['text'] },
        period: { per: 'day', field: 'day', keep: 2 },
      },
      /it has a period, whose entities are one row each/,
    ],
    [
      { split: { texts: ['text'] }, key: { partition: '{shelf}', row: 'a!-{itemId}' } },
      /the row key a!-\{itemId\} of "items" in its table has a "!"/,
    ],
  ])('%#', (over, reason) => {
    expect(() => load(items(over))).toThrow(reason);
  });

  test('for a child, and for a group with the name of a child', () => {
    const parent = items({});
    expect(() => load(parent, child(parent, { split: { texts: ['text'] } }))).toThrow(
      /a child goes where its parent "items" goes, .* its row goes along\. Remove vertical split/,
    );
    const grouped = items({ split: { remarks: ['text'] } });
    expect(() => load(grouped, child(grouped))).toThrow(/"remarks" of split has the name of a child/);
  });

  test('if clients may write the rows', () => {
    const people = entity('people', {
      ...common,
      table: 'people',
      indexes: {
        name: interPartitionIndex({ table: 'byname', partition: '{name}', row: 'a', unique: true }),
        key: interPartitionIndex({ table: 'bykey', partition: '{itemId}', row: 'a', unique: true }),
      },
      access: { ...access, own: { claim: 'sub', index: 'name' } },
    });
    const own = { access: { ...access, own: { through: people, permissions: 'ra' } } };
    const granted = items({ ...own, key: { partition: '{itemId}', row: '{name}' }, split: { texts: ['text'] } });
    expect(() => load(people, granted)).toThrow(/nothing keeps up vertical split/);
  });
});

test('derived fields and conditions never see a group, so that they do not depend on what a write has read', () => {
  const seen: unknown[] = [];
  const { derived, indexes } = items({
    split: { texts: ['text'] },
    derived: { total: ({ text }: { text?: unknown }) => void seen.push(text) },
    indexes: { name: intraPartitionIndex({ row: 'name_{name}', when: ({ text }) => text === undefined }) },
  });
  derived.total?.({ text: 'x' });
  expect(seen).toEqual([undefined]);
  expect(indexes.name?.when?.({ text: 'x' })).toBe(true);
});

describe('the model guard', () => {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  const guard = (split: object) =>
    operationsModel.guardModel(engineCore.createEngine(storage), Object.values(deploy(items({ split }))), undefined);
  beforeEach(async () => {
    await storageTables.dropTable(storage, 'system');
    await storageTables.provision(storage, { tables: ['system'], queues: [], containers: [] });
  });

  test('accepts a split of stored entities and new fields of a group', async () => {
    await guard({});
    await guard({ texts: ['text'] });
    expect(await guard({ texts: ['note', 'text'] })).toEqual([]);
  });

  test.each([
    ['leaves its group', { texts: ['note'] }],
    ['moves to another group', { texts: ['note'], words: ['text'] }],
  ])('refuses that a field %s', async (_, split) => {
    await guard({ texts: ['text', 'note'] });
    await expect(guard(split)).rejects.toThrow(/the field text was in the group texts of split; its stored values/);
  });
});

test('the store has the fields of groups as optional ones', () => {
  const declared = defineEntity('items', { ...common, split: { texts: ['text', 'note'] } });
  const model = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [declared] });
  const { store } = openApp(import.meta.url, model);
  const get = () => store.items.get({ shelf: 'a', itemId: 'b' }, { include: ['texts'] });
  type Read = NonNullable<Awaited<ReturnType<typeof get>>>['values'];
  expectTypeOf<Read['text']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<Read['name']>().toEqualTypeOf<string>();
  // @ts-expect-error a create needs the required fields of a group
  void (() => store.items.create({ shelf: 'a', itemId: 'b', name: 'c', day: '2026-01-01' }));
  // @ts-expect-error no group has this name
  void (() => store.items.get({ shelf: 'a', itemId: 'b' }, { include: ['text'] }));
  // @ts-expect-error a field of a group is no filter
  void (() => store.items.range({ shelf: 'a' }, { where: { text: 'x' } }));
  // @ts-expect-error no field has this name
  void (() => defineEntity('items', { ...common, split: { texts: ['texts'] } }));
});
