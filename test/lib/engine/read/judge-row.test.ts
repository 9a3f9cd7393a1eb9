import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { baseValues } from '../../../kit/base.ts';
import { defineCodec, definePlaces } from '../../../kit/define.ts';
import { engineRead } from '../../../kit/engine.ts';
import type { Properties, Row } from '../../../kit/storage.ts';

const access = { read: ['hr'], write: ['hr'] } as const;
const staff = defineEntity('staff', {
  schema: z.object({ id: z.string(), subject: z.string() }),
  table: 'staff',
  key: { partition: '{id}', row: 'staff' },
  indexes: {
    subject: interPartitionIndex({ table: 'staffbysubject', partition: '{subject#}', row: '{subject}', unique: true }),
  },
  access: { ...access, own: { claim: 'sub', index: 'subject' } },
});
/** Its rows are written by clients. */
const visits = defineEntity('visits', {
  schema: z.object({
    id: z.string(),
    number: z.int32().min(1),
    code: z.string(),
    isOpen: z.boolean().optional(),
    minutes: z.number().optional(),
    places: z.array(z.string()).optional(),
    note: z.string().max(5).default('none'),
    label: z.string().optional(),
  }),
  table: 'visits',
  key: { partition: '{id}', row: '{number:4}_{code#}_{code}' },
  derived: { label: ({ isOpen }) => (isOpen ? 'open' : undefined) },
  version: 2,
  upgrades: {
    1: ({ minutes, ...values }) => {
      if (typeof minutes !== 'string') throw new Error('Version 1 has texts.');
      return { ...values, minutes: Number(minutes) };
    },
  },
  access: { ...access, own: { through: staff, permissions: 'rau' } },
});
const linked = deploy(staff, visits);

const system = { WriteId: 'w', Incarnation: 'i' };
const one: Values = { id: '1', number: 7, code: 'x' };

function rowOf(values: Values, over: Partial<Row> & { readonly properties?: Properties } = {}): Row {
  const address = definePlaces.addressOf(linked.visits, values);
  const stored = JSON.parse(JSON.stringify(defineCodec.toProperties(linked.visits, values, system)), (_, value) =>
    value?.type === 'Double' ? Number(value.value) : value,
  );
  return { ...address, etag: 'e', ...over, properties: { ...stored, ...over.properties } };
}
const judge = (values: Values, over?: Parameters<typeof rowOf>[1]) =>
  engineRead.judgeRow(linked.visits, rowOf(values, over));

describe('a row of an entity that only the API writes', () => {
  const row = (properties: Properties): Row => ({
    table: 'staff',
    partition: '1',
    row: 'staff',
    etag: 'e',
    properties,
  });
  const stored = { EntityType: 'staff', EntityVersion: 1, id: '1', subject: 'ann' };

  test('is the entity by its type, whatever its values are', () => {
    expect(engineRead.entityIn(linked.staff, row({ ...stored, subject: 5 }))).toMatchObject({
      etag: 'e',
      values: { subject: new baseValues.WrongValue({ subject: 5 }) },
    });
  });

  test.each([
    ['another type', { EntityType: 'visits' }],
    ['no type', { EntityType: undefined }],
    ['the type of a tombstone', { EntityType: 'tombstone' }],
    ['the type of a placeholder', { EntityType: 'placeholder' }],
    ['the source of a copy', { SourcePartition: '1', SourceRow: 'other' }],
  ])('is another row with %s', (_, over) => {
    expect(engineRead.judgeRow(linked.staff, row({ ...stored, ...over }))).toEqual({ is: 'other' });
    expect(engineRead.entityIn(linked.staff, row({ ...stored, ...over }))).toBeUndefined();
  });
});

describe('a row that a client may have written', () => {
  const whole = { ...one, isOpen: true, minutes: 1.5, places: ['a', 'b'], note: 'short', label: 'open' };

  test.each([
    ['all fields', whole],
    ['only key fields', one],
  ])('is the entity with %s, without defaults', (_, values) => {
    expect(judge(values)).toMatchObject({ is: 'entity', snapshot: { state: 'live', etag: 'e', values } });
    expect(engineRead.entityIn(linked.visits, rowOf(values))?.values).toEqual(values);
  });

  test.each([
    ['a tombstone', { EntityType: 'tombstone' }],
    ['a copy', { SourcePartition: '2', SourceRow: '2' }],
    ['an entity in a move', { MovingFrom: 'Red' }],
  ])('is the entity even if its system properties are those of %s', (_, properties) => {
    expect(judge(one, { properties })).toMatchObject({ is: 'entity', snapshot: { values: one } });
  });

  test('takes its key fields from its keys if it does not store them', () => {
    const properties = { id: undefined, number: undefined, code: undefined };
    expect(judge(one, { properties })).toMatchObject({ is: 'entity', snapshot: { values: one } });
  });

  test.each<[string, Partial<Row>]>([
    ['a row key of another form', { row: 'seven_x' }],
    ['an invalid value in its row key', { row: rowOf(one).row.replace('0007', '0000') }],
    ['a hash of another value in its row key', { row: rowOf(one).row.replace(/x$/, 'y') }],
    ['a row key that is not padded', { row: rowOf(one).row.replace('0007', '7') }],
    ['an empty partition key', { partition: '' }],
    ['another table', { table: 'elsewhere' }],
  ])('is out of reach and invalid with %s', (_, over) => {
    const judged = judge(one, over);
    expect(judged).toEqual({
      is: 'invalid',
      reason: 'No entity has keys of this form.',
      snapshot: expect.objectContaining({ etag: 'e', values: {} }),
      isReachable: false,
    });
    expect(engineRead.entityIn(linked.visits, rowOf(one, over))).toBeUndefined();
  });

  test.each<[string, Properties, string]>([
    ['another number of its key', { number: 8 }, 'The field "number" differs from the keys of the row.'],
    ['another partition field', { id: '2' }, 'The field "id" differs from the keys of the row.'],
    ['a number in a text', { note: 5 }, 'The property "note" has the wrong type; String is expected.'],
    ['a text in a number', { minutes: '5' }, 'The property "minutes" has the wrong type; Double is expected.'],
    ['a Boolean in a number', { minutes: true }, 'The property "minutes" has the wrong type; Double is expected.'],
    ['a text in a Boolean', { isOpen: 'true' }, 'The property "isOpen" has the wrong type; Boolean is expected.'],
    ['a Boolean in JSON', { places: true }, 'The property "places" has the wrong type; Json is expected.'],
    ['JSON of another form', { places: '{"a":1}' }, expect.stringContaining('places')],
    ['a value that the schema rejects', { note: 'too long' }, expect.stringContaining('note')],
    [
      'another derived value',
      { isOpen: true, label: 'closed' },
      'The derived field "label" differs from its computed value.',
    ],
    ['a missing derived value', { isOpen: true }, 'The derived field "label" differs from its computed value.'],
  ])('is invalid with %s, and can be replaced', (_, properties, reason) => {
    expect(judge(one, { properties })).toEqual({
      is: 'invalid',
      reason,
      snapshot: expect.objectContaining({ values: {} }),
      isReachable: true,
    });
  });

  test.each([1, 2n ** 60n])('may have the number %s of any type', (minutes) => {
    expect(judge(one, { properties: { minutes } })).toMatchObject({
      is: 'entity',
      snapshot: { values: { minutes: Number(minutes) } },
    });
  });

  test('is upgraded from an earlier version, whose types may differ', () => {
    expect(judge(one, { properties: { EntityVersion: 1, minutes: '5' } })).toMatchObject({
      is: 'entity',
      snapshot: { values: { minutes: 5 } },
    });
  });

  test('is invalid if no upgrade accepts it', () => {
    expect(judge(one, { properties: { EntityVersion: 1, minutes: 5 } })).toMatchObject({
      is: 'invalid',
      reason: 'The row cannot be upgraded: no earlier version of the declaration writes such rows.',
      isReachable: true,
    });
  });
});
