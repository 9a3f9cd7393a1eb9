import { beforeAll, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex } from '../../../lib/define.ts';
import { openApp } from '../../open-app.ts';

/** An entity that is found by a unique part of its key alone. */

const tickets = defineEntity('tickets', {
  schema: z.object({ hall: z.string(), day: z.iso.date(), code: z.string(), seat: z.string() }),
  table: 'tickets',
  key: { partition: '{hall}', row: 'ticket_{day}_{code}' },
  indexes: {
    code: interPartitionIndex({ table: 'ticketcodes', partition: '{code}', row: 'code', unique: true }),
    codeOfAll: interPartitionIndex({ table: 'ticketlist', partition: 'all', row: '{code}', unique: true }),
    codeInHall: intraPartitionIndex({ row: 'code_{code}' }),
    codeOfDay: interPartitionIndex({
      table: 'ticketdays',
      partition: '{day}',
      row: '{code}',
      unique: true,
      appends: true,
    }),
    byCode: intraPartitionIndex({ row: 'by_{code}_{day}' }),
  },
  access: { read: ['reader'], write: ['hr'] },
});

const model = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [tickets] });
const rowkey = openApp(import.meta.url, model);
const { by, create, delete: remove } = rowkey.store.tickets;
beforeAll(() => rowkey.provision());

const ticket = { hall: 'north', day: '2026-11-20', code: 'a1', seat: '7' };

test('a unique index, and one in the partition, return the entity with a part of its key', async () => {
  await create(ticket);
  expect(await by.code({ code: 'a1' })).toEqual(ticket);
  expect(await by.codeOfAll({ code: 'a1' })).toEqual(ticket);
  expect(await by.codeOfDay({ code: 'a1', day: ticket.day })).toEqual(ticket);
  expect(await by.codeInHall({ hall: 'north', code: 'a1' })).toEqual(ticket);
  expectTypeOf(by.codeInHall({ hall: 'north', code: 'a1' })).resolves.toEqualTypeOf<typeof ticket | undefined>();
  for (const none of [by.code({ code: 'a' }), by.codeInHall({ hall: 'north', code: 'a' })])
    expect(await none).toBeUndefined();
  // The row key has the whole key of the entity, so any number may share a value.
  expect(await Array.fromAsync(by.byCode({ hall: 'north' }))).toEqual([ticket]);
});

test('the part cannot be that of another entity, until it is deleted', async () => {
  const other = { ...ticket, day: '2026-11-21' };
  await expect(create(other)).rejects.toMatchObject({ code: 'duplicate-value', field: 'code' });
  await expect(create({ ...other, hall: 'south' })).rejects.toMatchObject({ code: 'duplicate-value', field: 'code' });
  await remove(ticket);
  const inHall = () => by.codeInHall({ hall: 'north', code: 'a1' });
  expect(await inHall()).toBeUndefined();
  await create(other);
  expect([await by.code({ code: 'a1' }), await inHall()]).toEqual([other, other]);
});
