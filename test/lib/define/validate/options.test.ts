import { expect, test } from 'vitest';
import { z } from 'zod';
import { interPartitionIndex, intraPartitionIndex, subject, type Values } from '../../../../lib/index.ts';
import {
  access,
  allThings,
  byName,
  entity,
  keeping,
  load,
  month,
  type Parts,
  photo,
  type Rejected,
  series,
  shape,
  spanning,
  testRejections,
  text,
} from './declarations.ts';

/** The validation of lookups, periods, files, versions and series. */

const ofPeriods = (period: object, over: Parts = {}): Parts => ({
  period: { per: 'day', field: 'day', keep: 3, ...period },
  row: '{day}_{id}',
  ...over,
});
const logins = (period = {}) => entity('logins', ofPeriods(period, { table: 'logins' }));
const withPhoto = (over: object): Parts => ({ attachments: { photo: { ...photo, ...over } } });

testRejections([
  ...Object.entries({
    'of an index that is not declared': { indexes: {} },
    'of an index with several partitions': { indexes: { all: allThings({ partition: '{city}' }) } },
    'of a unique index': { indexes: { all: allThings({ unique: true }) } },
    'of references': { indexes: { all: allThings({ copies: 'keys' }) } },
    'of a sparse index': { indexes: { all: allThings({ when: () => true }) } },
    'of an index beside the entity': { indexes: { all: intraPartitionIndex({ row: 'all_{id}' }) } },
  }).map(
    ([title, { indexes }]): Rejected => [
      `a lookup ${title}`,
      { indexes, lookup: { index: 'all' } },
      /Entity "things": lookup reads the index "all", which is not a list of all entities\. Name an interPartitionIndex/,
    ],
  ),
  [
    'a lookup of an index that is left to the queue',
    { indexes: { all: allThings({ settle: 'queue' }) }, lookup: { index: 'all' } },
    /lookup reads the index "all", which has settle "queue", and a process keeps what it has read\. Use "inline"/,
  ],
  [
    'a lookup of an index that lacks entities',
    { indexes: { all: allThings({ row: '{name}_{city}_{id}' }) }, lookup: { index: 'all' } },
    /lookup reads the index "all", which lacks entities without "name"\. Make every field of its row key required/,
  ],
  [
    'a lookup with copies of a count',
    () => {
      const things = entity('things', { indexes: { all: allThings() }, lookup: { index: 'all' } });
      const schema = z.object({ city: text, many: z.int32().optional() });
      const indexes = { all: interPartitionIndex({ table: 'townlist', partition: 'all', row: '{city}' }) };
      const counts = { many: things };
      return load(things, entity('towns', { schema, row: 'town', counts, indexes, lookup: { index: 'all' } }));
    },
    /"towns": lookup reads the index "all", whose copies have "many", which changes with another entity/,
    2,
  ],
  ...[0, 1.5, 3_601].map(
    (maxAge): Rejected => [
      `a lookup that is kept for ${maxAge} seconds`,
      { indexes: { all: allThings() }, lookup: { index: 'all', maxAge } },
      /lookup has the maxAge [\d.]+\. Use a whole number of seconds from 1 to 3600/,
    ],
  ),
  ...(
    [
      ['of an optional field', { name: () => 'x' }, {}, /defaults names the field "name", which is optional/],
      ['of a file', { photo: () => 'x' }, { attachments: { photo } }, /field "photo", which is optional/],
      [
        'beside one of the schema',
        { kept: () => 'x' },
        { schema: z.object({ ...shape, kept: text.default('x') }) },
        /defaults names the field "kept", which has a default in the schema\. Remove one of them/,
      ],
      [
        'of a derived field',
        { city: () => 'x' },
        { derived: { city: () => 'y' } },
        /the field "city" is set twice, by derived and by defaults/,
      ],
      [
        'of a field that is set from the caller',
        { city: () => 'x' },
        { access: { ...access, set: { city: subject() } } },
        /access\.set names "city", which has a default \(defaults\)\. Remove one of them/,
        2,
      ],
    ] as const
  ).map(
    ([title, defaults, over, error, errors]): Rejected => [`a default ${title}`, { defaults, ...over }, error, errors],
  ),
  [
    'a large field that is no text',
    { schema: z.object({ ...shape, age: z.int32() }), large: ['age'] },
    /large field "age" is not a text/,
  ],
  ['a compressed field that is not large', { compressed: ['name'] }, /compressed field "name" is not in large/],
  ['a tier that does not exist', withPhoto({ tier: 'warm' }), /"photo" has the tier "warm"\. Use cool or cold/],
  ['coolAfterDays 0', withPhoto({ coolAfterDays: 0 }), /"photo" has coolAfterDays 0\. Use a whole number from 1/],
  [
    'two tiers',
    withPhoto({ coolAfterDays: 30, tier: 'cool' }),
    /is stored in the tier cool\. Remove tier or coolAfterDays/,
  ],
  [
    'files of two ages in one container',
    () =>
      load(
        entity('things', withPhoto({ coolAfterDays: 30 })),
        entity('others', { table: 'others', ...withPhoto({ coolAfterDays: 60 }) }),
      ),
    /"photo" has coolAfterDays 30, and another attachment in its container "photos" has not/,
    2,
  ],
  ...[1.5, 3_651].map(
    (coolAfterDays): Rejected => [
      `coolAfterDays ${coolAfterDays}`,
      withPhoto({ coolAfterDays }),
      /"photo" has coolAfterDays [\d.]+\. Use a whole number from 1 to 3650/,
    ],
  ),
  [
    'a file that may be kept for more than a year',
    withPhoto({ maxAge: 31_536_001 }),
    /the attachment "photo" has maxAge 31536001\. Use a whole number of seconds/,
  ],
  [
    'a period of an entity that moves',
    ofPeriods({}, { movable: ['city'] }),
    /an entity with a period cannot use movable, because its tables are dropped as a whole/,
  ],
  [
    'periods that are kept for -1 days',
    ofPeriods({ keep: -1 }),
    /Entity "things": period.keep is -1\. Use a whole number of days from 1 to 36500/,
  ],
  [
    'an archive of periods in a table',
    ofPeriods({ archiveTo: 'table' }),
    /Entity "things": period.archiveTo is "table"\. Use "blob"/,
  ],
  [
    'an archive of periods with files',
    ofPeriods({ archiveTo: 'blob' }, { attachments: { photo } }),
    /period.archiveTo cannot be combined with the attachments photo/,
  ],
  [
    'a file that may be kept for a negative time',
    withPhoto({ maxAge: -1 }),
    /the attachment "photo" has maxAge -1\. Use a whole number of seconds from 0 to 31536000/,
  ],
  [
    'a file that is public and restricted',
    { ...withPhoto({ public: true }), access: { ...access, restricted: { photo: ['hr'] } } },
    /the attachment "photo" is public and restricted/,
  ],
  [
    'periods that are kept for 0 days',
    ofPeriods({ keep: 0 }),
    /period.keep is 0\. Use a whole number of days from 1 to 36500/,
  ],
  ['periods that are kept for half a day', ofPeriods({ keep: 0.5 }), /period.keep is 0.5/],
  ['a period of a field outside the key', ofPeriods({}, { row: '{id}' }), /period.field "day" is not in the key/],
  ['a period of a field that is not an instant', ofPeriods({ field: 'id' }), /period.field "id" is not an instant/],
  ['a period by the week', ofPeriods({ per: 'week' }), /period.per is "week"\. Use one of "day", "month", "year"/],
  [
    'periods that are kept for 101 years',
    ofPeriods({ per: 'year', keep: 101 }),
    /period.keep is 101\. Use a whole number of years from 1 to 100/,
  ],
  ...(['month', 'year'] as const).map(
    (per): Rejected => [
      `a table that is a ${per} of another entity`,
      () => load(logins({ per }), entity('things', { table: per === 'month' ? 'logins202611' : 'logins2026' })),
      new RegExp(`Entity "logins": a table for a ${per} could have the name of the table "logins2026`),
    ],
  ),
  [
    'periods of two entities whose tables could have one name',
    () => load(logins(), entity('old', ofPeriods({ per: 'year' }, { table: 'logins2011' }))),
    /a table for a day could have the name of the table "logins2011" of "old"/,
  ],
  [
    'a table whose name is a day of another entity',
    () => load(logins(), entity('things', { table: 'logins20261120' })),
    /Entity "logins": a table for a day could have the name of the table "logins20261120" of "things"/,
  ],
  [
    'an index table whose name is a day of another entity',
    () => load(logins(), entity('things', { indexes: { name: byName({ table: 'logins20261120' }) } })),
    /"logins": a table for a day could have the name of the table "logins20261120" of "things"/,
  ],
  [
    'two entities whose periods share tables',
    () =>
      load(
        ...['logins', 'logouts'].map((name) =>
          entity(name, ofPeriods({}, { table: 'logins', row: `${name}_{day}_{id}` })),
        ),
      ),
    /"logouts": a table for a day could have the name of the table "logins" of "logins"/,
    2,
  ],
  [
    'a version without an upgrade from the previous one',
    { version: 3, upgrades: { 1: (values: Values) => values } },
    /nothing upgrades version 2/,
  ],
  [
    'an upgrade from a future version',
    { upgrades: { 1: (values: Values) => values } },
    /a function for version 1, which is not before version 1/,
  ],
  ['a version 0', { version: 0 }, /version is 0/],
  ['a negative maxAge', { maxAge: -1 }, /maxAge is -1/],
  [
    'a label that the schema lacks',
    { label: 'nickname' },
    /label names the field "nickname", which the schema does not/,
  ],
  ['a label that is no text', { label: 'year' }, /the label "year" is no text/],
  ['an encrypted label', { label: 'name', encrypted: ['name'] }, /the label "name" is encrypted/],
  ['a large label', { label: 'name', large: ['name'] }, /the label "name" is large or in a split/],
  [
    'a restricted label',
    { label: 'name', access: { ...access, restricted: { name: ['hr'] } } },
    /the label "name" is restricted, and labels are for all who read the entity/,
  ],
  ['files of zero bytes', withPhoto({ maxBytes: 0 }), /maxBytes 0\. Use a whole number from 1/],
  ['files that are larger than a request body', withPhoto({ maxBytes: 1e9 }), /the largest body of the Functions host/],
  [
    'files of a type that cannot be detected from their bytes',
    withPhoto({ types: ['text/csv'] }),
    /accepts text\/csv, which cannot be told/,
  ],
  [
    'slots that end before they begin',
    () => load(series({ name: 'hour', first: 5, last: 4 })),
    /Entity "hours": the slots run from 5 to 4\. Use whole numbers from 0 to 99999, in order/,
  ],
  [
    'slots with the name of a key field',
    () => load(series({ name: 'id', first: 0, last: 4 })),
    /has the parameter "id" twice/,
    2,
  ],
  [
    'a span over a field that is not in the key',
    () => load(spanning(24, 'day', z.iso.date(), 'day')),
    /span.field "day" is not in the key/,
  ],
  ['a span over weeks', () => load(spanning(24, 'week')), /span.per is "week"\. Use one of "day", "month", "year"/],
  ['a span of 11 slots a day', () => load(spanning(11, 'day')), /11 slots do not divide a day, .*\. Use 24 \(hours\)/],
  ['a span of 13 slots a year', () => load(spanning(13, 'year', z.int32())), /13 slots do not divide a year/],
  ['a span of 30 slots a month', () => load(spanning(30, 'month', month)), /30 slots do not divide a month/],
  [
    'a span of days over instants',
    () => load(spanning(24, 'day', z.iso.datetime())),
    /span.field "at" is not a day\. Let its schema accept values such as "2024-02-29" and no others/,
  ],
  ['a span of days over any texts', () => load(spanning(24, 'day', text)), /span.field "at" is not a day/],
  ['a span of days over years', () => load(spanning(24, 'day', z.int32())), /span.field "at" is not a day/],
  [
    'a series of more rows than a transaction changes',
    () => series({ name: 'slot', first: 0, last: 9_999, perRow: 50 }),
    /the slots would take 200 rows, and one transaction changes 100\. Increase perRow, or set slots\.overflow to "blob"/,
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
    /slots.overflow is "row"\. Use "blob"/,
  ],
  [
    'more slots than a blob has',
    () =>
      series({ name: 'slot', first: 0, last: 9 }, '{id}', {
        slots: { name: 'slot', first: 0, last: 100_000, overflow: 'blob' },
      }),
    /the slots run from 0 to 100000\. Use whole numbers from 0 to 99999, in order/,
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
    /Entity "hours": "period.archiveTo" is not an option. Use per, field, keep./,
  ],
]);

test.each(
  Object.entries({
    'a label of some entities': { label: 'name' },
    'a lookup that is kept for a second': { indexes: { all: allThings() }, lookup: { index: 'all', maxAge: 1 } },
    'a lookup that is kept for an hour': { indexes: { all: allThings() }, lookup: { index: 'all', maxAge: 3_600 } },
    'a day of a period': ofPeriods({ keep: 1 }),
    'a hundred years of days': ofPeriods({ keep: 36_500 }),
    'a hundred years of months': ofPeriods({ per: 'month', keep: 1_200 }),
    'a hundred years': ofPeriods({ per: 'year', keep: 100 }),
    'files beside a period without an archive': ofPeriods({}, { attachments: { photo } }),
    'files of one byte': withPhoto({ maxBytes: 1 }),
    'the largest files': withPhoto({ maxBytes: 104_857_600 }),
    'files that nobody may keep': withPhoto({ maxAge: 0 }),
    'files that may be kept for a year': withPhoto({ maxAge: 31_536_000 }),
    'files that are cool after a day': withPhoto({ coolAfterDays: 1 }),
    'files that are cool after ten years': withPhoto({ coolAfterDays: 3_650 }),
    'an expiry after a day': { expiry: { days: 1, clock: 'day' } },
    'an expiry after a hundred years': { expiry: { days: 36_500, clock: 'day' } },
  } satisfies Record<string, Parts>),
)('accepts the limits of options: %s', (_, parts) => {
  expect(load(entity('things', parts))).not.toEqual([]);
});
