import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Declaration, defineEntity } from '../../../../lib/define/define-entity.ts';
import { defineSeries } from '../../../../lib/define/define-series.ts';
import type { DeclaredEntity } from '../../../../lib/define/entity.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../../lib/define/indexes.ts';
import { defineModel } from '../../../../lib/define-model.ts';
import { createRoutes } from '../../../../lib/http/routes.ts';
import { resourcesOf } from '../../../../lib/operations/resources.ts';
import { model } from '../../../fixtures/model.ts';
import { withReferences } from '../../../fixtures/with-references.ts';

const roles = { roles: ['reader', 'hr', 'operator'], operatorRole: 'operator' } as const;

const text = z.string().min(1).max(100);
const digits = z.string().regex(/^\d{6}$/);
const shape = {
  city: text,
  id: digits,
  name: text.optional(),
  email: z.email().optional(),
  day: z.iso.date(),
  year: z.int32(),
  tags: z.array(z.string()),
  large: z.string().optional(),
};
const access = { read: ['hr'], write: ['hr'] } as const;
const photo = { container: 'photos', maxBytes: 1_000, types: ['image/png'] };

type Shape = typeof shape;
type Parts = Partial<Declaration<Shape, string, string>> & { readonly row?: string; readonly partition?: string };

/** A valid entity, changed by `over`. The compiler would reject some of the changes. */
function entity(name: string, { row = `${name}_{id}`, partition = '{city}', ...over }: Parts = {}): DeclaredEntity {
  const declaration = { schema: z.object(shape), table: 'things', key: { partition, row }, access, ...over };
  return defineEntity(name, declaration as never) as unknown as DeclaredEntity;
}

/** Does with the model what the start of an app does. */
const load = (...entities: DeclaredEntity[]) => createRoutes(defineModel({ ...roles, entities }));

const allThings = (over: object = {}) =>
  interPartitionIndex({ table: 'thinglist', partition: 'all', row: '{city}_{id}', ...over });
const byName = (over: object = {}) =>
  interPartitionIndex({ table: 'thingsbyname', partition: '{name#}', row: '{name}', unique: true, ...over });
const ofOne = {
  schema: z.object(shape).required(),
  indexes: {
    email: interPartitionIndex({ table: 'thingsbyemail', partition: '{email#}', row: '{email}', unique: true }),
  },
};
const owned = (over: Parts = {}) =>
  entity('things', {
    ...ofOne,
    ...over,
    access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'email' } },
  } as Parts);
/** An entity that clients write. The city and the id of its owner are the whole partition key. */
const handedIn = (through: DeclaredEntity, over: Parts = {}) =>
  entity('claims', {
    table: 'claims',
    partition: '{city}_{id}',
    row: 'claims_{day}',
    ...over,
    access: { ...access, own: { through, permissions: 'ra' } },
  } as Parts);
const granted = (through: DeclaredEntity, over: Parts = {}) =>
  entity('claims', {
    table: 'claims',
    partition: '{id}',
    row: '{day}',
    ...over,
    access: { ...access, own: { through, permissions: 'r' } },
  } as Parts);
/** An entity and others that copy from it. */
const copying = (over: Parts, link: { readonly reference: object; readonly copies?: object }): DeclaredEntity[] => {
  const source = entity('things', over);
  const denormalized = [{ source, copies: { name: () => '' }, fanOut: true, ...link }];
  return [source, entity('notes', { table: 'notes', row: '{id}_{day}', denormalized } as unknown as Parts)];
};
/** An entity and another one that refers to it. */
const referring = (over: Parts, { references, ...notes }: Readonly<Record<'references' | string, object | string>>) => {
  const things = entity('things', over);
  const to = Object.entries(references ?? {}).map(([field, one]) => [field, { to: things, ...Object(one) }]);
  return [things, entity('notes', { table: 'notes', ...notes, references: Object.fromEntries(to) })];
};
const series = (
  slots: { name: string; first: number; last: number; perRow?: number },
  row = '{id}',
  over: object = {},
) =>
  defineSeries('hours', {
    schema: z.object({ city: text, id: digits }),
    table: 'hours',
    key: { partition: '{city}', row } as never,
    slots,
    access,
    ...over,
  } as never) as unknown as DeclaredEntity;
const month = z.string().regex(/^\d{4}-\d{2}$/);
const spanning = (last: number, per: string, at: z.ZodType = z.iso.date(), field = 'at') =>
  series({ name: 'slot', first: 1, last }, '{at}', { schema: z.object({ city: text, at }), span: { field, per } });

const large = (access: object) =>
  series({ name: 'slot', first: 0, last: 9 }, '{at}', {
    schema: z.object({ id: digits, at: z.iso.date() }),
    key: { partition: '{id}', row: '{at}' },
    slots: { name: 'slot', first: 0, last: 999, overflow: 'blob' },
    access,
  });
const keeping = (per: string, at: z.ZodType, span?: object) =>
  series({ name: 'slot', first: 1, last: 12 }, '{at}', {
    schema: z.object({ city: text, at }),
    period: { per, field: 'at', keep: 12 },
    span,
  });

const BAD: readonly [title: string, model: () => unknown, sentence: RegExp][] = [
  ...resourcesOf([]).tables.map((table): (typeof BAD)[number] => [
    `a table named ${table}`,
    () => load(entity('things', { table })),
    new RegExp(`Entity "things": the table name "${table}" is reserved; every name but .* is accepted`),
  ]),
  ...Object.entries({
    'of an index that is not declared': { indexes: {} },
    'of an index with several partitions': { indexes: { all: allThings({ partition: '{city}' }) } },
    'of a unique index': { indexes: { all: allThings({ unique: true }) } },
    'of references': { indexes: { all: allThings({ copies: 'keys' }) } },
    'of a sparse index': { indexes: { all: allThings({ when: () => true }) } },
    'of an index beside the entity': { indexes: { all: intraPartitionIndex({ row: 'all_{id}' }) } },
  }).map(([title, { indexes }]): (typeof BAD)[number] => [
    `a lookup ${title}`,
    () => load(entity('things', { indexes, lookup: { index: 'all' } })),
    /Entity "things": lookup reads the index "all", which is not a list of all entities; it must be an interPartitionIndex/,
  ]),
  [
    'a lookup of an index that lacks entities',
    () =>
      load(entity('things', { indexes: { all: allThings({ row: '{name}_{city}_{id}' }) }, lookup: { index: 'all' } })),
    /lookup reads the index "all", which lacks entities without "name"; every field of its row key must be required/,
  ],
  [
    'a lookup with copies of a count',
    () => {
      const things = entity('things', { indexes: { all: allThings() }, lookup: { index: 'all' } } as Parts);
      const schema = z.object({ city: text, many: z.int32().optional() });
      const indexes = { all: interPartitionIndex({ table: 'townlist', partition: 'all', row: '{city}' }) };
      const counts = { many: things };
      return load(things, entity('towns', { schema, row: 'town', counts, indexes, lookup: { index: 'all' } } as never));
    },
    /"towns": lookup reads the index "all", whose copies have "many", which changes with another entity/,
  ],
  ...[0, 1.5, 3_601].map((maxAge): (typeof BAD)[number] => [
    `a lookup that is kept for ${maxAge} seconds`,
    () => load(entity('things', { indexes: { all: allThings() }, lookup: { index: 'all', maxAge } })),
    /lookup has the maxAge [\d.]+; it must be a whole number of seconds from 1 to 3600/,
  ]),
  [
    'a table named operations',
    () => load(entity('things', { table: 'operations' })),
    /"things": the table name "operations" is reserved/,
  ],
  [
    'a table whose name could be a day of the table "operations"',
    () => load(entity('things', { table: 'operations20261120' })),
    /"operations": a table for a day could have the name of the table "operations20261120" of "things"/,
  ],
  [
    'a table name that the service reserves',
    () => load(entity('things', { table: 'tables' })),
    /the table name "tables" is reserved/,
  ],
  [
    'an index in a reserved table',
    () => load(entity('things', { indexes: { name: byName({ table: 'poison' }) } })),
    /the table name "poison" is reserved/,
  ],
  [
    'an archive in a reserved table',
    () => load(entity('things', { archive: { table: 'system' } })),
    /the table name "system" is reserved/,
  ],
  ...resourcesOf([]).containers.map((container): (typeof BAD)[number] => [
    `a container named ${container}`,
    () => load(entity('things', { attachments: { photo: { ...photo, container } } })),
    new RegExp(`the container "${container}" of the attachment "photo" is reserved, and its files would be deleted`),
  ]),
  [
    'a container of the Functions host',
    () => load(entity('things', { attachments: { photo: { ...photo, container: 'azure-webjobs-hosts' } } })),
    /"azure-webjobs-hosts" of the attachment "photo" is reserved/,
  ],
  [
    'an entity with the type name of a list',
    () => load(entity('list')),
    /Entity "list": the engine's own rows have this type/,
  ],
  [
    'an entity with the type name of a tombstone',
    () => load(entity('tombstone')),
    /"tombstone": the engine's own rows/,
  ],
  ...['grants', 'health'].map((name): (typeof BAD)[number] => [
    `an entity named ${name}`,
    () => load(entity(name)),
    new RegExp(`Entity "${name}": the API itself has a route /api/${name};`),
  ]),
  [
    'an entity whose name begins with admin',
    () => load(entity('administrators')),
    /"administrators": the Functions host reserves routes that begin with "admin"/,
  ],
  ['an entity whose name begins with runtime', () => load(entity('runtimes')), /begin with "runtime"/],
  [
    'an entity name with a hyphen',
    () => load(entity('my-things', { row: '{id}' })),
    /Entity "my-things": the name is not accepted; a name is 1 to 60/,
  ],
  [
    'two entities with the same name',
    () => load(entity('things'), entity('things', { table: 'others' })),
    /Entity "things" is declared twice/,
  ],
  [
    'an entity with the name of an archive',
    () => load(entity('things', { archive: { table: 'former' } }), entity('former', { table: 'others' })),
    /Entity "former" is declared twice, or is also an archive's table/,
  ],
  [
    'a table name with capitals',
    () => load(entity('things', { table: 'Things' })),
    /the table name "Things" is not accepted; a table name is 3 to 55/,
  ],
  [
    'a container name with an underscore',
    () => load(entity('things', { attachments: { photo: { ...photo, container: 'my_photos' } } })),
    /container name "my_photos", which is not accepted/,
  ],
  [
    'a container name with two hyphens',
    () => load(entity('things', { attachments: { photo: { ...photo, container: 'my--photos' } } })),
    /"my--photos", which is not accepted/,
  ],
  [
    'an index name that is not valid in a path',
    () => load(entity('things', { indexes: { 'by/name': byName() } })),
    /the index name "by\/name" is not accepted/,
  ],
  [
    'a field name that the tables SDK reserves',
    () => load(entity('things', { schema: z.object({ ...shape, timestamp: text }) as never })),
    /the field name "timestamp" is reserved by the tables SDK/,
  ],
  [
    'a field with a hyphen',
    () => load(entity('things', { schema: z.object({ ...shape, 'first-name': text }) as never })),
    /the field name "first-name" is not accepted/,
  ],
  ...Object.getOwnPropertyNames(Object.prototype).flatMap((name): (typeof BAD)[number][] => {
    const sentence = (what: string) => new RegExp(`the ${what} name "${name}" is a member of every JavaScript object`);
    const schema = z.object({ ...shape, [name]: text.optional() }) as never;
    const attachments = { [name]: photo };
    return [
      [`an entity named ${name}`, () => load(entity(name, { row: '{id}' })), sentence('entity')],
      [`an archive named ${name}`, () => load(entity('things', { archive: { table: name } })), sentence('archive')],
      [`an index named ${name}`, () => load(entity('things', { indexes: { [name]: byName() } })), sentence('index')],
      [`a field named ${name}`, () => load(entity('things', { schema })), sentence('field')],
      [`an attachment named ${name}`, () => load(entity('things', { attachments })), sentence('field')],
      [`slots named ${name}`, () => load(series({ name, first: 0, last: 4 })), sentence('slot')],
    ];
  }),
  [
    'two indexes whose names differ only in case',
    () => load(entity('things', { indexes: { name: byName(), Name: byName() } })),
    /Entity "things": the index name "Name" is not accepted/,
  ],
  [
    'index names that differ only in the case of an inner letter',
    () => load(entity('things', { indexes: { byName: byName(), byname: byName({ table: 'othernames' }) } })),
    /another route has the function name "things-by-byname"/,
  ],
  [
    'periods that are kept for -1 days',
    () => load(entity('logins', { period: { per: 'day', field: 'day', keep: -1 }, row: '{day}_{id}' })),
    /Entity "logins": period.keep is -1; it must be a whole number of days from 1/,
  ],
  [
    'an archive of periods in a table',
    () => {
      const period = { per: 'day', field: 'day', keep: 3, archiveTo: 'table' as 'blob' } as const;
      return load(entity('logins', { period, row: '{day}_{id}' }));
    },
    /Entity "logins": period.archiveTo is "table"; "blob" is accepted/,
  ],
  [
    'an archive of periods with files',
    () => {
      const period = { per: 'day', field: 'day', keep: 3, archiveTo: 'blob' } as const;
      return load(entity('logins', { period, attachments: { photo }, row: '{day}_{id}' }));
    },
    /period.archiveTo cannot be combined with the attachments photo/,
  ],
  [
    'a file that may be kept for a negative time',
    () => load(entity('things', { attachments: { photo: { ...photo, maxAge: -1 } } })),
    /the attachment "photo" has maxAge -1; it must be a whole number of seconds from 0 to 31536000/,
  ],
  [
    'a file that is public and restricted',
    () => {
      const restricted = { ...access, restricted: { photo: ['hr'] } };
      return load(
        entity('things', { attachments: { photo: { ...photo, public: true } }, access: restricted } as Parts),
      );
    },
    /the attachment "photo" is public and restricted/,
  ],
  [
    'periods that are kept for 0 days',
    () => load(entity('logins', { period: { per: 'day', field: 'day', keep: 0 }, row: '{day}_{id}' })),
    /period.keep is 0;/,
  ],
  [
    'periods that are kept for half a day',
    () => load(entity('logins', { period: { per: 'day', field: 'day', keep: 0.5 }, row: '{day}_{id}' })),
    /period.keep is 0.5/,
  ],
  [
    'a period of a field outside the key',
    () => load(entity('logins', { period: { per: 'day', field: 'day', keep: 3 } })),
    /period.field "day" is not in the key/,
  ],
  [
    'a period of a field that is not an instant',
    () => load(entity('logins', { period: { per: 'day', field: 'id', keep: 3 } })),
    /period.field "id" is not an instant/,
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
    'a period by the week',
    () => load(entity('logins', { period: { per: 'week' as 'day', field: 'day', keep: 3 }, row: '{day}_{id}' })),
    /period.per is "week"; "day", "month", "year" are accepted/,
  ],
  [
    'periods that are kept for 101 years',
    () => load(entity('logins', { period: { per: 'year', field: 'day', keep: 101 }, row: '{day}_{id}' })),
    /period.keep is 101; it must be a whole number of years from 1 to 100/,
  ],
  ...(['month', 'year'] as const).map((per): (typeof BAD)[number] => [
    `a table that is a ${per} of another entity`,
    () =>
      load(
        entity('logins', { table: 'logins', period: { per, field: 'day', keep: 3 }, row: '{day}_{id}' }),
        entity('things', { table: per === 'month' ? 'logins202611' : 'logins2026' }),
      ),
    new RegExp(`Entity "logins": a table for a ${per} could have the name of the table "logins2026`),
  ]),
  [
    'periods of two entities whose tables could have one name',
    () =>
      load(
        entity('logins', { table: 'logins', period: { per: 'day', field: 'day', keep: 3 }, row: '{day}_{id}' }),
        entity('old', { table: 'logins2011', period: { per: 'year', field: 'day', keep: 3 }, row: '{day}_{id}' }),
      ),
    /a table for a day could have the name of the table "logins2011" of "old"/,
  ],
  [
    'a table whose name is a day of another entity',
    () =>
      load(
        entity('logins', { table: 'logins', period: { per: 'day', field: 'day', keep: 3 }, row: '{day}_{id}' }),
        entity('things', { table: 'logins20261120' }),
      ),
    /Entity "logins": a table for a day could have the name of the table "logins20261120" of "things"/,
  ],
  [
    'an index table whose name is a day of another entity',
    () =>
      load(
        entity('logins', { table: 'logins', period: { per: 'day', field: 'day', keep: 3 }, row: '{day}_{id}' }),
        entity('things', { indexes: { name: byName({ table: 'logins20261120' }) } }),
      ),
    /"logins": a table for a day could have the name of the table "logins20261120" of "things"/,
  ],
  [
    'two entities whose periods share tables',
    () =>
      load(
        ...['logins', 'logouts'].map((name) =>
          entity(name, { table: 'logins', period: { per: 'day', field: 'day', keep: 3 }, row: `${name}_{day}_{id}` }),
        ),
      ),
    /"logouts": a table for a day could have the name of the table "logins" of "logins"/,
  ],
  [
    'an optional field in the key',
    () => load(entity('things', { row: 'x_{name}' })),
    /the key field "name" is optional, and an entity without it has no key; it must be required or have a default/,
  ],
  ['a list in the key', () => load(entity('things', { row: 'x_{tags[]}' })), /the key has a list in it/],
  [
    'a list in the key without conversion',
    () => load(entity('things', { row: 'x_{tags}' })),
    /the field "tags", which is neither a text nor a number/,
  ],
  [
    'a Boolean in the key',
    () => load(entity('things', { schema: z.object({ ...shape, isOn: z.boolean() }) as never, row: 'x_{isOn}' })),
    /the field "isOn", which is neither a text nor a number/,
  ],
  [
    'a text in the key with a width',
    () => load(entity('things', { row: 'x_{id:6}' })),
    /the field "id", which has a width and is not a whole number/,
  ],
  [
    'a text in the key as an instant',
    () => load(entity('things', { row: '{id~}' })),
    /"id", of which \{…~\} needs an instant/,
  ],
  [
    'a field that the schema does not have',
    () => load(entity('things', { row: 'x_{town}' })),
    /"town", which the schema does not have/,
  ],
  [
    'a field that the key contains only as a hash',
    () => load(entity('things', { row: 'x_{id#}' })),
    /the key has the field "id" only as a hash/,
  ],
  [
    'a thousand buckets',
    () => load(entity('things', { partition: '{id%1000}', row: '{id}' })),
    /in 1000 buckets; 1 to 256 are accepted/,
  ],
  [
    'a slash between the fields of a key',
    () => load(entity('things', { row: 'a/b_{id}' })),
    /the row key has the character "\/" between its fields/,
  ],
  [
    'an encrypted field in the key',
    () => load(entity('things', { encrypted: ['id'] } as never)),
    /the encrypted field "id" is in the key; keys are stored in plain text/,
  ],
  [
    'a restricted field in the key',
    () => load(entity('things', { access: { ...access, restricted: { id: ['hr'] } } })),
    /the restricted field "id" is part of the key/,
  ],
  [
    'a large field in the key',
    () => load(entity('things', { large: ['id'] })),
    /the large field "id" is in the key; a key is at most 512/,
  ],
  [
    'a move that keeps the partition',
    () => load(entity('things', { movable: ['id'] })),
    /"id" is movable and is not in the partition key/,
  ],
  ['a key without a field', () => load(entity('things', { partition: 'all', row: 'one' })), /the key has no field/],
  [
    'a version without an upgrade from the previous one',
    () => load(entity('things', { version: 3, upgrades: { 1: (values) => values } })),
    /nothing upgrades version 2/,
  ],
  [
    'an upgrade from a future version',
    () => load(entity('things', { upgrades: { 1: (values) => values } })),
    /a function for version 1, which is not before version 1/,
  ],
  ['a version 0', () => load(entity('things', { version: 0 })), /version is 0/],
  ['a negative maxAge', () => load(entity('things', { maxAge: -1 })), /maxAge is -1/],
  [
    'files of zero bytes',
    () => load(entity('things', { attachments: { photo: { ...photo, maxBytes: 0 } } })),
    /maxBytes 0; it must be a whole number from 1/,
  ],
  [
    'files that are larger than a request body',
    () => load(entity('things', { attachments: { photo: { ...photo, maxBytes: 1e9 } } })),
    /the largest body of the Functions host/,
  ],
  [
    'files of a type that cannot be detected from their bytes',
    () => load(entity('things', { attachments: { photo: { ...photo, types: ['text/csv'] } } })),
    /accepts text\/csv, which cannot be told/,
  ],
  [
    'slots that end before they begin',
    () => load(series({ name: 'hour', first: 5, last: 4 })),
    /Entity "hours": the slots run from 5 to 4; whole numbers from 0/,
  ],
  [
    'slots with the name of a key field',
    () => load(series({ name: 'id', first: 0, last: 4 })),
    /has the parameter "id" twice/,
  ],
  [
    'a span over a field that is not in the key',
    () => load(spanning(24, 'day', z.iso.date(), 'day')),
    /span.field "day" is not in the key/,
  ],
  ['a span over weeks', () => load(spanning(24, 'week')), /span.per is "week"; "day", "month", "year" are accepted/],
  ['a span of 11 slots a day', () => load(spanning(11, 'day')), /11 slots do not divide a day, .*; 24 \(hours\)/],
  ['a span of 13 slots a year', () => load(spanning(13, 'year', z.int32())), /13 slots do not divide a year/],
  ['a span of 30 slots a month', () => load(spanning(30, 'month', month)), /30 slots do not divide a month/],
  [
    'a span of days over instants',
    () => load(spanning(24, 'day', z.iso.datetime())),
    /span.field "at" is not a day; its schema must accept values such as "2024-02-29"/,
  ],
  ['a span of days over any texts', () => load(spanning(24, 'day', text)), /span.field "at" is not a day/],
  ['a span of days over years', () => load(spanning(24, 'day', z.int32())), /span.field "at" is not a day/],
  [
    'a series of more rows than a transaction changes',
    () => series({ name: 'slot', first: 0, last: 9_999, perRow: 50 }),
    /the slots would take 200 rows, and one transaction changes 100; a larger perRow, or slots.overflow "blob"/,
  ],
  [
    'a series with rows and a blob',
    () =>
      series({ name: 'slot', first: 0, last: 9_999, perRow: 50 }, '{id}', {
        slots: { name: 'slot', first: 0, last: 999, perRow: 50, overflow: 'blob' },
      }),
    /slots.perRow and slots.overflow exclude each other/,
  ],
  [
    'a series that overflows into a row',
    () =>
      series({ name: 'slot', first: 0, last: 9 }, '{id}', {
        slots: { name: 'slot', first: 0, last: 999, overflow: 'row' },
      }),
    /slots.overflow is "row"; "blob" is accepted/,
  ],
  [
    'more slots than a blob has',
    () =>
      series({ name: 'slot', first: 0, last: 9 }, '{id}', {
        slots: { name: 'slot', first: 0, last: 100_000, overflow: 'blob' },
      }),
    /the slots run from 0 to 100000; whole numbers from 0 to 99999/,
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
    'a series of years that keeps months',
    () => load(keeping('month', z.int32().max(9999), { field: 'at', per: 'year' })),
    /period.field "at" is not an instant/,
  ],
  [
    'a series with a period that is archived',
    () =>
      series({ name: 'slot', first: 1, last: 12 }, '{id}', {
        period: { per: 'day', field: 'id', keep: 1, archiveTo: 'blob' },
      }),
    /Entity "hours": period.archiveTo is not accepted for a series/,
  ],
  [
    'a child without its parent',
    () => load(entity('parts', { row: 'things_{id}_{day}', childOf: entity('things') })),
    /Entity "parts" is a child of "things", which is not in the model; add "things", or leave "parts" out/,
  ],
  [
    'a count of an entity outside the model',
    () =>
      load(
        entity('cities', {
          schema: z.object({ ...shape, count: z.int32() }) as never,
          row: 'city',
          counts: { count: entity('things') } as never,
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
          denormalized: [
            { source: entity('things'), reference: { field: 'name', keyField: 'id' }, copies: { email: () => '' } },
          ],
        }),
      ),
    /"cities" copies fields from "things", which is not in the model/,
  ],
  [
    'a grant through an entity outside the model',
    () => load(granted(owned(), { partition: '{city}_{id}' })),
    /"claims" is granted through "things", which is not in the model; add "things"/,
  ],
  [
    'a copy of an entity in another partition',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            partition: '{name}',
            schema: z.object(shape).required() as never,
            row: 'city',
            denormalized: [
              { source: entity('things'), reference: { field: 'name', keyField: 'id' }, copies: { email: () => '' } },
            ],
          }),
        ),
      ),
    /which is in another table or partition/,
  ],
  [
    'a reference to a field that is not in the key',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            row: 'city',
            denormalized: [
              {
                source: entity('things'),
                reference: { field: 'name', keyField: 'email' },
                copies: { email: () => '' },
              },
            ],
          }),
        ),
      ),
    /by the reference name to email/,
  ],
  [
    'a child with the name of a field of its parent',
    () =>
      load(
        ...[entity('things', { schema: z.object({ ...shape, parts: text }) as never })].flatMap((parent) => [
          parent,
          entity('parts', { row: 'things_{id}_{day}', childOf: parent }),
        ]),
      ),
    /has a field "parts", which a read with \?include=parts would replace/,
  ],
  [
    'an index of a count',
    () =>
      load(
        ...withReferences(
          entity('cities', {
            schema: z.object({ ...shape, count: z.int32() }) as never,
            row: 'city',
            counts: { count: entity('things') } as never,
            indexes: { count: intraPartitionIndex({ row: 'count_{count:4}' }) as never },
          }),
        ),
      ),
    /the index "count" uses "count", which changes with another entity/,
  ],
  [
    'an own index that is not declared',
    () => load(entity('things', { access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'mail' } } })),
    /access.own names the index "mail", which is not declared/,
  ],
  [
    'an own index that is inherited from Object',
    () =>
      load(entity('things', { access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'constructor' } } })),
    /"constructor", which is not declared/,
  ],
  [
    'an own index that is not unique',
    () =>
      load(
        entity('things', {
          indexes: { email: intraPartitionIndex({ row: 'email_{email}' }) },
          access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'email' } },
        }),
      ),
    /"email", which may lead to several entities; it must be a unique index of one field/,
  ],
  [
    'a grant of a partition that two entities can share',
    () => load(...[owned()].flatMap((through) => [through, granted(through)])),
    /Entity "claims": access.own grants the partition by id, which two of "things" may share, so one could open the other's; "things" needs a unique/,
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
            } as never,
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
            } as never,
          }),
        ].flatMap((through) => [through, granted(through)]),
      ),
    /which two of "things" may share/,
  ],
  [
    'a fan-out that nothing finds',
    () => load(...copying({}, { reference: { field: 'name', keyField: 'id' } })),
    /the denormalized fields copy from "things" \(fanOut\), and cannot find the entities of one source by one query: name, city must be the first fields/,
  ],
  [
    'a fan-out without a key field of the source',
    () => load(...copying({}, { reference: { field: 'year', keyField: 'id' } })),
    /whose key field "id" needs the field "year" of the same type/,
  ],
  [
    'a fan-out from an entity whose tables are dropped',
    () =>
      load(
        ...copying(
          { row: '{day}_{id}', table: 'days', period: { per: 'day', field: 'day', keep: 3 } },
          { reference: { field: 'id', keyField: 'id' } },
        ),
      ),
    /\(fanOut\), and "things" has a period/,
  ],
  [
    'a fan-out to a required field',
    () => load(...copying({}, { copies: { day: () => '' }, reference: { field: 'id', keyField: 'id' } })),
    /\(fanOut\) to "day", which is required/,
  ],
  [
    'a fan-out of one reference in two parts',
    () => {
      const [things, notes] = copying({}, { reference: { field: 'id', keyField: 'id' } });
      const [link] = notes?.denormalized ?? [];
      const denormalized = [link, { ...link, copies: { email: () => '' } }];
      return load(things as DeclaredEntity, { ...notes, denormalized } as DeclaredEntity);
    },
    /\(fanOut\) by "id" twice; declare all copies of one reference together/,
  ],
  [
    'a fan-out from an entity that clients write',
    () => {
      const own = owned();
      const source = handedIn(own);
      const link = { source, reference: { field: 'day', keyField: 'day' }, copies: { name: () => '' }, fanOut: true };
      const notes = entity('notes', {
        table: 'notes',
        partition: '{city}_{id}',
        row: '{day}',
        denormalized: [link as never],
      });
      return load(own, source, notes);
    },
    /clients write "claims" straight to storage \(access.own\), where nothing updates copies/,
  ],
  [
    'a reference that leads to no single entity',
    () => load(...referring({}, { references: { name: { by: 'email', onDelete: 'report' } } })),
    /the reference "name" to "things" leads to no single entity: "things" needs a unique inter-partition index of "email" alone/,
  ],
  [
    'a reference through a unique index with a condition',
    () => {
      const email = ofOne.indexes.email;
      const indexes = { email: { ...email, when: () => true } };
      return load(...referring({ indexes } as Parts, { references: { name: { by: 'email', onDelete: 'report' } } }));
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
    /the reference "id" to "things" is checked at a write, which would tell operator what exists; roles that write "notes" must be able to read "id" of "things"/,
  ],
  [
    'a reference by a field that writers may not read',
    () =>
      load(
        ...referring(
          { ...ofOne, access: { read: ['hr', 'reader'], write: ['hr'], restricted: { email: ['hr'] } } } as never,
          { references: { email: { onDelete: 'report' } }, access: { read: ['hr'], write: ['hr', 'reader'] } },
        ),
      ),
    /tell reader what exists; roles that write "notes" must be able to read "email" of "things"/,
  ],
  [
    'a reference that tells deleters what they may not read',
    () =>
      load(
        ...referring({ access: { read: ['hr'], write: ['hr', 'operator'] } } as Parts, {
          references: { id: { onDelete: 'refuse' } },
          row: '{id}',
          access: { read: ['hr'], write: ['hr'] },
        }),
      ),
    /refuses deletes, which would tell operator what exists; roles that write "things" must be able to read "id" of "notes"/,
  ],
  [
    'a reference that nothing finds',
    () => load(...referring({}, { references: { name: { by: 'id', onDelete: 'refuse' } } })),
    /the reference "name" to "things" refuses deletes and cannot find who refers to an entity by one query: name, city must be the first fields/,
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
    /has the onDelete "cascade"; refuse and report are accepted/,
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
  ],
  [
    'a reference to an entity that is not in the model',
    () => load(...referring({}, { references: { name: { by: 'id', onDelete: 'report' } } }).slice(1)),
    /Entity "notes" refers to "things", which is not in the model/,
  ],
  [
    'a table that clients write and that another entity uses',
    () => load(...[owned()].flatMap((own) => [own, handedIn(own), entity('notes', { table: 'claims' })])),
    /clients may write its table "claims" .*which "notes" uses too/,
  ],
  [
    'a large field that clients write',
    () => load(...[owned()].flatMap((own) => [own, handedIn(own, { large: ['large'] })])),
    /clients may write it straight to storage .* keeps up large entities/,
  ],
  [
    'a unique index by a hash alone',
    () => load(entity('things', { indexes: { name: byName({ row: 'x' }) } })),
    /is unique and has "name" only as a hash/,
  ],
  [
    'a list index of a field that is not a list',
    () =>
      load(
        entity('things', {
          indexes: { tag: interPartitionIndex({ table: 'tags', partition: '{name[]}', row: '{city}_{id}' }) },
        }),
      ),
    /"name", of which \{…\[\]\} needs a list of texts/,
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
        entity('dogs', { row: 'pet_{name}', schema: z.object(shape).required() as never }),
      ),
    /"dogs": its row .* can have the same key as its row .* of "cats"/,
  ],
  [
    'a copy that can have the key of an entity',
    () =>
      load(
        entity('cats', { row: 'cat_{id}' }),
        entity('dogs', { row: 'dog_{id}', indexes: { name: intraPartitionIndex({ row: '{name}' }) } }),
      ),
    /the rows of its index "name" \(\{city\} \/ \{name\}\) can have the same key as its row/,
  ],
  [
    'a list that can have the key of an entity',
    () =>
      load(
        entity('cats', { row: 'cat_{id}' }),
        entity('dogs', { row: 'dog_{id}', indexes: { name: indexEntity({ row: '{name}', holds: '{id}' }) } }),
      ),
    /the rows of its index "name"/,
  ],
  [
    'two indexes with the same key',
    () =>
      load(
        entity('things', {
          indexes: { name: intraPartitionIndex({ row: 'x_{name}' }), email: intraPartitionIndex({ row: 'x_{email}' }) },
        }),
      ),
    /the rows of its index "email".* can have the same key as the rows of its index "name"/,
  ],
  [
    'a child that can have the key of a parent',
    () =>
      load(
        ...[entity('areas', { row: 'a_{name}', schema: z.object(shape).required() as never })].flatMap((parent) => [
          parent,
          entity('parts', { row: 'a_{name}_{day}', schema: z.object(shape).required() as never, childOf: parent }),
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
  ],
  [
    'a key that the route of an index hides',
    () =>
      load(
        entity('things', {
          partition: '{city}_{name}',
          row: '{id}',
          schema: z.object({ ...shape, id: text }).required() as never,
          indexes: { name: byName() as never },
        }),
      ),
    /GET \/api\/things\/by\/name\/\{name\} hides GET \/api\/things\/\{city\}\/\{name\}\/\{id\} where city is "by" and name is "name"; rename the index/,
  ],
  [
    'a file that the route of an index hides',
    () =>
      load(
        entity('things', {
          schema: z.object({ ...shape, id: text }) as never,
          attachments: { photo },
          indexes: { name: byName() },
        }),
      ),
    /hides GET \/api\/things\/\{city\}\/\{id\}\/photo where city is "by" and id is "name"/,
  ],
  [
    'an upload id in the key',
    () =>
      load(
        entity('things', {
          schema: z.object({ ...shape, uploadId: digits }) as never,
          row: '{uploadId}',
          attachments: { photo },
        }),
      ),
    /has the parameter "uploadid" twice/,
  ],
];

describe('rejects a model with a message:', () => {
  test.each(BAD)('%s', (_, model, sentence) => {
    expect(model).toThrow(sentence);
  });

  test('in at least forty cases', () => {
    expect(BAD.length).toBeGreaterThanOrEqual(40);
  });

  test('with every error in one message', () => {
    expect(() => load(entity('things', { table: 'poison' }), entity('list', { table: 'system' }))).toThrow(
      /^The model is not valid\.\nEntity "list": the engine.*\nEntity "things": the table name "poison".*\nEntity "list": the table name "system"[^\n]*$/,
    );
  });
});

describe('accepts a model', () => {
  test('with all sample entities, and with each pack alone', () => {
    expect(() => load(...model.list)).not.toThrow();
    const names = (...list: string[]) => model.list.filter(({ name }) => list.includes(name));
    for (const pack of [
      names('movies'),
      names('customers', 'orders', 'categories', 'products'),
      names('employees'),
      names('employees', 'departments', 'reviews'),
    ])
      expect(() => load(...pack)).not.toThrow();
  });

  test('with a partition that is granted by a unique field or by the whole key', () => {
    const id = interPartitionIndex({ table: 'thingsbyid', partition: '{id#}', row: '{id}', unique: true });
    const through = owned({ indexes: { ...ofOne.indexes, id } as never });
    expect(() => load(through, granted(through))).not.toThrow();
    const other = owned();
    expect(() => load(other, granted(other, { partition: '{city}_{id}' }))).not.toThrow();
    expect(() => load(other, handedIn(other))).not.toThrow();
  });

  test('with any combination of the optional parts', () => {
    const options: Parts[] = [
      { archive: { table: 'former' } },
      { movable: ['city'] },
      { maxAge: 60 },
      { large: ['large'] },
      { version: 2, upgrades: { 1: (values) => values } },
      { attachments: { avatar: photo } },
      { attachments: { archive: { ...photo, container: 'scans' } } },
      { row: '{id}' },
      { row: '{day~}_{id}' },
      { row: '{year:4}_{id}' },
      { partition: '{city}_{id%8}' },
    ];
    const indexes = {
      name: intraPartitionIndex({ row: 'name_{name}', copies: 'keys' }),
      list: indexEntity({ row: 'list_{name}', holds: '{id}' }),
      remote: interPartitionIndex({
        table: 'elsewhere',
        partition: '{name}',
        row: '{year:4}_{day}_{city}_{id}',
        copies: 'keys',
      }),
      unique: interPartitionIndex({
        table: 'uniquename',
        partition: '{name#}',
        row: '{name}',
        unique: true,
        copies: 'keys',
      }),
      tags: interPartitionIndex({
        table: 'bytag',
        partition: '{tags[]}',
        row: '{city}_{day}_{year:4}_{id}',
        copies: ['name'],
      }),
    };
    const model = fc.record({ parts: fc.subarray(options), names: fc.subarray(Object.keys(indexes)) });
    fc.assert(
      fc.property(model, ({ parts, names }) => {
        const chosen = Object.fromEntries(Object.entries(indexes).filter(([name]) => names.includes(name)));
        const others = [entity('others', { table: 'others' }), entity('beside', { row: 'beside~{id}' })];
        const things = entity('things', { ...Object.assign({}, ...parts), indexes: chosen });
        expect(load(things, ...others).length).toBeGreaterThan(10);
      }),
    );
  });
});
