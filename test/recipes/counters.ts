import { z } from 'zod';
import { defineEntity, defineModel, defineSeries, total } from '../../lib/index.ts';

const access = { read: ['user'], write: ['user'] } as const;

const sales = defineEntity('sales', {
  schema: z.object({ shop: z.string(), saleId: z.string(), soldOn: z.iso.date(), amount: z.number() }),
  table: 'sales',
  key: { partition: '{shop}', row: 'sale_{saleId}' },
  totals: {
    byMonth: total({
      table: 'salespermonth',
      partition: '{shop}',
      row: '{soldOn.month}',
      sum: ['amount'],
      max: ['amount'],
    }),
  },
  access,
});

/** Exact, because it changes in the transaction of each seat. */
const halls = defineEntity('halls', {
  schema: z.object({ hall: z.string(), seatCount: z.int32().max(500) }),
  table: 'halls',
  key: { partition: '{hall}', row: 'hall' },
  counts: { seatCount: (): typeof seats => seats },
  access,
});
const seats = defineEntity('seats', {
  schema: z.object({ hall: z.string(), seat: z.string() }),
  table: 'halls',
  key: { partition: '{hall}', row: 'seat_{seat}' },
  access,
});

/** One row for each page and day. Concurrent increments all count. */
const views = defineSeries('views', {
  schema: z.object({ page: z.string(), day: z.iso.date() }),
  table: 'views',
  key: { partition: '{page}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  access,
});

export const model = defineModel({
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  entities: [sales, halls, seats, views],
});
