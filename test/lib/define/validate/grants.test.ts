import { expect, test } from 'vitest';
import { z } from 'zod';
import { interPartitionIndex, intraPartitionIndex, type Values } from '../../../../lib/index.ts';
import { withReferences } from '../../../fixtures/with-references.ts';
import {
  access,
  entity,
  granted,
  handedIn,
  large,
  load,
  ofOne,
  owned,
  type Parts,
  shape,
  testRejections,
  text,
} from './declarations.ts';

/** The validation of entities that clients read or write with a grant. */

/** An owner by id, and an entity whose partition is the id under this schema. */
const grantedBy = (id: z.ZodType, over: Parts = {}) => {
  const byId = interPartitionIndex({ table: 'thingsbyid', partition: 'all', row: '{id}', unique: true });
  const through = owned({ indexes: { ...ofOne.indexes, id: byId } });
  return load(through, granted(through, { schema: z.object({ ...shape, id }), ...over }));
};
const MERGED =
  /Entity "claims": access.own grants the partition by "id", whose schema may store the values of two of "things" as one/;

test.each([
  ['a text', z.string()],
  [
    'a text with a pattern of any case',
    z
      .string()
      .regex(/^[a-z]+$/i)
      .max(20)
      .meta({ examples: ['a'] }),
  ],
  ['a refined text', text.refine((id) => id !== 'x')],
  ['a UUID', z.uuid()],
])('accepts a grant by %s', (_, id) => {
  expect(() => grantedBy(id)).not.toThrow();
});

testRejections([
  ...Object.entries({
    'lower case': text.toLowerCase(),
    'trimmed texts': text.trim(),
    'one normal form': text.normalize(),
    URLs: z.url(),
    'numbers that are coerced': z.coerce.number(),
    'a pipe to another type': text.pipe(z.string()),
    'a default after an error': text.catch('erin'),
    'a check that replaces it': text.overwrite((id) => id.toLowerCase()),
  }).map(([of, id]) => [`a grant by a field of ${of}`, () => grantedBy(id), MERGED] as const),
  [
    'a grant by a field with a computed default',
    () => grantedBy(text, { defaults: { id: ({ name }: Values) => String(name).toLowerCase() } }),
    MERGED,
  ],
  [
    'a grant by a derived field',
    () => grantedBy(text, { derived: { id: ({ name }: Values) => String(name).toLowerCase() } }),
    MERGED,
  ],
  [
    'an owner by the claim "sub" in lower case',
    {
      schema: z.object({ ...shape, email: text.toLowerCase() }),
      indexes: ofOne.indexes,
      access: { ...access, own: { claim: 'sub', index: 'email' } },
    },
    /access.own finds the entity by the claim "sub" in "email", whose schema may store two claims as one value/,
  ],
  [
    'a grant for an entity with a period',
    () =>
      load(
        ...withReferences(
          granted(owned(), { partition: '{city}_{id}', period: { per: 'day', field: 'day', keep: 3 } }),
        ),
      ),
    /an entity with a period cannot be granted/,
  ],
  [
    'a series with a blob that is granted',
    () => {
      const owner = owned();
      return load(owner, large({ ...access, own: { through: owner, permissions: 'r' } }));
    },
    /access.own/,
  ],
  [
    'a grant through an entity outside the model',
    () => load(granted(owned(), { partition: '{city}_{id}' })),
    /"claims" is granted through "things", which is not in the model\. Add "things", or remove "claims"/,
  ],
  [
    'an own index that is not declared',
    { access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'mail' } } },
    /access.own names the index "mail", which is not declared/,
  ],
  [
    'an own index that is inherited from Object',
    { access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'constructor' } } },
    /"constructor", which is not declared/,
  ],
  [
    'an own index that is not unique',
    {
      indexes: { email: intraPartitionIndex({ row: 'email_{email}' }) },
      access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'email' } },
    },
    /"email", which may lead to several entities\. Name a unique index of one field/,
  ],
  [
    'a grant of a partition that two entities can share',
    () => load(...[owned()].flatMap((through) => [through, granted(through)])),
    /Entity "claims": access.own grants the partition by id, which two of "things" may share, so one could open the other's\. Declare a unique inter-partition index of id in "things",/,
  ],
  [
    'a grant by a hash of a unique field',
    () =>
      load(
        ...[
          owned({
            indexes: {
              ...ofOne.indexes,
              id: interPartitionIndex({ table: 'thingsbyid', partition: '{id#}', row: '{id}', unique: true }),
            },
          }),
        ].flatMap((through) => [through, granted(through, { partition: '{id#}', row: '{id}_{day}' })]),
      ),
    /which two of "things" may share/,
  ],
  [
    'a grant by a field that is unique only for some entities',
    () =>
      load(
        ...[
          owned({
            indexes: {
              ...ofOne.indexes,
              id: interPartitionIndex({
                table: 'thingsbyid',
                partition: '{id#}',
                row: '{id}',
                unique: true,
                when: () => false,
              }),
            },
          }),
        ].flatMap((through) => [through, granted(through)]),
      ),
    /which two of "things" may share/,
  ],
  [
    'a table that clients write and that another entity uses',
    () => load(...[owned()].flatMap((own) => [own, handedIn(own), entity('notes', { table: 'claims' })])),
    /clients may write its table "claims" .*which "notes" uses too/,
  ],
  [
    'a grant that opens rows of another entity',
    () => {
      const through = owned({
        indexes: {
          ...ofOne.indexes,
          id: interPartitionIndex({ table: 'thingsbyid', partition: 'all', row: '{id}', unique: true }),
        },
      });
      return load(through, granted(through), entity('notes', { table: 'claims', partition: '{id}' }));
    },
    /Entity "claims": a grant \(access.own\) opens .* its row \({id} \/ notes_{id}\) of "notes"\. Begin the row key/,
  ],
  [
    'a large field that clients write',
    () => load(...[owned()].flatMap((own) => [own, handedIn(own, { large: ['large'] })])),
    /clients may write it straight to storage .* keeps up large entities/,
  ],
]);
