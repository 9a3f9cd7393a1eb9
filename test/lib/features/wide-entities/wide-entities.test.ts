import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type DeclaredEntity,
  defineEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { baseValues } from '../../../kit/base.ts';
import { defineCodec, definePlaces } from '../../../kit/define.ts';
import { engineCore, engineWrite } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import { operationsModel } from '../../../kit/operations.ts';
import { type Properties, type Row, storageAccounts, storageTables } from '../../../kit/storage.ts';
import { sampleRuns } from '../../../points.ts';
import { testStorage } from '../../../storage.ts';
import { entity, load, type Parts } from '../../define/validate/declarations.ts';

const access = { read: ['reader'], write: ['hr'] } as const;
const answers = (count: number): Record<`a${number}`, z.ZodOptional<z.ZodString>> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index + 1}`, z.string().optional()])) as Record<
    `a${number}`,
    z.ZodOptional<z.ZodString>
  >;
const common = {
  schema: z.object({ office: z.string(), surveyId: z.string(), title: z.string().optional(), ...answers(1_990) }),
  table: 'surveys',
  key: { partition: '{office}', row: '{surveyId}' },
  access,
} as const;
const surveys = (over: Parts = {}) => entity('surveys', { ...common, wide: true, ...over });

const { surveys: wide } = deploy(defineEntity('surveys', { ...common, wide: true }));
const key = { office: 'Oslo', surveyId: '1' };

/** The rows of one entity, as a transaction leaves them. */
function stored() {
  const rows = new Map<string, Properties>();
  let etag = 0;
  const read = (): Internal['Snapshot'] => {
    const address = definePlaces.addressOf(wide, key);
    const all = [...rows].map(([row, properties]): Row => ({ ...address, row, etag: `${etag}`, properties }));
    const own = all.find(({ row }) => row === address.row);
    if (!own) return { state: 'absent' };
    const { row, lost } = defineCodec.joinRows(wide, own, all, ['wide']);
    expect(lost).toEqual([]);
    return defineCodec.toSnapshot(wide, row);
  };
  const write = (after: Values) => {
    etag += 1;
    const change = { entity: wide, address: definePlaces.addressOf(wide, key), before: read(), after };
    const { actions } = engineWrite.planPartition([change], new Map(), { writeId: `w${etag}`, now: 0 });
    for (const { action } of actions)
      if (action.kind === 'delete') expect(rows.delete(action.row), action.row).toBe(true);
      else if ('properties' in action) rows.set(action.row, action.properties);
    return actions.map(({ action: { kind, row } }) => `${kind} ${row}`);
  };
  return { rows, read, write };
}

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
function expectWithinLimits(properties: Properties) {
  const sizes = Object.entries(properties).map(([name, value]) => 8 + 2 * name.length + 2 * String(value).length + 4);
  expect(sizes.length).toBeLessThanOrEqual(252);
  expect(sizes.reduce((sum, size) => sum + size, 2_100)).toBeLessThanOrEqual(1_048_576);
}

const numbered = (count: number, text: string, first = 1): Values =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index + first}`, text]));

describe('a wide entity', () => {
  test('takes one row while its fields fit, and as few as they need', () => {
    const entity = stored();
    expect(entity.write({ ...key, ...numbered(200, 'x') })).toEqual(['insert 1']);
    expect(entity.write({ ...key, ...numbered(1_990, 'x') })).toHaveLength(9);
    expect(entity.rows.size).toBe(9);
    for (const row of entity.rows.values()) expectWithinLimits(row);
    expect(entity.read()).toMatchObject({ values: { ...key, ...numbered(1_990, 'x') } });
  });

  test('keeps a field in its row, so that a change writes its row and the own row', () => {
    const entity = stored();
    const all = { ...key, ...numbered(1_990, 'x') };
    entity.write(all);
    expect(entity.write({ ...all, a1: 'y' })).toEqual(['replace 1']);
    expect(entity.write({ ...all, a1: 'y', a1000: 'y' })).toEqual(['replace 1', 'upsert 1!-wide4']);
    const left = baseValues.omit(all, ['a1000']);
    expect(entity.write({ ...left, a1: 'y' })).toEqual(['replace 1', 'upsert 1!-wide4']);
    expect(entity.write({ ...left, a1: 'y', title: 'New' })).toEqual(['replace 1', 'upsert 1!-wide4']);
  });

  test('moves a field that outgrows its row, and deletes a row without fields', () => {
    const entity = stored();
    const text = 'x'.repeat(32_000);
    entity.write({ ...key, ...numbered(20, text, 10) });
    expect(entity.rows.size).toBe(2);
    const shorter = { ...key, ...numbered(15, text, 10) };
    expect(entity.write(shorter)).toEqual(['replace 1', 'delete 1!-wide1']);
    expect(entity.write({ ...shorter, a10: 'short', a40: text })).toEqual(['replace 1']);
    expect(entity.write({ ...shorter, a40: text })).toEqual(['replace 1', 'upsert 1!-wide1']);
    expect(entity.rows.get('1!-wide1')).toHaveProperty('a40');
    expect(entity.read()).toMatchObject({ values: { ...shorter, a40: text } });
  });

  test('holds 3.5 MiB as sent and no more, and is then as it was', () => {
    const entity = stored();
    const text = 'x'.repeat(30_000);
    entity.write({ ...key, ...numbered(120, text, 10) });
    for (const row of entity.rows.values()) expectWithinLimits(row);
    const written = [...entity.rows.values()].map(({ WriteId }) => WriteId);
    // The change itself would write few rows.
    const exceed = () => entity.write({ ...key, ...numbered(123, text, 10) });
    expect(exceed).toThrow(
      expect.objectContaining({ code: 'too-large', message: expect.stringMatching(/bytes in its/) }),
    );
    expect([...entity.rows.values()].map(({ WriteId }) => WriteId)).toEqual(written);
  });

  test('is read back as it was written after any sequence of changes', () => {
    const field = fc.integer({ min: 1, max: 700 }).map((index) => `a${index}`);
    const length = fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 40 }) },
      fc.integer({ min: 20_000, max: 32_768 }),
    );
    const value = length.map((size) => 'x'.repeat(size));
    const many = fc.integer({ min: 0, max: 650 }).map((count) => numbered(count, 'm'));
    const change = fc.record({
      isPut: fc.boolean(),
      fields: fc.oneof(fc.dictionary(field, fc.option(value), { maxKeys: 40 }), many),
    });
    const changes = fc.array(change, { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(changes, (all) => {
        const entity = stored();
        let expected: Values = key;
        for (const { isPut, fields } of all) {
          const merged = Object.entries({ ...(isPut ? key : expected), ...fields });
          const next = Object.fromEntries(merged.filter(([, each]) => each !== null));
          const before = entity.read();
          try {
            entity.write(next);
          } catch (error) {
            expect(error).toMatchObject({ code: 'too-large' });
            expect(entity.read()).toEqual(before);
            continue;
          }
          expected = next;
          for (const row of entity.rows.values()) expectWithinLimits(row);
          expect(entity.read()).toMatchObject({ values: expected });
          expect(Object.keys(Object(entity.read()).values)).toHaveLength(Object.keys(expected).length);
          expect(entity.rows.size).toBeLessThanOrEqual(30);
        }
      }),
      sampleRuns(40),
    );
  });
});

describe('a declaration is rejected', () => {
  const source = entity('offices', {
    schema: z.object({ office: z.string(), name: z.string() }),
    table: 'offices',
    key: { partition: '{office}', row: 'office' },
    access,
  });
  const copied = (from: DeclaredEntity) => ({
    denormalized: { office: { source: from, copies: { title: () => 'x' }, fanOut: true } },
  });

  test.each<[Parts, RegExp]>([
    [{ split: { texts: ['a1'] } }, /Remove split or wide/],
    [{ indexes: { title: intraPartitionIndex({ row: 't_{title}_{surveyId}' }) } }, /index "title" copies everything/],
    [
      {
        indexes: {
          title: interPartitionIndex({
            table: 'bytitle',
            partition: '{title}',
            row: '{surveyId}',
            copies: Object.keys(answers(239)),
          }),
        },
      },
      /copies 239 fields, which one row cannot hold\. Copy at most 238/,
    ],
    [{ period: { per: 'day', field: 'surveyId', keep: 2 } }, /it has a period, whose entities are one row each/],
    [{ schema: common.schema.extend(answers(2_001)) }, /has 2004 fields\. Use at most 2000, even in a wide entity/],
    [{ wide: false }, /more than 240 fields, which one row cannot hold\. Declare the entity wide/],
  ])('%#', (over, reason) => {
    expect(() => load(surveys(over))).toThrow(reason);
  });

  test('for an exclamation mark in a row key of its table, and not of another table', () => {
    const index = (table: string) => ({
      indexes: {
        title: interPartitionIndex({
          table,
          partition: '{title}',
          row: 'all!{office}_{surveyId}',
          copies: 'keys' as const,
        }),
      },
    });
    const other = (table: string, row = '{id}', over: Parts = {}) =>
      entity('others', {
        schema: z.object({ place: z.string(), id: z.string(), title: z.string() }),
        table,
        key: { partition: '{place}', row },
        access,
        ...over,
      });
    const refused = /the row key \S+ of "others" in its table has a "!"/;
    expect(() => load(surveys(), other('surveys', 'other!{id}'))).toThrow(refused);
    expect(() => load(surveys(), other('others', 'other!{id}'))).not.toThrow();
    expect(() => load(surveys(index('bytitle')))).not.toThrow();
    const beside = { indexes: { title: intraPartitionIndex({ row: 'all!{id}' }) } };
    expect(() => load(surveys(), other('surveys', 'other_{id}', beside))).toThrow(refused);
    expect(() => load(surveys(), other('others', 'other_{id}', beside))).not.toThrow();
  });

  test('with copied fields on either side', () => {
    expect(() => load(source, surveys(copied(source)))).toThrow(/fields that change with another entity/);
    const wide = surveys();
    const copying = entity('copying', {
      ...common,
      schema: common.schema.pick({ office: true, surveyId: true, title: true }),
      table: 'copying',
      key: { partition: '{surveyId}', row: '{office}' },
      denormalized: { surveyId: { source: wide, copies: { title: () => 'x' }, fanOut: true } },
    });
    expect(() => load(wide, copying)).toThrow(/has no copies in other entities, which "copying" declares/);
  });
});

test('only key fields are filters, because storage has the others in any row', () => {
  expect(defineCodec.compileFilter(wide, { surveyId: '1' })).toHaveLength(1);
  expect(() => defineCodec.compileFilter(wide, { a1: 'x' })).toThrow(/further row/);
});

describe('the model guard', () => {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  const guard = (over: Parts) =>
    operationsModel.guardModel(engineCore.createEngine(storage), Object.values(deploy(surveys(over))), undefined);
  const schema = z.object({ office: z.string(), surveyId: z.string(), title: z.string().optional() });

  test('accepts that an entity becomes wide, and rejects the reverse', async () => {
    await storageTables.dropTable(storage, 'system');
    await storageTables.provision(storage, { tables: ['system'], queues: [], containers: [] });
    await guard({ schema, wide: false });
    await guard({ schema, wide: true });
    await expect(guard({ schema, wide: false })).rejects.toThrow(/it was wide; the fields in its further rows/);
  });
});
