import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/index.ts';

const bookings = defineEntity('bookings', {
  schema: z.object({
    roomId: z.string(),
    bookingId: z.string(),
    days: z.array(z.iso.date()).min(1).max(14),
    state: z.enum(['booked', 'cancelled']),
  }),
  table: 'bookings',
  key: { partition: '{roomId}', row: 'booking_{bookingId}' },
  indexes: {
    // A row for each day of a booking. No two bookings have one row.
    day: interPartitionIndex({
      table: 'bookingdays',
      partition: '{roomId}',
      row: '{days[]}',
      unique: true,
      when: ({ state }) => state === 'booked',
    }),
  },
  access: { read: ['user'], write: ['user'] },
});

export const model = defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities: [bookings] });
