import { test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, interPartitionIndex, total } from '../../../../lib/define.ts';
import { withReferences } from '../../../fixtures/with-references.ts';
import { access, copying, entity, load, ofOne, type Parts, shape, testRejections } from './declarations.ts';

/** The validation of what an entity shows or tells of another one. */

const wide = { read: ['hr', 'reader'], write: ['hr'] };
const beside = (source: Parts, over: Parts, by = 'id') => {
  const things = entity('things', source);
  const denormalized = { name: { source: things, by, copies: { email: () => '' } } };
  return [things, entity('cities', { row: 'city', ...over, denormalized })];
};
const counting = (over: object) =>
  entity('cities', {
    schema: z.object({ ...shape, count: z.int32() }),
    row: 'city',
    counts: { count: entity('things') },
    ...over,
  });

testRejections([
  [
    'a copy that readers see and whose source they may not read',
    () => load(...beside({}, { access: wide })),
    /Entity "cities": "email" is copied from "things", which reader may not read\. Add these roles to access\.read of "things"/,
  ],
  [
    'the same with a fan-out',
    () =>
      load(...(copying({}).map((one) => (one.name === 'notes' ? { ...one, access: wide } : one)) as DeclaredEntity[])),
    /"notes": "name" is copied from "things", which reader may not read/,
  ],
  [
    'a copy that a grant shows to an owner who may not read the source',
    () => {
      const byId = interPartitionIndex({ table: 'ownersbyid', partition: 'all', row: '{id}', unique: true });
      const owner = interPartitionIndex({ table: 'owners', partition: 'all', row: '{city}', unique: true });
      const own = { claim: 'oid', index: 'owner' };
      const through = entity('owners', { table: 'owned', indexes: { byId, owner }, access: { ...wide, own } });
      const access = { read: ['hr'], write: ['hr'], own: { through, permissions: 'r' } };
      return load(through, ...beside({}, { access }));
    },
    /"email" is copied from "things", which reader may not read/,
  ],
  [
    'a copy by whose reference writers learn what exists',
    () => load(...beside({}, { access: { read: ['hr'], write: ['hr', 'operator'] } })),
    /the denormalized fields copy from "things", which would tell operator what exists/,
  ],
  [
    'a count that readers see and whose entities they may not read',
    () => load(...withReferences(counting({ access: wide }))),
    /Entity "cities": "count" counts "things", which reader may not read/,
  ],
  [
    'a child whose writers learn which parents exist',
    () => {
      const things = entity('things');
      const open = { read: ['hr'], write: ['hr', 'operator'] };
      return load(things, entity('parts', { row: 'things_{id}_{day}', childOf: things, access: open }));
    },
    /Entity "parts": it is a child of "things", which would tell operator what exists/,
  ],
  [
    'an extreme of an encrypted field',
    {
      ...ofOne,
      encrypted: ['day'],
      totals: { perCity: total({ table: 'thingspercity', partition: 'all', row: '{city}', max: ['day'] }) },
      access: { ...access, restricted: { day: ['hr'] } },
    },
    /the encrypted field "day" is in the totals "perCity" in plain text\. Remove it from encrypted, or from the totals/,
    2,
  ],
]);

test('accepts children whose writers may create parents, and learn from conflicts which exist', () => {
  const importer = { read: ['hr'], write: ['operator'] };
  const things = entity('things', { access: importer });
  load(things, entity('parts', { row: 'things_{id}_{day}', childOf: things, access: importer }));
});

test('accepts these declarations without their one fault', () => {
  load(...beside({}, {}));
  load(...beside({}, { access: { ...wide, restricted: { email: ['hr'] } } }));
  load(...copying({}));
  load(...withReferences(counting({})));
});
