import { expect, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, interPartitionIndex, intraPartitionIndex } from '../../../../lib/define.ts';
import { withReferences } from '../../../fixtures/with-references.ts';
import {
  access,
  copying,
  entity,
  handedIn,
  load,
  ofOne,
  owned,
  type Parts,
  type Rejected,
  referring,
  shape,
  testRejections,
  text,
} from './declarations.ts';

/** The validation of children, counts, copies and references. */

testRejections([
  [
    'a child without its parent',
    () => load(entity('parts', { row: 'things_{id}_{day}', childOf: entity('things') })),
    /Entity "parts" is a child of "things", which is not in the model\. Add "things", or remove "parts"/,
  ],
  [
    'a count of an entity outside the model',
    () =>
      load(
        entity('cities', {
          schema: z.object({ ...shape, count: z.int32() }),
          row: 'city',
          counts: { count: entity('things') },
        }),
      ),
    /Entity "cities" counts "things", which is not in the model/,
  ],
  [
    'a copy of an entity outside the model',
    () =>
      load(
        entity('cities', {
          row: 'city',
          denormalized: { name: { source: entity('things'), by: 'id', copies: { email: () => '' } } },
        }),
      ),
    /"cities" copies fields from "things", which is not in the model/,
  ],
  [
    'a copy of an entity in another partition',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            partition: '{name}',
            schema: z.object(shape).required(),
            row: 'city',
            denormalized: { name: { source: entity('things'), by: 'id', copies: { email: () => '' } } },
          }),
        ),
      ),
    /which is in another table or partition/,
  ],
  [
    'an index in the partition of an entity with copies',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            row: 'city',
            denormalized: { name: { source: entity('things'), by: 'id', copies: { email: () => '' } } },
            indexes: { name: intraPartitionIndex({ row: 'name_{name}', copies: 'keys' }) },
          }),
        ),
      ),
    /the index "name" is in the partition, where a change of the entity that fields are copied from would leave it stale/,
  ],
  [
    'a reference to a field that is not in the key',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            row: 'city',
            denormalized: {
              name: {
                source: entity('things'),
                by: 'email',
                copies: { email: () => '' },
              },
            },
          }),
        ),
      ),
    /by the reference name to email/,
  ],
  [
    'a child with the name of a field of its parent',
    () =>
      load(
        ...[entity('things', { schema: z.object({ ...shape, parts: text }) })].flatMap((parent) => [
          parent,
          entity('parts', { row: 'things_{id}_{day}', childOf: parent }),
        ]),
      ),
    /has a field "parts", which a read with \?include=parts would replace/,
  ],
  [
    'a full copy of an entity with a count',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            schema: z.object({ ...shape, count: z.int32() }),
            row: 'city',
            counts: { count: entity('things') },
            indexes: { name: interPartitionIndex({ table: 'names', partition: 'all', row: '{name}' }) },
          }),
        ),
      ),
    /the index "name" copies everything, also "count", which changes with another entity/,
    2,
  ],
  [
    'an index of a count',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            schema: z.object({ ...shape, count: z.int32() }),
            row: 'city',
            counts: { count: entity('things') },
            indexes: { count: intraPartitionIndex({ row: 'count_{count:4}' }) },
          }),
        ),
      ),
    /the index "count" uses "count", which changes with another entity/,
    2,
  ],
  [
    'a fan-out that nothing finds',
    () => load(...copying({}, { field: 'name', by: 'id' })),
    /the denormalized fields copy from "things" \(fanOut\), and cannot find the entities of one source by one query\. Make name, city the first fields of the key/,
    2,
  ],
  [
    'a fan-out without a key field of the source',
    () => load(...copying({}, { field: 'year', by: 'id' })),
    /whose key field "id" this entity does not have as "year" of the same type\. Add the field/,
    2,
  ],
  [
    'a fan-out from an entity whose tables are dropped',
    () => load(...copying({ row: '{day}_{id}', table: 'days', period: { per: 'day', field: 'day', keep: 3 } })),
    /\(fanOut\), and "things" has a period/,
  ],
  [
    'a fan-out to a required field',
    () => load(...copying({}, { copies: { day: () => '' } })),
    /\(fanOut\) to "day", which is required/,
    2,
  ],
  [
    'a fan-out from an entity that clients write',
    () => {
      const own = owned();
      const source = handedIn(own);
      const link = { source, copies: { name: () => '' }, fanOut: true };
      const notes = entity('notes', {
        table: 'notes',
        partition: '{city}_{id}',
        row: '{day}',
        denormalized: { day: link },
      });
      return load(own, source, notes);
    },
    /clients write "claims" straight to storage \(access.own\), where nothing updates copies/,
  ],
  [
    'a reference that leads to no single entity',
    () => load(...referring({}, { references: { name: { by: 'email', onDelete: 'report' } } })),
    /the reference "name" to "things" leads to no single entity\. Add a unique inter-partition index of "email" alone,/,
  ],
  [
    'a reference through a unique index with a condition',
    () => {
      const email = ofOne.indexes.email;
      const indexes = { email: { ...email, when: () => true } };
      return load(...referring({ indexes }, { references: { name: { by: 'email', onDelete: 'report' } } }));
    },
    /leads to no single entity/,
  ],
  [
    'a reference of another type',
    () => load(...referring({}, { references: { year: { by: 'id', onDelete: 'report' } } })),
    /the reference "year" to "things" is stored as Int32, and "id" of "things" as String/,
  ],
  [
    'a reference by an unknown field',
    () => load(...referring({}, { references: { name: { by: 'nick', onDelete: 'report' } } })),
    /is stored as String, and "nick" of "things" is not declared/,
    2,
  ],
  [
    'a reference that the schema does not have',
    () => load(...referring({}, { references: { nick: { onDelete: 'report' } } })),
    /references names the field "nick", which the schema does not have/,
  ],
  [
    'a reference that tells writers what they may not read',
    () =>
      load(
        ...referring({}, { references: { id: { onDelete: 'report' } }, access: { read: ['hr'], write: ['operator'] } }),
      ),
    /the reference "id" to "things" is checked at a write, which would tell operator what exists\. Let roles that write "notes" read "id" of "things"/,
  ],
  [
    'a reference by a field that writers may not read',
    () =>
      load(
        ...referring(
          { ...ofOne, access: { read: ['hr', 'reader'], write: ['hr'], restricted: { email: ['hr'] } } },
          { references: { email: { onDelete: 'report' } }, access: { read: ['hr'], write: ['hr', 'reader'] } },
        ),
      ),
    /tell reader what exists\. Let roles that write "notes" read "email" of "things"/,
  ],
  [
    'a reference that tells deleters what they may not read',
    () =>
      load(
        ...referring(
          { access: { read: ['hr'], write: ['hr', 'operator'] } },
          {
            references: { id: { onDelete: 'refuse' } },
            row: '{id}',
            access: { read: ['hr'], write: ['hr'] },
          },
        ),
      ),
    /refuses deletes, which would tell operator what exists\. Let roles that write "things" read "id" of "notes"/,
  ],
  [
    'a reference that nothing finds',
    () => load(...referring({}, { references: { name: { by: 'id', onDelete: 'refuse' } } })),
    /the reference "name" to "things" refuses deletes and cannot find who refers to an entity by one query\. Make name, city the first fields of its key/,
  ],
  [
    'a reference that only an index left to the queue finds',
    () =>
      load(
        ...referring(
          {},
          {
            references: { name: { by: 'id', onDelete: 'refuse' } },
            indexes: {
              name: interPartitionIndex({ table: 'bynames', partition: '{name}', row: '{city}_{id}', settle: 'queue' }),
            },
          },
        ),
      ),
    /finds who refers to an entity by the index "name" alone, which may be behind\. Set its settle to "inline", or use onDelete: 'report'/,
  ],
  [
    'a reference that an index with an optional field finds',
    () =>
      load(
        ...referring(
          {},
          {
            references: { name: { by: 'id', onDelete: 'refuse' } },
            indexes: { name: intraPartitionIndex({ row: 'name_{name}_{email}_{id}' }) },
          },
        ),
      ),
    /cannot find who refers/,
  ],
  [
    'a reference with another onDelete',
    () => load(...referring({}, { references: { name: { by: 'id', onDelete: 'cascade' } } })),
    /has the onDelete "cascade"\. Use "refuse" or "report"/,
  ],
  [
    'a reference that is encrypted',
    () => {
      const restricted = { restricted: { name: ['hr'] } };
      const references = { name: { by: 'id', onDelete: 'report' } };
      return load(...referring({}, { references, encrypted: ['name'], access: { ...access, ...restricted } }));
    },
    /is encrypted, large or set by a pattern/,
  ],
  [
    'a reference to an entity whose tables are dropped',
    () =>
      load(
        ...referring(
          { row: '{day}_{id}', table: 'days', period: { per: 'day', field: 'day', keep: 3 } },
          { references: { id: { onDelete: 'report' } } },
        ),
      ),
    /cannot be kept, because "things" has a period/,
  ],
  [
    'a reference to a child that refuses deletes',
    () => {
      const parent = entity('parents', { row: 'p_{id}' });
      const child = { row: 'p_{id}_{year:4}', childOf: parent };
      return load(parent, ...referring(child, { references: { year: { onDelete: 'refuse' } } }));
    },
    /cannot refuse deletes, because a delete of "parents" deletes its children too/,
    2,
  ],
  [
    'a reference to an entity that is not in the model',
    () => load(...referring({}, { references: { name: { by: 'id', onDelete: 'report' } } }).slice(1)),
    /Entity "notes" refers to "things", which is not in the model/,
  ],
  ...(() => {
    const ring = (field: z.ZodType) => {
      const declared: Record<string, DeclaredEntity> = {};
      const to = (name: string) => ({ name: { to: () => declared[name], by: 'id', onDelete: 'report' } });
      const one = (name: string, other: string) => {
        declared[name] = entity(name, {
          schema: z.object({ ...shape, name: field }),
          references: to(other),
        });
        return declared[name];
      };
      return [one('cats', 'dogs'), one('dogs', 'eels'), one('eels', 'cats')];
    };
    return [
      [
        'a ring of required references',
        () => load(...ring(text)),
        /Entity "cats": the required references cats → dogs → eels → cats form a ring, of which no entity can be created/,
        3,
      ],
      [
        'a ring of references with a default',
        () => load(...ring(text.default('000001'))),
        /"dogs": the required references dogs → eels → cats → dogs form a ring/,
        3,
      ],
      [
        'a ring of a required reference and of one by which fields are copied',
        () => {
          const required = { schema: z.object(shape).required() } satisfies Parts;
          const back = { name: { to: () => cats, by: 'city', onDelete: 'report' } };
          const dogs: DeclaredEntity = entity('dogs', { ...required, references: back });
          const link = {
            source: dogs,
            by: 'id',
            copies: { email: () => '' },
          } as const;
          const cats = entity('cats', { ...required, row: 'cat', denormalized: { name: link } });
          return load(dogs, cats);
        },
        /"dogs": the required references dogs → cats → dogs form a ring/,
        2,
      ],
    ] satisfies Rejected[];
  })(),
]);

test('a ring in which one reference may be absent is accepted', () => {
  const cats: DeclaredEntity = entity('cats', {
    references: { name: { to: () => dogs, by: 'id', onDelete: 'report' } },
  });
  const dogs: DeclaredEntity = entity('dogs', {
    schema: z.object(shape).required(),
    references: { name: { to: cats, by: 'id', onDelete: 'report' } },
  });
  expect(() => load(cats, dogs)).not.toThrow();
});

test('a required reference to the entity itself is accepted, because the first one can refer to itself', () => {
  const eels: DeclaredEntity = entity('eels', {
    schema: z.object({ ...shape, name: text }),
    references: { name: { to: () => eels, by: 'id', onDelete: 'report' } },
  });
  expect(() => load(eels)).not.toThrow();
});

test('a reference with unseen may tell writers what they may not read', () => {
  const references = { id: { onDelete: 'report', unseen: true } };
  expect(() => load(...referring({}, { references, access: { read: ['hr'], write: ['operator'] } }))).not.toThrow();
});
