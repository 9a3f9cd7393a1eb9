import { z } from 'zod';
import { total } from '../../../../lib/define.ts';
import { operationsModel } from '../../../kit/operations.ts';
import {
  allThings,
  byName,
  entity,
  load,
  photo,
  type Rejected,
  series,
  shape,
  testRejections,
  text,
} from './declarations.ts';

/** The validation of names of entities, tables, containers, indexes and fields. */

const perCity = total({ table: 'thingspercity', partition: 'all', row: '{city}' });
const expiry = { days: 2, clock: 'day' } as const;

testRejections([
  [
    'an index with the name of totals',
    { indexes: { perCity: allThings() }, totals: { perCity } },
    /the name "perCity" is used twice/,
  ],
  [
    'an index with the name of the rows of expiry',
    { indexes: { expiry: allThings() }, expiry },
    /the name "expiry" is used twice/,
  ],
  [
    'totals with the name of the rows of expiry',
    { totals: { expiry: perCity }, expiry },
    /the name "expiry" is used twice/,
  ],
  ...operationsModel
    .resourcesOf([])
    .tables.map(
      (table): Rejected => [
        `a table named ${table}`,
        { table },
        new RegExp(`Entity "things": the table name "${table}" is reserved. Choose a name other than .*`),
      ],
    ),
  ['a table named operations', { table: 'operations' }, /"things": the table name "operations" is reserved/, 2],
  [
    'a table whose name could be a day of the table "operations"',
    { table: 'operations20261120' },
    /"operations": a table for a day could have the name of the table "operations20261120" of "things"/,
  ],
  ['a table name that the service reserves', { table: 'tables' }, /the table name "tables" is reserved/],
  [
    'an index in a reserved table',
    { indexes: { name: byName({ table: 'poison' }) } },
    /the table name "poison" is reserved/,
  ],
  ['an archive in a reserved table', { archive: { table: 'system' } }, /the table name "system" is reserved/],
  ...operationsModel
    .resourcesOf([])
    .containers.map(
      (container): Rejected => [
        `a container named ${container}`,
        { attachments: { photo: { ...photo, container } } },
        new RegExp(
          `the container "${container}" of the attachment "photo" is reserved, and its files would be deleted`,
        ),
      ],
    ),
  ...['azure-webjobs-hosts', 'azure-anything', 'scm-releases', 'insights-logs-auditevent', 'deployments'].map(
    (container): Rejected => [
      `a container of the platform, ${container}`,
      { attachments: { photo: { ...photo, container } } },
      new RegExp(`"${container}" of the attachment "photo" is reserved`),
    ],
  ),
  ...['azurefunctionsdiagnosticevents202611', 'azurewebjobshostlogs202611', 'azurewebjobshostlogscommon'].flatMap(
    (table): Rejected[] => [
      [
        `a table of the Functions host, ${table}`,
        { table },
        new RegExp(
          `the table name "${table}" is reserved for the Functions host. Choose a name that does not begin with`,
        ),
      ],
      [
        `an index in a table of the Functions host, ${table}`,
        { indexes: { name: byName({ table }) } },
        new RegExp(`the table name "${table}" is reserved for the Functions host`),
      ],
    ],
  ),
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
  ...['grants', 'health'].map(
    (name): Rejected => [
      `an entity named ${name}`,
      () => load(entity(name)),
      new RegExp(`Entity "${name}": the API itself has a route /api/${name}.`),
    ],
  ),
  [
    'an entity name with a hyphen',
    () => load(entity('my-things', { row: '{id}' })),
    /Entity "my-things": the name is not accepted\. Use 1 to 60 lower-case letters and digits, a letter first/,
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
    { table: 'Things' },
    /the table name "Things" is not accepted\. Use 3 to 55 lower-case letters and digits, a letter first/,
  ],
  [
    'a container name with an underscore',
    { attachments: { photo: { ...photo, container: 'my_photos' } } },
    /container name "my_photos", which is not accepted/,
  ],
  [
    'a container name with two hyphens',
    { attachments: { photo: { ...photo, container: 'my--photos' } } },
    /"my--photos", which is not accepted/,
  ],
  [
    'an index name that is not valid in a path',
    { indexes: { 'by/name': byName() } },
    /the index name "by\/name" is not accepted/,
  ],
  [
    'a field name that the tables SDK reserves',
    { schema: z.object({ ...shape, timestamp: text }) },
    /the field name "timestamp" is reserved by the tables SDK/,
  ],
  [
    'a field with a hyphen',
    { schema: z.object({ ...shape, 'first-name': text }) },
    /the field name "first-name" is not accepted/,
  ],
  ...Object.getOwnPropertyNames(Object.prototype).flatMap((name): Rejected[] => {
    const sentence = (what: string) => new RegExp(`the ${what} name "${name}" is a member of every JavaScript object`);
    const schema = z.object({ ...shape, [name]: text.optional() });
    const attachments = { [name]: photo };
    return [
      [`an entity named ${name}`, () => load(entity(name, { row: '{id}' })), sentence('entity')],
      [`an archive named ${name}`, { archive: { table: name } }, sentence('archive')],
      [`an index named ${name}`, { indexes: { [name]: byName() } }, sentence('index')],
      [`a field named ${name}`, { schema }, sentence('field')],
      [`an attachment named ${name}`, { attachments }, sentence('field')],
      [`slots named ${name}`, () => load(series({ name, first: 0, last: 4 })), sentence('slot')],
    ];
  }),
  [
    'two indexes whose names differ only in case',
    { indexes: { name: byName(), Name: byName() } },
    /Entity "things": the index name "Name" is not accepted/,
  ],
  [
    'index names that differ only in the case of an inner letter',
    { indexes: { byName: byName(), byname: byName({ table: 'othernames' }) } },
    /Route \/api\/things\/by\//,
    2,
  ],
]);
