import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../../lib/index.ts';
import { access } from './declarations.ts';

/** Declarations over tables that another program fills. */

const schema = z.object({
  id: z.string(),
  name: z.string(),
  at: z.iso.datetime(),
  count: z.int32(),
  isOpen: z.boolean(),
  tags: z.array(z.string()).default([]),
});
const existing = { properties: { name: 'Name', at: { name: 'At', type: 'DateTime' }, count: 'Count' } } as const;
const base = { schema, table: 'Things', key: { partition: '{id}', row: 'thing' }, existing, access } as const;

function define(over: object, more: readonly object[] = []) {
  const things = defineEntity('things', { ...base, ...over } as never);
  return defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [things, ...more] as never });
}

test('accept the name of the table as it was created, and indexes in tables of their own', () => {
  expect(() =>
    define({
      indexes: {
        byName: interPartitionIndex({ table: 'thingsbyname', partition: '{name}', row: '{id}' }),
        names: indexEntity({ table: 'thingnames', partition: 'all', row: '{name}', holds: '{id}' }),
      },
    }),
  ).not.toThrow();
});

describe('reject', () => {
  test.each<[string, object]>([
    ['movable', { movable: ['id'] }],
    ['archive', { archive: { table: 'oldthings' } }],
    ['large', { large: ['name'] }],
    ['encrypted', { encrypted: ['name'] }],
    ['attachments', { attachments: { photo: { container: 'photos', maxBytes: 10, types: ['image/png'] } } }],
    ['split', { split: { rare: ['name'] } }],
    ['wide', { wide: true }],
    ['version', { version: 2, upgrades: { 1: (values: object) => values } }],
    ['expiry', { expiry: { at: 'at' } }],
    ['key.former', { key: { ...base.key, former: { partition: 'x_{id}', row: 'thing' } } }],
    ['an index in its own partition', { indexes: { byName: intraPartitionIndex({ row: 'name_{name}_{id}' }) } }],
  ])('%s', (option, over) => {
    expect(() => define(over)).toThrow(`Entity "things": it has existing, and ${option}. Remove that`);
  });

  test.each<[string, object, string]>([
    ['a field that the schema lacks', { nme: 'Name' }, 'existing.properties has "nme", which the schema does not have'],
    ['a type that the schema does not allow', { isOpen: { name: 'IsOpen', type: 'Guid' } }, 'stores "isOpen" as Guid'],
    ['a number as a text', { count: { name: 'Count', type: 'String' } }, 'stores "count" as String'],
    ['a name of the engine', { name: 'RowkeyType' }, 'names the property "RowkeyType" for "name"'],
    ['a key as a property', { name: 'RowKey' }, 'names the property "RowKey" for "name"'],
    ['one property for two fields', { name: 'Same', count: 'Same' }, 'names "Same" for "count" and "name"'],
  ])('%s', (_, properties, message) => {
    expect(() => define({ existing: { properties } })).toThrow(message);
  });

  test.each<[string, object]>([
    ['a name that no property can have', { properties: { name: 'Last Name' } }],
    ['a type that storage does not have', { properties: { at: { name: 'At', type: 'Date' } } }],
    ['looks that are too often', { follow: 1 }],
    ['another option', { readonly: true }],
  ])('%s', (_, given) => {
    expect(() => define({ existing: given })).toThrow('"existing');
  });

  test('a property that tells the entity as a field', () => {
    expect(() => define({ existing: { properties: { name: 'Kind' }, where: { Kind: 'Thing' } } })).toThrow(
      'existing.where has the property "Kind"',
    );
  });

  test('names of one table that differ in case', () => {
    const others = (table: string, over: object = {}) =>
      defineEntity('others', {
        schema: z.object({ id: z.string() }),
        table,
        key: { partition: '{id}', row: 'other' },
        access,
        ...over,
      } as never);
    expect(() => define({}, [others('things')])).toThrow('its table is also one of "others"');
    expect(() => define({}, [others('THINGS', { existing: {} })])).toThrow('which storage has as one');
    const indexes = { byName: interPartitionIndex({ table: 'things', partition: '{name}', row: '{id}' }) };
    expect(() => define({ indexes })).toThrow('its table is also one of "things"');
    expect(() => define({ table: 'System' })).toThrow('is reserved');
  });

  test('a table that another entity has for itself', () => {
    const others = defineEntity('others', {
      schema: z.object({ id: z.string() }),
      table: 'things',
      key: { partition: '{id}', row: 'other' },
      access,
    });
    expect(() => define({ table: 'things' }, [others])).toThrow('its table is also one of "others"');
  });
});
