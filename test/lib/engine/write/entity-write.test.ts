import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { prepareDelete, prepareMerge, preparePut } from '../../../../lib/engine/write/entity-write.ts';
import { defineEntity, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import { engineCore } from '../../../kit/engine.ts';
import { storageAccounts } from '../../../kit/storage.ts';

/** Which writes need no read, because storage itself can do what is asked. */

const schema = z.object({
  id: z.string(),
  title: z.string(),
  pages: z.int32().optional(),
  note: z.string().optional(),
  place: z.string().nullable().optional(),
});
const common = { key: { partition: '{id}', row: 'note' }, access: { read: ['hr'], write: ['hr'] } } as const;
const length = ({ title }: Values) => String(title).length;
const { plain, upgraded, derived, moved } = deploy(
  defineEntity('plain', { ...common, schema, table: 'plain' }),
  defineEntity('upgraded', { ...common, schema, table: 'upgraded', version: 2, upgrades: { 1: (values) => values } }),
  defineEntity('derived', {
    ...common,
    schema: schema.extend({ length: z.int32() }),
    table: 'derived',
    derived: { length },
  }),
  defineEntity('moved', { ...common, schema, table: 'moved', movable: ['id'] }),
);
const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString: 'UseDevelopmentStorage=true' }));
const key = { id: '1' };
const ETAG = `W/"datetime'2026-11-20T08%3A00%3A00.0000000Z'"`;

describe('a patch', () => {
  const unreadOf = (entity: Entity, patch: object, conditions = {}) =>
    prepareMerge(engine, entity, key, patch, conditions).unread;

  test('is merged without a read, with the fields that it names', () => {
    const before = { state: 'unread', etag: undefined, key };
    expect(unreadOf(plain, { title: 'New', pages: 3 })).toEqual({
      before,
      after: { title: 'New', pages: 3 },
      isPartial: true,
    });
    expect(unreadOf(plain, { id: '1', title: 'New' })?.after).toEqual({ title: 'New' });
  });

  test.each([
    ['removes a field', plain, { note: null }],
    ['removes a field whose schema accepts null', plain, { place: null, title: 'New' }],
    ['has no value for a field', plain, { note: undefined, title: 'New' }],
    ['names only the key', plain, { id: '1' }],
    ['is empty', plain, {}],
    ['may find an earlier version', upgraded, { title: 'New' }],
    ['may change a derived field', derived, { title: 'New' }],
    ['changes an entity that can move', moved, { title: 'New' }],
  ])('needs a read if it %s', (_, entity, patch) => {
    expect(unreadOf(entity, patch)).toBeUndefined();
  });

  test('reads the entity before it is rejected', () => {
    expect(unreadOf(plain, { pages: 'three' })).toBeUndefined();
    expect(unreadOf(plain, { id: '2', title: 'New' })).toBeUndefined();
    expect(unreadOf(plain, ['title'])).toBeUndefined();
  });
});

describe('a put', () => {
  const unreadOf = (entity: Entity, body: object, conditions = {}) =>
    preparePut(engine, entity, key, body, conditions).unread;

  test('needs no read, and no entity need exist', () => {
    const write = preparePut(engine, plain, key, { title: 'New' }, {});
    expect(write).toMatchObject({ expects: 'any', unread: { after: { id: '1', title: 'New' } } });
    expect(unreadOf(derived, { title: 'New' })?.after).toEqual({ id: '1', title: 'New', length: 3 });
  });

  test('reads the entity to compare a derived field that the body repeats', () => {
    expect(unreadOf(derived, { title: 'New', length: 3 })).toBeUndefined();
  });
});

describe('a condition', () => {
  const etagOf = (conditions: object) => prepareDelete(engine, plain, key, undefined, conditions).unread?.before.etag;

  test.each([
    ['none', {}, undefined],
    ['any entity', { ifMatch: '*' }, '*'],
    ['one ETag', { ifMatch: ETAG }, ETAG],
  ])('of %s is left to storage', (_, conditions, etag) => {
    expect(prepareDelete(engine, plain, key, undefined, conditions).unread).toBeDefined();
    expect(etagOf(conditions)).toBe(etag);
  });

  test.each([
    ['several ETags', { ifMatch: `${ETAG}, ${ETAG}` }],
    ['no entity', { ifNoneMatch: '*' }],
  ])('of %s needs a read', (_, conditions) => {
    expect(prepareDelete(engine, plain, key, undefined, conditions).unread).toBeUndefined();
  });

  test.each([
    [{}, false],
    [{ ifMatch: ' * ' }, false],
    [{ ifMatch: ETAG }, true],
  ])('%j makes a delete a single operation: %s', (conditions, isAlone) => {
    expect(prepareDelete(engine, plain, key, undefined, conditions).isAlone).toBe(isAlone);
  });
});
