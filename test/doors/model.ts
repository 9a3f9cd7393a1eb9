import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, total } from '../../lib/define.ts';

/** Every field is text that can spell anything, a number, an instant or free JSON, in every place where a value can be. */
const things = defineEntity('things', {
  schema: z.object({
    room: z.string(),
    id: z.string(),
    handle: z.string(),
    label: z.string(),
    amount: z.number().optional(),
    at: z.iso.datetime({ offset: true }).optional(),
    free: z.json().optional(),
  }),
  table: 'things',
  key: { partition: '{room}', row: '{id}' },
  indexes: {
    handle: interPartitionIndex({ table: 'thingsbyhandle', partition: '{handle}', row: '{handle}', unique: true }),
    label: interPartitionIndex({ table: 'thingsbylabel', partition: '{label}', row: '{room}_{id}' }),
    inRoom: interPartitionIndex({ table: 'thingsinroom', partition: '{room}', row: '{label}_{id}', copies: 'keys' }),
  },
  totals: { byLabel: total({ table: 'thingsperlabel', partition: '{label}', row: 'all', sum: ['amount'] }) },
  access: { read: ['editor'], write: ['editor'] },
});

export const model = defineModel({ roles: ['editor', 'operator'], operatorRole: 'operator', entities: [things] });
