import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { linkModel } from '../../../lib/define/define-model.ts';
import {
  type DeclaredEntity,
  defineEntity,
  defineModel,
  defineUnion,
  indexEntity,
  interPartitionIndex,
} from '../../../lib/define.ts';
import { linkedEntities } from '../../fixtures/deploy.ts';
import type { Entity } from '../../kit/define.ts';
import { featureUpkeep } from '../../kit/features.ts';
import type { Internal } from '../../kit/internal.ts';

const roles = { roles: ['reader', 'hr', 'operator'], operatorRole: 'operator' } as const;

/** A pet with an index by name in a table of names, and with an archive. */
const pet = (name: 'cats' | 'dogs', tables: { table?: string; names?: string; archive?: string } = {}) =>
  defineEntity(name, {
    schema: z.object({ home: z.string(), id: z.string(), name: z.string() }),
    table: tables.table ?? name,
    key: { partition: '{home}', row: `${name}_{id}` },
    indexes: {
      name: interPartitionIndex({
        table: tables.names ?? `${name}byname`,
        partition: '{name#}',
        row: '{name}',
        unique: true,
      }),
    },
    archive: { table: tables.archive ?? `former${name}` },
    access: { read: [], write: [] },
  });

test('a model lists its entities by name and in the order of the declaration, also if two share a table', () => {
  const { entities, list } = defineModel({
    ...roles,
    entities: [pet('cats', { table: 'pets' }), pet('dogs', { table: 'pets' })],
  });
  expect(list.map(({ name }) => name)).toEqual(['cats', 'dogs']);
  expect(list).toEqual([entities.cats, entities.dogs]);
  expectTypeOf<keyof typeof entities>().toEqualTypeOf<'cats' | 'dogs'>();
  expect(Object.keys(entities)).toEqual(['cats', 'dogs']);
  expect('constructor' in entities).toBe(false);
});

const common = {
  schema: z.object({ city: z.string(), id: z.string().regex(/^\d+$/), at: z.string(), ref: z.string().optional() }),
  table: 'things',
  access: { read: [], write: [] },
} as const;
const things = defineEntity('things', {
  ...common,
  key: { partition: '{city}', row: 'id_{id}' },
  archive: { table: 'oldthings' },
});
const parts = defineEntity('parts', { ...common, key: { partition: '{city}', row: 'id_{id}_{at}' }, childOf: things });
const copying = (name: string) =>
  defineEntity(name, {
    ...common,
    schema: common.schema.extend({ thingCount: z.int32().optional(), copy: z.string().optional() }),
    key: { partition: '{city}', row: name },
    counts: name === 'mayor' ? { thingCount: things } : {},
    denormalized: { ref: { source: things, by: 'id', copies: { copy: ({ at }) => at } } },
  });
const mayor = copying('mayor');

describe('the entities of a model', () => {
  test('refer to each other in both directions', () => {
    const { list, entities } = defineModel({ ...roles, entities: [parts, mayor, things] });
    const [child, mayors, linked] = list;
    expect(entities.things).toBe(linked);
    expect(child?.childOf).toBe(linked);
    expect(linked?.children).toEqual([child]);
    expect(linked?.archive?.children.map(({ name, table }) => [name, table])).toEqual([['parts', 'oldthings']]);
    expect(mayors?.counts.thingCount).toBe(linked);
    expect(linked?.countedBy.map(({ target, field }) => [target(), field])).toEqual([[mayors, 'thingCount']]);
    expect(linked?.dependents).toEqual([mayors?.denormalized.ref]);
    expect(linked?.dependents.map(({ source, target }) => [source, target()])).toEqual([[linked, mayors]]);
  });

  test('may count an entity that a function returns, whatever the name of the function', () => {
    const schema = common.schema.extend({ thingCount: z.int32().optional() });
    const key = { partition: '{city}', row: 'city' } as const;
    const counting = defineEntity('cities', { ...common, schema, key, counts: { thingCount: () => things } });
    const { entities } = defineModel({ ...roles, entities: [counting, things] });
    expect(entities.cities.counts.thingCount).toBe(entities.things);
  });

  test('have no references to entities of another model', () => {
    defineModel({ ...roles, entities: [parts, mayor, things] });
    const entities = linkedEntities(defineModel({ ...roles, entities: [things] }));
    const { children, dependents, countedBy } = entities.things;
    expect({ children, dependents, countedBy }).toEqual({ children: [], dependents: [], countedBy: [] });
  });

  test('have another type than the result of defineEntity', () => {
    expectTypeOf(things).not.toExtend<Entity>();
    const model = defineModel({ ...roles, entities: [things] });
    expectTypeOf(linkedEntities(model).things).toExtend<Entity>();
    expectTypeOf(model.entities.things).toEqualTypeOf(things);
  });
});

describe('a model is rejected', () => {
  const clients = (name: string) => {
    const holder = interPartitionIndex({ table: 'byholder', partition: '{id#}', row: '{id}', unique: true });
    const own = { claim: 'sub', index: 'holder' } as const;
    const key = { partition: '{city}', row: '{id}' } as const;
    const holders = defineEntity('holders', {
      ...common,
      table: 'holders',
      key,
      indexes: { holder },
      access: { ...common.access, own },
    });
    const access = { ...common.access, own: { through: holders, permissions: 'ra' } };
    const notes = defineEntity(name, {
      ...common,
      table: name,
      key: { partition: '{city}_{id}', row: 'note_{at}' },
      access,
    });
    return [holders, notes] as const;
  };

  test('if an entity refers to another declaration of the same name', () => {
    const other = defineEntity('things', { ...common, key: { partition: '{city}', row: 'id_{id}' } });
    expect(() => defineModel({ ...roles, entities: [parts, other] })).toThrow(
      'Entity "parts" is a child of "things", and the model has another declaration of that name',
    );
  });

  test('if two entities copy fields of the same entity', () => {
    expect(() => defineModel({ ...roles, entities: [things, mayor, copying('deputy')] })).toThrow(
      'Entity "deputy": the denormalized fields copy from "things", and only one row of a partition may: "mayor" copies from it already. Remove one of them, or use fanOut',
    );
  });

  test('if another entity counts one that clients write past the API', () => {
    const [holders, notes] = clients('notes');
    const counting = defineEntity('totals', {
      ...common,
      table: 'notes',
      schema: common.schema.extend({ noteCount: z.int32().optional() }),
      key: { partition: '{city}_{id}', row: 'total' },
      counts: { noteCount: notes },
    });
    expect(() => defineModel({ ...roles, entities: [holders, notes, counting] })).toThrow(
      'Entity "notes": clients may write it straight to storage (access.own), where nothing keeps up maintained count. Remove those, also in entities that refer to it, or grant only r',
    );
  });

  test('if a pattern sets a field of an entity that clients write past the API', () => {
    const stamp: Internal['Feature'] = {
      name: 'stamp',
      isUsed: ({ name }) => name === 'notes',
      keptFields: () => ['ref'],
    };
    const none = { ...stamp, keptFields: () => [] };
    const reserved = { tables: [], entities: [], containers: [], routes: [], storeMembers: [], rowTypes: [] };
    const link = (own: Internal['Feature']) =>
      linkModel({ ...roles, entities: clients('notes') }, { reserved, features: [...featureUpkeep.features, own] });
    expect(() => link(stamp)).toThrow(
      'Entity "notes": clients may write it straight to storage (access.own), where nothing keeps up stamp. Remove those, also in entities that refer to it, or grant only r',
    );
    expect(() => link(none)).not.toThrow();
  });
});

test.each([
  [
    'the table of an index',
    { names: 'catsbyname' },
    /"cats": its table "catsbyname", of an index, an archive or a pattern, is used by "dogs" too/,
  ],
  [
    'the table of an archive',
    { archive: 'formercats' },
    /"formercats" is declared twice, or is also an archive's table/,
  ],
  [
    'the table of indexes, where only one entity stores its rows',
    { table: 'catsbyname' },
    /"catsbyname", of an index, an archive or a pattern, is used by "dogs"/,
  ],
])('rejects two entities that share %s', (_, tables, reason) => {
  expect(() => defineModel({ ...roles, entities: [pet('cats'), pet('dogs', tables)] })).toThrow(reason);
  expect(() => defineModel({ ...roles, entities: [pet('dogs', tables), pet('cats')] })).toThrow(
    'The model is not valid',
  );
});

/** An entity whose list by name is stored in its own partition. */
const listed = (name: string, row: '{name}' | 'named_{name}' | 'called_{name}') =>
  defineEntity(name, {
    schema: z.object({ home: z.string(), id: z.string(), name: z.string() }),
    table: 'pets',
    key: { partition: '{home}', row: `${name}_{id}` },
    indexes: { list: indexEntity({ row, holds: '{id}' }) },
    access: { read: [], write: [] },
  });

test('rejects a list in a shared table whose rows could belong to either of two entities', () => {
  const cats = listed('cats', 'named_{name}');
  expect(() => defineModel({ ...roles, entities: [cats, listed('dogs', '{name}')] })).toThrow(
    /the rows of its index "list" .*\{name\}.* of "cats"/,
  );
  expect(() => defineModel({ ...roles, entities: [cats, listed('dogs', 'named_{name}')] })).toThrow(
    'can have the same key as the rows of its index "list"',
  );
  expect(defineModel({ ...roles, entities: [cats, listed('dogs', 'called_{name}')] }).list).toHaveLength(2);
});

describe('roles', () => {
  const entity = (role: 'hr' | 'emperor') =>
    defineEntity('things', {
      ...common,
      key: { partition: '{city}', row: '{id}' },
      access: { read: [role], write: [] },
    });

  test('are those that the model declares', () => {
    const model = defineModel({ roles: ['hr', 'boss'], operatorRole: 'boss', entities: [things] });
    expect([model.roles, model.operatorRole]).toEqual([['hr', 'boss'], 'boss']);
  });

  test.each<[string, { roles: string[]; operatorRole: string; signedIn?: string; anyone?: string }, string]>([
    [
      'a role that an entity names',
      { roles: ['hr'], operatorRole: 'hr' },
      'Entity "things": access names the role "emperor"',
    ],
    ['the operator role', { roles: ['emperor'], operatorRole: 'boss' }, 'operatorRole is "boss", which is not a role'],
    [
      'the role of users who sign in',
      { roles: ['emperor'], operatorRole: 'emperor', signedIn: 'user' },
      'signedIn is "user", which is not a role of the model. Use one of emperor.',
    ],
    [
      'another role for operators than for users who sign in',
      { roles: ['emperor', 'user'], operatorRole: 'user', signedIn: 'user' },
      'signedIn is "user", which is also operatorRole',
    ],
    [
      'the role of requests without a token',
      { roles: ['emperor'], operatorRole: 'emperor', anyone: 'visitor' },
      'anyone is "visitor", which is not a role of the model. Use one of emperor.',
    ],
    [
      'another role for operators than for requests without a token',
      { roles: ['emperor', 'visitor'], operatorRole: 'visitor', anyone: 'visitor' },
      'anyone is "visitor", which is also operatorRole',
    ],
    [
      'two roles for users who sign in and for requests without a token',
      { roles: ['emperor', 'boss', 'user'], operatorRole: 'boss', signedIn: 'user', anyone: 'user' },
      'anyone is "user", which is also signedIn',
    ],
    [
      'a role once',
      { roles: ['emperor', 'emperor'], operatorRole: 'emperor' },
      'The role "emperor" is declared twice.',
    ],
    [
      'a role by an accepted name',
      { roles: ['emperor', 'a,b'], operatorRole: 'emperor' },
      'The role "a,b" is not accepted',
    ],
  ])('must include %s', (_, declared, reason) => {
    expect(() => defineModel({ ...declared, entities: [entity('emperor')] })).toThrow(reason);
  });

  test('that an entity names and the model does not are a compile error', () => {
    const emperors = defineEntity('things', {
      ...common,
      key: { partition: '{city}', row: '{id}' },
      access: { read: ['emperor'], write: [] },
    });
    // @ts-expect-error
    expect(() => defineModel({ ...roles, entities: [emperors] })).toThrow('the role "emperor"');
    const restricting = { read: ['reader'], write: ['hr'], restricted: { ref: ['hr', 'emperor'] } } as const;
    const sealed = defineEntity('things', {
      ...common,
      key: { partition: '{city}', row: '{id}' },
      access: restricting,
    });
    // @ts-expect-error
    expect(() => defineModel({ ...roles, entities: [sealed] })).toThrow('the role "emperor"');
    const kinds = { cat: z.object({}), dog: z.object({}) };
    const union = defineUnion('things', {
      ...common,
      kinds,
      key: { partition: '{city}', row: '{id}' },
      access: restricting,
    });
    // @ts-expect-error
    expect(() => defineModel({ ...roles, entities: [union] })).toThrow('the role "emperor"');
    const { entities } = defineModel({ ...roles, roles: [...roles.roles, 'emperor'], entities: [sealed] });
    expect(entities.things.access.restricted).toEqual({ ref: ['hr', 'emperor'] });
    // @ts-expect-error
    expect(() => defineModel({ roles: ['emperor'], operatorRole: 'boss', entities: [emperors] })).toThrow('"boss"');
  });
});

describe('a prefix', () => {
  const define = (prefix: string, ...entities: DeclaredEntity[]) => defineModel({ ...roles, prefix, entities });
  const long = (over: object) =>
    defineEntity('things', {
      ...common,
      key: { partition: '{city}', row: 'id_{id}' },
      ...over,
    } as never) as DeclaredEntity;

  test('is part of the model, and the entities keep their declared names', () => {
    const { prefix, list } = define('shop2', pet('cats'));
    expect(prefix).toBe('shop2');
    expect(list[0]).toMatchObject({
      name: 'cats',
      table: 'cats',
      archive: { name: 'formercats', table: 'formercats' },
    });
    expect(defineModel({ ...roles, entities: [pet('cats')] }).prefix).toBe('');
  });

  test.each([
    'Shop',
    '2shop',
    'my-shop',
    'my_shop',
    'shop10',
    'a'.repeat(21),
    ' shop',
    'shöp',
    '0',
    'azure',
    'insights',
    'scm',
  ])('is rejected if it cannot begin names: %j', (prefix) => {
    expect(() => define(prefix, pet('cats'))).toThrow(
      `The model is not valid.\nThe prefix ${JSON.stringify(prefix)} is not accepted. Use 1 to 20 lower-case letters and digits from 1 to 9, a letter first, other than azure, insights and scm.`,
    );
  });

  test.each(['a', 'shop', 'shop2', 'a'.repeat(20)])('is accepted: %j', (prefix) => {
    expect(define(prefix, pet('cats')).prefix).toBe(prefix);
  });

  // 55 characters is the longest name of a table. One more character is for the separator.
  const table = `t${'a'.repeat(54)}`;
  const at = z.object({ ...common.schema.shape, at: z.iso.datetime() });
  const ofDays = { key: { partition: '{city}', row: 'id_{at}' }, period: { per: 'day', field: 'at', keep: 1 } };
  const expiring = z.object({ ...common.schema.shape, changedOn: z.iso.date() });
  const container = `c${'d'.repeat(60)}`;
  const index = interPartitionIndex({ table, partition: '{at}', row: '{city}_{id}' });
  const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  test.each([
    ['a table', 7, `0${table}`, { table }],
    ['the table of an index', 7, `0${table}`, { indexes: { index } }],
    ['the table of an archive', 7, `0${table}`, { archive: { table } }],
    ['a table of a period', 5, `0${table.slice(0, 49)}${today}`, { table: table.slice(0, 49), schema: at, ...ofDays }],
    [
      'the table of a pattern',
      5,
      `0${table.slice(0, 51)}expiry`,
      { table: table.slice(0, 51), schema: expiring, expiry: { days: 1, clock: 'changedOn' } },
    ],
    ['a container', 1, `-${container}`, { attachments: { photo: { container, maxBytes: 1, types: ['image/png'] } } }],
  ])('is rejected if it makes the name too long of %s', (_, longest, rest, over) => {
    const declared = long(over);
    expect(() => define('p'.repeat(longest), declared)).not.toThrow();
    const prefix = 'p'.repeat(longest + 1);
    expect(() => define(prefix, declared)).toThrow(
      `Entity "things": the name "${prefix}${rest}" has 64 characters with the prefix "${prefix}". Use at most 63 for a table or container.`,
    );
  });
});
