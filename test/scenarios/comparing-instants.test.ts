import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { between, defineEntity, defineModel, total } from '../../lib/define.ts';
import { type Ask, openAccessApp } from '../access-app.ts';
import { defineCodec } from '../kit/define.ts';

/** Instants are compared by their moment, and not by their text, which may have a fraction and an offset. */

const at = z.iso.datetime({ offset: true });
const readings = defineEntity('readings', {
  schema: z.object({ sensor: z.string(), id: z.string(), at }),
  table: 'readings',
  key: { partition: '{sensor}', row: '{id}' },
  totals: {
    range: total({ table: 'readingranges', partition: '{sensor}', row: 'all', min: ['at'], max: ['at'] }),
    perMonth: total({ table: 'readingsbymonth', partition: '{sensor}', row: '{at.month}' }),
  },
  access: {
    read: [
      'member',
      {
        role: 'guest',
        where: { at: between('2026-10-31T20:30:00-05:00', '2026-11-30T23:59:59.999Z') },
        lists: 'filtered',
      },
    ],
    write: ['member'],
  },
});
const visits = defineEntity('visits', {
  schema: z.object({ page: z.string(), at }),
  table: 'visits',
  key: { partition: '{page}', row: '{at}' },
  period: { per: 'month', field: 'at', keep: 12 },
  access: { read: ['member'], write: ['member'] },
});
const model = defineModel({
  roles: ['member', 'guest', 'operator'],
  operatorRole: 'operator',
  entities: [readings, visits],
});
const NOW = Date.parse('2026-11-30T23:00:00Z');
const member = { roles: ['member'] };
const guest = { roles: ['guest'] };
/** By moment: an hour after midnight in Rome is in November in UTC. */
const INSTANTS = [
  ['a', '2026-10-31T20:30:00-05:00'],
  ['b', '2026-11-20T09:00:00Z'],
  ['c', '2026-11-20T09:00:00.5Z'],
  ['d', '2026-11-20T12:00:00.51+03:00'],
  ['e', '2026-12-01T00:30:00+01:00'],
] as const;

let ask: Ask;
beforeAll(async () => {
  ({ ask } = await openAccessApp(import.meta.url, model, { now: () => NOW }));
  for (const [id, instant] of INSTANTS)
    expect((await ask(member, 'POST', 'readings', { sensor: 's', id, at: instant })).status).toBe(201);
});

const idsOf = async (query: string, caller = member) =>
  (await ask(caller, 'GET', `readings/s?${query}`)).body.items.map(({ id }: { id: string }) => id).join('');

test('totals have the earliest and the latest instant', async () => {
  const { body } = await ask(member, 'GET', 'readings/totals/range/s');
  expect(body).toMatchObject({ min: { at: INSTANTS[0][1] }, max: { at: INSTANTS[4][1] } });
  await ask(member, 'DELETE', 'readings/s/e');
  expect((await ask(member, 'GET', 'readings/totals/range/s')).body).toMatchObject({ max: { at: INSTANTS[3][1] } });
  await ask(member, 'DELETE', 'readings/s/d');
  expect((await ask(member, 'GET', 'readings/totals/range/s')).body).toMatchObject({ max: { at: INSTANTS[2][1] } });
  for (const [id, instant] of INSTANTS.slice(3))
    await ask(member, 'POST', 'readings', { sensor: 's', id, at: instant });
});

test('totals by month have the month in UTC', async () => {
  expect((await ask(member, 'GET', 'readings/totals/perMonth/s/2026-11')).body).toMatchObject({ count: 5 });
  expect((await ask(member, 'GET', 'readings/totals/perMonth/s/2026-12')).body).toMatchObject({ count: 0 });
});

describe('a filter', () => {
  test.each([
    ['at=ge:2026-11-20T09:00:00Z', 'bcde'],
    ['at=gt:2026-11-20T09:00:00Z', 'cde'],
    ['at=gt:2026-11-20T10:00:00.50%2B01:00', 'de'],
    ['at=le:2026-11-20T09:00:00.5Z', 'abc'],
    ['at=lt:2026-11-20T09:00:00.5Z', 'ab'],
    ['at=ge:2026-11', 'abcde'],
    ['at=lt:2026-12', 'abcde'],
    ['at=le:2026-11-20&at=ge:2026', 'a'],
  ])('compares moments: %s', async (query, ids) => {
    expect(await idsOf(query)).toBe(ids);
  });
});

test('a rule compares moments', async () => {
  expect(await idsOf('', guest)).toBe('abcde');
  expect((await ask(guest, 'GET', 'readings/s/e')).status).toBe(200);
});

test('an entity of a period is in the table of its moment', async () => {
  expect((await ask(member, 'POST', 'visits', { page: 'p', at: INSTANTS[4][1] })).status).toBe(201);
  const path = `visits/p/${encodeURIComponent(INSTANTS[4][1])}`;
  const { body } = await ask(member, 'GET', `${path}?explain=true`);
  expect(JSON.stringify(body)).toContain('visits202611');
  expect((await ask(member, 'GET', path)).status).toBe(200);
  // In Rome it is November 2025, and in UTC October, whose table is dropped.
  const late = await ask(member, 'POST', 'visits', { page: 'p', at: '2025-11-01T00:30:00+01:00' });
  expect(late).toMatchObject({ status: 400, body: { field: 'at' } });
});

test('the error of an instant has an example that the field accepts', () => {
  for (const options of [{}, ...[-1, 0, 3, 6].map((precision) => ({ precision }))]) {
    const schema = z.object({ at: z.iso.datetime(options) });
    const [, example] = /such as (\S+)\.$/.exec(refuse(schema, { at: 'now' })) ?? [];
    expect(schema.safeParse({ at: example }).success, String(example)).toBe(true);
  }
});

function refuse(schema: z.ZodType, input: unknown): string {
  try {
    defineCodec.parse(schema, input);
  } catch (error) {
    return JSON.stringify(error) + String((error as Error).message);
  }
  return '';
}
