import { z } from 'zod';
import {
  type DeclaredEntity,
  defineSeries,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../../lib/define.ts';
import {
  access,
  byName,
  copying,
  digits,
  entity,
  load,
  photo,
  type Rejected,
  shape,
  testRejections,
  text,
} from './declarations.ts';

/** The validation of keys of entities, indexes and routes. */

testRejections([
  [
    'an optional field in the key',
    { row: 'x_{name}' },
    /the key field "name" is optional, and an entity without it has no key\. Make it required, or give it a default/,
  ],
  ['a list in the key', { row: 'x_{tags[]}' }, /the key has a list in it/],
  [
    'a list in the key without conversion',
    { row: 'x_{tags}' },
    /the field "tags", which is neither a text nor a number/,
  ],
  [
    'a Boolean in the key',
    { schema: z.object({ ...shape, isOn: z.boolean() }), row: 'x_{isOn}' },
    /the field "isOn", which is neither a text nor a number/,
  ],
  [
    'a text in the key with a width',
    { row: 'x_{id:6}' },
    /the field "id", which has a width and is not a whole number/,
  ],
  [
    'a text in the key as an instant',
    { row: '{id~}' },
    /"id", which is not an instant\. Declare it as z\.iso\.datetime\(\), or remove ~/,
  ],
  ...(
    [
      ['of other fields', { partition: 'all', row: '{id}_{day}' }, {}, /differ in the fields city, day\. Only a key/],
      [
        'that has a field as a hash only',
        { partition: '{city#}', row: '{id}' },
        {},
        /differ in the fields city\. Only/,
      ],
      [
        'that is the key',
        { partition: '{city}', row: 'things_{id}' },
        {},
        /the former key is the key\. Remove key\.former/,
      ],
      [
        'that is the key of another entity',
        { partition: 'things_{id}', row: '{city}' },
        {},
        /its row at the former key \(things_\{id\} \/ \{city\}\) can have the same key as its row/,
      ],
      [
        'whose partition lacks a movable field',
        { partition: '{id}', row: '{city}' },
        { movable: ['city'] },
        /"city" is movable and is not in the former partition key\. Remove it from movable/,
      ],
      [
        'that is the key of another archived entity',
        { partition: 'things_{id}', row: '{city}' },
        { archive: { table: 'oldthings' } },
        /its archived row at the former key \(things_\{id\} \/ \{city\}\) can have the same key as its archived row/,
        2,
      ],
    ] as const
  ).map(([what, former, over, message, errors]): Rejected => {
    const key = { partition: '{city}', row: 'things_{id}', former };
    return [`a former key ${what}`, { key, ...over }, message, errors];
  }),
  [
    'a former key of an entity from which others copy',
    () =>
      load(
        ...copying({ key: { partition: '{city}', row: 'things_{id}', former: { partition: '{id}', row: '{city}' } } }),
      ),
    /an entity that is copied from cannot get another key by key\.former/,
    2,
  ],
  [
    'a former key of an entity that copies fields and is found by its key',
    () => {
      const things = entity('things');
      const denormalized = { id: { source: things, copies: { name: () => '' }, fanOut: true } };
      const key = { partition: '{city}', row: 'note_{id}_{day}', former: { partition: '{city}', row: '{id}_{day}' } };
      return load(things, entity('notes', { table: 'notes', denormalized, key }));
    },
    /an entity that copies fields and is found by its key cannot get another key by key\.former/,
  ],
  ['a field that the schema does not have', { row: 'x_{town}' }, /"town", which the schema does not have/],
  ['a field that the key contains only as a hash', { row: 'x_{id#}' }, /the key has the field "id" only as a hash/],
  ['a thousand buckets', { partition: '{id%1000}', row: '{id}' }, /in 1000 buckets\. Use 1 to 256/],
  ['a slash between the fields of a key', { row: 'a/b_{id}' }, /the row key has the character "\/" between its fields/],
  [
    'an encrypted field in the key',
    { encrypted: ['id'] },
    /the encrypted field "id" is in the key in plain text\. Remove it from encrypted, or from the key/,
    2,
  ],
  [
    'a restricted field in the key',
    { access: { ...access, restricted: { id: ['hr'] } } },
    /the restricted field "id" is part of the key/,
  ],
  [
    'a large field in the key',
    { large: ['id'] },
    /the large field "id" is in the key, and a key is at most 512 characters\. Remove it from large, or from the key/,
  ],
  [
    'an archive without a key field',
    { archive: { table: 'oldthings', without: ['id'] } },
    /archive.without names the field "id", which the key needs/,
  ],
  [
    'an archive without a field that does not exist',
    { archive: { table: 'oldthings', without: ['nmae'] } },
    /archive.without names "nmae", which is neither a field of the schema nor a file/,
  ],
  [
    'an archive without a field of a group',
    { split: { more: ['name'] }, archive: { table: 'oldthings', without: ['name'] } },
    /archive.without is not possible for an entity with groups of fields/,
  ],
  ['a move that keeps the partition', { movable: ['id'] }, /"id" is movable and is not in the partition key/],
  ['a key without a field', { partition: 'all', row: 'one' }, /the key has no field/],
  [
    'a unique index by a hash alone',
    { indexes: { name: byName({ row: 'x' }) } },
    /is unique and has "name" only as a hash/,
  ],
  [
    'an index with an unknown settle',
    { indexes: { name: byName({ settle: 'later' }) } },
    /the index "name" has settle "later"\. Use "inline" or "queue"/,
    2,
  ],
  [
    'a unique index that is left to the queue',
    { indexes: { name: byName({ settle: 'queue' }) } },
    /the index "name" is unique and has settle "queue", and the writer must confirm its own claim\. Use "inline"/,
  ],
  [
    'a list index of a field that is not a list',
    {
      indexes: { tag: interPartitionIndex({ table: 'tags', partition: '{name[]}', row: '{city}_{id}' }) },
    },
    /"name", which is not a list of texts\. Declare it as z\.array\(z\.string\(\)\), or remove \[\]/,
  ],
  [
    'two entities with the same key',
    () => load(entity('cats', { row: '{id}' }), entity('dogs', { row: '{id}' })),
    /Entity "dogs": its row \(\{city\} \/ \{id\}\) can have the same key as its row \(\{city\} \/ \{id\}\) of "cats" in the table "things"/,
  ],
  [
    'a key that is a prefix of another key',
    () =>
      load(
        entity('cats', { row: 'pet_{id}_{day}' }),
        entity('dogs', { row: 'pet_{name}', schema: z.object(shape).required() }),
      ),
    /"dogs": its row .* can have the same key as its row .* of "cats"/,
  ],
  // Patterns that match what a set of ASCII characters cannot express, and types that replace a value after its check.
  ...(
    [
      ['an escaped range outside ASCII', z.string().regex(/^[\u0430-\u044f]+$/), 'дом'],
      ['an escaped range of Latin-1', z.string().regex(/^[\xe0-\xff]+$/), 'é'],
      ['a control character', z.string().regex(/^\cA$/), '\u0001'],
      ['a set of control characters', z.string().regex(/^[\cA-\cC]$/), '\u0002'],
      ['a set with the flag v', z.string().regex(/^[[a-z]--[b-z]]$/v), 'a'],
      ['a nested set with the flag v', z.string().regex(/^[\d[a]]$/v), 'a'],
      ['a pattern and catch', z.string().regex(/^\d$/).catch('a'), 'a'],
      ['a pattern and default', z.string().regex(/^\d$/).default('a'), 'a'],
      ['a literal and catch', z.literal('b').catch('a' as 'b'), 'a'],
      [
        'a pattern behind pipe',
        z.string().pipe(
          z
            .string()
            .regex(/^[A-Z]+$/)
            .toLowerCase(),
        ),
        'a',
      ],
      ['a pattern behind lazy', z.lazy(() => z.string().regex(/^[A-Z]+$/i)), 'a'],
      [
        'a check that replaces the value',
        z
          .string()
          .regex(/^\d$/)
          .check((context) => {
            context.value = 'a';
          }),
        'a',
      ],
      ['metadata with another pattern', z.string().meta({ pattern: '^\\d$' }), 'a'],
    ] as const
  ).map(
    ([title, field, value]): Rejected => [
      `two keys kept apart only by ${title}`,
      () =>
        load(
          entity('cats', { row: '{name}', schema: z.object({ ...shape, name: field }) }),
          entity('dogs', { row: '{name}', schema: z.object({ ...shape, name: z.literal(value) }) }),
        ),
      /"dogs": its row .* can have the same key as its row .* of "cats".*: by z\.literal, or by a pattern/,
    ],
  ),
  [
    'a separator that an escape of two digits cannot hold',
    { row: '{id}→{day}' },
    /needs a separator after \{id\} that begins with ASCII punctuation/,
  ],
  [
    'a copy that can have the key of an entity',
    () =>
      load(
        entity('cats', { row: 'cat_{id}' }),
        entity('dogs', { row: 'dog_{id}', indexes: { name: intraPartitionIndex({ row: '{name}' }) } }),
      ),
    /the rows of its index "name" \(\{city\} \/ \{name\}\) can have the same key as its row/,
    2,
  ],
  [
    'a list that can have the key of an entity',
    () =>
      load(
        entity('cats', { row: 'cat_{id}' }),
        entity('dogs', { row: 'dog_{id}', indexes: { name: indexEntity({ row: '{name}', holds: '{id}' }) } }),
      ),
    /the rows of its index "name"/,
    2,
  ],
  [
    'a list in the partition that leaves out a field of the row key',
    { row: '{id}_{day}', indexes: { name: indexEntity({ row: 'n_{name}', holds: '{id}' }) } },
    /the index "name" holds too little to find an entity\. Add day to "holds"/,
  ],
  [
    'two indexes with the same key',
    {
      indexes: { name: intraPartitionIndex({ row: 'x_{name}' }), email: intraPartitionIndex({ row: 'x_{email}' }) },
    },
    /the rows of its index "email".* can have the same key as the rows of its index "name"/,
  ],
  [
    'a child that can have the key of a parent',
    () =>
      load(
        ...[entity('areas', { row: 'a_{name}', schema: z.object(shape).required() })].flatMap((parent) => [
          parent,
          entity('parts', { row: 'a_{name}_{day}', schema: z.object(shape).required(), childOf: parent }),
        ]),
      ),
    /"parts": its row .* can have the same key as its row .* of "areas"/,
  ],
  [
    'an archive in the table of its own entity',
    () => load(entity('pets', { archive: { table: 'things' } })),
    /its archived row/,
  ],
  [
    'a second row of a series that can have the key of a first row',
    () =>
      load(
        defineSeries('hours', {
          schema: z.object({ city: text, zone: text }),
          table: 'hours',
          key: { partition: '{city}', row: '{zone}' },
          slots: { name: 'hour', first: 0, last: 23, perRow: 12 },
          access,
        }) as unknown as DeclaredEntity,
      ),
    /its further rows .* can have the same key as its row/,
  ],
  [
    'an index in a table of another entity',
    () => load(entity('cats'), entity('dogs', { table: 'dogs', indexes: { name: byName({ table: 'things' }) } })),
    /its table "things", of an index, an archive or a pattern, is used by "cats"/,
    2,
  ],
  [
    'a key that the route of an index hides',
    {
      partition: '{city}_{name}',
      row: '{id}',
      schema: z.object({ ...shape, id: text }).required(),
      indexes: { name: byName() },
    },
    /GET \/api\/things\/by\/name\/\{name\} hides GET \/api\/things\/\{city\}\/\{name\}\/\{id\} where city is "by" and name is "name"\. Rename the index/,
  ],
  [
    'a file that the route of an index hides',
    {
      schema: z.object({ ...shape, id: text }),
      attachments: { photo },
      indexes: { name: byName() },
    },
    /hides GET \/api\/things\/\{city\}\/\{id\}\/photo where city is "by" and id is "name"/,
  ],
  [
    'an upload id in the key',
    {
      schema: z.object({ ...shape, uploadId: digits }),
      row: '{uploadId}',
      attachments: { photo },
    },
    /has the parameter "uploadid" twice/,
  ],
]);
