import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineSeries,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
} from '../../../../lib/define.ts';
import { access } from './declarations.ts';

/** Partition keys that begin with a time: all writes of the moment go to one end of the table. */

const schema = z.object({
  city: z.string(),
  id: z.string().regex(/^\d{6}$/),
  kind: z.literal('note'),
  day: z.iso.date(),
  at: z.iso.datetime(),
  hour: z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}$/),
  month: z.string().regex(/^\d{4}-\d{2}$/),
  v4: z.uuid(),
  v7: z.uuidv7(),
  ulid: z.ulid(),
});

const define = (key: { partition: string; row: string; appends?: boolean }, options: object = {}) =>
  defineEntity('things', { schema, table: 'things', access, key, ...options } as never);
const row = 'thing_{at~}_{city}_{id}';

const APPENDING = ['{day}', '{at}', '{at~}', 'x_{hour}', '{month}', '{v7}', '{ulid}', '{day}_{city}', '{kind}_{day}'];
const SPREAD = ['{city}', '{id}', '{city}_{day}', '{day}_{id%8}', '{day}_{city#}', '{id%4}', '{v4}', 'x_{city}_{at~}'];

describe('a partition key of an entity', () => {
  test.each(APPENDING)('that begins with a time is rejected: %s', (partition) => {
    const field = /\{(\w+)[^{]*$/.exec(partition.replace(/_\{city\}|\{kind\}_/, ''))?.[1];
    expect(() => define({ partition, row })).toThrow(
      `Entity "things": the partition key '${partition}' begins with "${field}", so all writes of the moment go to one end of the table`,
    );
  });

  test.each(APPENDING)('is accepted if the declaration says that it is meant: %s', (partition) => {
    expect(define({ partition, row, appends: true })).toMatchObject({ partition: { template: partition } });
  });

  test.each(SPREAD)('that does not only grow is accepted, also with a time in the row key: %s', (partition) => {
    expect(define({ partition, row })).toMatchObject({ partition: { template: partition } });
  });

  test.each(SPREAD)('cannot be said to begin with a time if it does not: %s', (partition) => {
    expect(() => define({ partition, row, appends: true })).toThrow(
      `does not begin with a time, and key.appends says that it does. Remove key.appends`,
    );
  });

  test('is told with ways out that are accepted', () => {
    let message = '';
    try {
      define({ partition: '{day}', row: 'thing_{id}' });
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain('put the time into the row key');
    const [, spread = ''] = /add buckets: '(.*?)'/.exec(message) ?? [];
    expect(spread).toBe('{day}_{id%8}');
    expect(() => define({ partition: spread, row: 'thing_{id}' })).not.toThrow();
    expect(message).toContain('set key.appends to true');
  });

  test('may begin with the day of its table, if something else follows the day', () => {
    const period = { per: 'day', field: 'dayAndId', keep: 3 };
    const dayAndId = z.string().regex(/^\d{4}-\d{2}-\d{2}-[0-9a-f]{8}$/);
    const ofDays = { schema: schema.extend({ dayAndId }), period };
    expect(() => define({ partition: '{dayAndId}', row: 'x' }, ofDays)).not.toThrow();
    expect(() =>
      define({ partition: '{dayAndId}', row: 'x' }, { ...ofDays, period: { ...period, per: 'month' } }),
    ).toThrow('begins with "dayAndId"');
    expect(() => define({ partition: '{at}', row }, { period: { per: 'day', field: 'at', keep: 3 } })).toThrow(
      'begins with "at"',
    );
  });
});

test('a series is checked as an entity', () => {
  const declare = (appends: object) =>
    defineSeries('hours', {
      schema: z.object({ city: z.string(), day: z.iso.date() }),
      table: 'hours',
      key: { partition: '{day}', row: '{city}', ...appends },
      slots: { name: 'hour', first: 0, last: 23 },
      access,
    });
  expect(() => declare({})).toThrow('begins with "day"');
  expect(() => declare({ appends: true })).not.toThrow();
});

describe('a partition key of an index', () => {
  const key = { partition: '{city}', row: 'thing_{id}' };
  const remote = { table: 'byday', partition: '{day}' };
  const declared = (over: object = {}): [string, object][] => [
    ['the index', { indexes: { ofDay: interPartitionIndex({ ...remote, row: '{city}_{id}', ...over } as never) } }],
    [
      'the index',
      { indexes: { ofDay: indexEntity({ ...remote, row: 'list', holds: '{city}/{id}', ...over } as never) } },
    ],
    [
      'the totals',
      { totals: { ofDay: total({ ...remote, partition: '{day.month}', row: '{city}', ...over } as never) } },
    ],
  ];

  test.each(declared())('that begins with a time is rejected: %s', (what, options) => {
    expect(() => define(key, options)).toThrow(`the partition key of ${what} "ofDay"`);
    expect(() => define(key, options)).toThrow('begins with "day"');
  });
  test.each(declared({ appends: true }))('is accepted if it is meant: %s', (_, options) => {
    expect(() => define(key, options)).not.toThrow();
  });
  test.each(declared({ partition: '{day}_{id%8}' }))('is accepted with buckets: %s', (_, options) => {
    expect(() => define(key, options)).not.toThrow();
  });
  test('in the partition of the entity may have any row key', () => {
    expect(() => define(key, { indexes: { newest: intraPartitionIndex({ row: 'at_{at~}_{id}' }) } })).not.toThrow();
  });
  test('in the partition of the entity appends nothing that could be declared', () => {
    const options = { row: 'list_{day}', holds: '{id}', appends: true } as never;
    expect(() => define(key, { indexes: { list: indexEntity(options) } })).toThrow('the index "list"');
  });
});
