import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  defineSeries,
  defineUnion,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
} from '../../../../lib/define.ts';

/** `npm start` runs no compiler, so what the types reject must be rejected here too. */

const schema = z.object({ city: z.string(), id: z.string(), plate: z.string(), seats: z.int32() });
const access = { read: ['reader'], write: ['reader'] } as const;
const key = { partition: '{city}', row: 'car_{id}' } as const;
const common = { schema, table: 'cars', key, access } as const;
const cars = defineEntity('cars', common);
const byPlate = { table: 'carsbyplate', partition: '{plate#}', row: '{plate}' } as const;
const seats = { table: 'carseats', partition: '{city}', row: '{plate}' } as const;

const define = (part: object) => defineEntity('cars', { ...common, ...part });
const withIndex = (index: object) => define({ indexes: { byPlate: index } });

test.each<[string, () => unknown, string]>([
  [
    'entity',
    () => define({ indices: {} }),
    '"indices" is not an option. Use schema, table, sharedTable, existing, key, indexes',
  ],
  [
    'key',
    () => define({ key: { ...key, rows: 'a' } }),
    '"key.rows" is not an option. Use partition, row, appends, former.',
  ],
  [
    'archive',
    () => define({ archive: { table: 'oldcars', keep: 3 } }),
    '"archive.keep" is not an option. Use table, without.',
  ],
  [
    'period',
    () => define({ period: { per: 'day', field: 'at', keep: 3, keeps: 3 } }),
    '"period.keeps" is not an option. Use per, field, keep, archiveTo.',
  ],
  [
    'expiry',
    () => define({ expiry: { days: 3, clok: 'at' } }),
    '"expiry.clok" is not an option. Use days, clock, at, table.',
  ],
  // A term that is undefined by mistake must not open every row.
  ...[{}, undefined].map((where): [string, () => unknown, string] => [
    `rule with the terms ${JSON.stringify(where)}`,
    () => define({ access: { read: [{ role: 'reader', where }], write: [] } }),
    '"access.read.0.where" is not valid: it has no terms, so the role would reach every row. Name a term, or the role alone.',
  ]),
  ['lookup', () => define({ lookup: { index: 'all', age: 3 } }), '"lookup.age" is not an option. Use index, maxAge.'],
  [
    'attachment',
    () => define({ attachments: { photo: { container: 'photos', maxBytes: 9, types: ['image/png'], pubic: true } } }),
    '"attachments.photo.pubic" is not an option. Use container, maxBytes, types, public, maxAge, tier, coolAfterDays.',
  ],
  [
    'reference',
    () => define({ references: { plate: { to: cars, onDelet: 'refuse' } } }),
    '"references.plate.onDelet" is not an option. Use to, by, onDelete, unseen.',
  ],
  [
    'copy of another entity',
    () =>
      define({
        denormalized: { plate: { source: cars, by: 'id', copies: {}, fanout: true } },
      }),
    '"denormalized.plate.fanout" is not an option. Use source, by, copies, fanOut.',
  ],
  [
    'access',
    () => define({ access: { ...access, restrict: { plate: ['reader'] } } }),
    '"access.restrict" is not an option. Use read, write, set, restricted, discloses, own.',
  ],
  [
    'owner',
    () => define({ access: { ...access, own: { claim: 'email', index: 'byPlate', verified: {} } } }),
    '"access.own.verified" is not an option. Use claim, index, verifiedBy, through, permissions.',
  ],
  [
    'inter-partition index',
    () => withIndex(interPartitionIndex({ ...byPlate, uniqe: true } as never)),
    'the index "byPlate": "uniqe" is not an option. Use table, partition, row, when, copies, unique, settle, appends.',
  ],
  [
    'intra-partition index',
    () => withIndex(intraPartitionIndex({ row: 'p_{plate}', copys: 'keys' } as never)),
    'the index "byPlate": "copys" is not an option. Use row, when, copies.',
  ],
  [
    'index entity',
    () => withIndex(indexEntity({ row: 'p_{plate}', holds: '{id}', unique: true } as never)),
    'the index "byPlate": "unique" is not an option. Use row, holds, when, table, partition, settle, appends.',
  ],
  [
    'total',
    () => define({ totals: { bySeats: total({ ...seats, summ: ['seats'] } as never) } }),
    'the totals "bySeats": "summ" is not an option. Use table, partition, row, sum, min, max, when, appends.',
  ],
  [
    'union',
    () => defineUnion('cars', { ...common, kinds: { bus: z.object({ doors: z.int32() }) }, large: ['plate'] } as never),
    '"large" is not an option. Use kinds, schema, table',
  ],
  [
    'series',
    () => defineSeries('cars', { ...common, slots: { name: 'hour', first: 0, last: 23, per: 3 } } as never),
    '"slots.per" is not an option. Use name, first, last, perRow, overflow.',
  ],
])('rejects an unknown option of an %s and lists the accepted ones', (_, declare, sentence) => {
  expect(declare).toThrow(`Entity "cars": ${sentence}`);
});

test('rejects an account for a container that the model does not have', () => {
  const model = { roles: ['reader'], operatorRole: 'reader', entities: [cars] } as const;
  expect(() => defineModel({ ...model, containerAccounts: { audit: 'second', fotos: 'second' } })).toThrow(
    'containerAccounts names the container "fotos", which the model does not have. Use one of audit, ',
  );
  expect(defineModel({ ...model, containerAccounts: { audit: 'second' } }).containerAccounts).toEqual({
    audit: 'second',
  });
});

test.each([
  [{ acme: { keys: ['acme'], acount: 'second', account: 'second' } }, '"placement.acme.acount" is not an option.'],
  [{ '1': { keys: ['acme'], account: 'second' } }, 'placement "1" needs a name of 1 to 40 letters'],
  [{ acme: { account: 'second' } }, 'placement "acme" places nothing.'],
  [{ acme: { from: 'b', to: 'a', account: 'second' } }, 'placement "acme" has no key from "b" before "a".'],
  [{ acme: { from: 'b', separator: '-', account: 'second' } }, 'placement "acme" has a separator without keys.'],
  [
    { acme: { keys: ['acme'], separator: '_x', account: 'second' } },
    'placement "acme" has the separator "_x". Use one',
  ],
  [{ all: { entities: ['trucks'], account: 'second' } }, '"trucks", which the model does not have. Use one of cars.'],
  [
    { one: { keys: ['a', 'b'], account: 'second' }, two: { keys: ['b_1'], account: 'second' } },
    'placement "two" and "one" can place the same partition.',
  ],
  [
    { one: { from: 'a', to: 'c', account: 'second' }, two: { keys: ['b'], account: 'second' } },
    'placement "two" and "one" can place the same partition.',
  ],
])('rejects a placement: %j', (placement, sentence) => {
  const model = { roles: ['reader'], operatorRole: 'reader', entities: [cars] } as const;
  expect(() => defineModel({ ...model, placement } as never)).toThrow(sentence);
});

test('keeps the placement of a tenant and of an entity', () => {
  const model = { roles: ['reader'], operatorRole: 'reader', entities: [cars] } as const;
  const placement = {
    acme: { keys: ['acme'], account: 'second' },
    fleet: { entities: ['cars'], account: 'third' },
  } as const;
  expect(defineModel({ ...model, placement }).placement).toEqual(placement);
});

test('rejects an unknown option of a model', () => {
  const model = { roles: ['reader'], operatorRole: 'reader', entities: [cars] } as const;
  // @ts-expect-error The compiler rejects this option too.
  expect(() => defineModel({ ...model, prefx: 'a' })).toThrow(
    '"prefx" is not an option. Use prefix, roles, operatorRole, signedIn, anyone, steward, limits, rulesMaxAge, maxStorageRequests, queueParts, blocksUsers, consistencyCheck, containerAccounts, placement, backup, entities, operations.',
  );
});

test.each<[string, () => unknown, string]>([
  [
    'a form of copies',
    () => withIndex(interPartitionIndex({ ...byPlate, copies: 'key' } as never)),
    'the index "byPlate": "copies" is not valid: "everything", "keys" and a list of fields are accepted.',
  ],
  [
    'a copy of an unknown field',
    () => withIndex(interPartitionIndex({ ...byPlate, copies: ['nope'] })),
    'the index "byPlate" copies or holds "nope", which the schema does not have',
  ],
  [
    'a list without members',
    () => withIndex(indexEntity({ row: 'p_{plate}' } as never)),
    'the index "byPlate": "holds" is required.',
  ],
  [
    'a list of a table without a partition',
    () => withIndex(indexEntity({ row: 'p_{plate}', holds: '{id}', table: 'platecars' } as never)),
    'the index "byPlate": "partition" is required.',
  ],
  [
    'an unreadable template',
    () => withIndex(intraPartitionIndex({ row: 'p_{plate' } as never)),
    'the index "byPlate": The key template p_{plate has a brace',
  ],
  [
    'an unknown form of a field in a key',
    () => define({ key: { ...key, row: '{id:x}' } }),
    'The key template {id:x} has the unreadable field {id:x}. Use {field}, {field:4}, {field#}',
  ],
  ['no key', () => define({ key: undefined }), '"key" is required.'],
  ['no access', () => define({ access: undefined }), '"access" is required.'],
  ['no rule to write', () => define({ access: { read: ['reader'] } }), '"access.write" is required.'],
  [
    'a text as the rule to write',
    () => define({ access: { ...access, write: 'reader' } }),
    '"access.write" must be an array or an object; got a string.',
  ],
  [
    'an index without its function',
    () => withIndex({ row: '{plate}' }),
    'the index "byPlate" is made by no function. Use intraPartitionIndex({ … }) or interPartitionIndex({ … }) or indexEntity({ … }).',
  ],
  [
    'totals without their function',
    () => define({ totals: { seats } }),
    'the totals "seats" is made by no function. Use total({ … }).',
  ],
  ['no table', () => define({ table: undefined }), '"table" is required.'],
  [
    'both forms of an owner',
    () => define({ access: { ...access, own: { claim: 'sub', index: 'byPlate', through: cars, permissions: 'r' } } }),
    '"access.own" is not valid: claim and index are accepted, or through and permissions.',
  ],
])('rejects %s and names the entity', (_, declare, sentence) => {
  expect(declare).toThrow(`Entity "cars": ${sentence}`);
});

test('lists every wrong option', () => {
  const declare = () => define({ indices: {}, access: { ...access, reads: [] }, table: 7 });
  for (const error of ['"indices" is not an option', '"access.reads" is not an option', '"table" must be a string'])
    expect(declare).toThrow(error);
});

test('rejects an unknown option of an index or of totals when it is compiled', () => {
  // `npm run types` fails if a marked line compiles: an unused `@ts-expect-error` is an error too.
  const declared = [
    // @ts-expect-error
    interPartitionIndex({ ...byPlate, uniqe: true }),
    // @ts-expect-error
    intraPartitionIndex({ row: 'p_{plate}', unique: true }),
    // @ts-expect-error
    indexEntity({ row: 'p_{plate}', holds: '{id}', copies: 'keys' }),
    // @ts-expect-error
    total({ ...seats, summ: ['seats'] }),
    interPartitionIndex({ ...byPlate, unique: true, when: ({ seats }) => seats === 4 }),
  ];
  expect(declared).toHaveLength(5);
});
