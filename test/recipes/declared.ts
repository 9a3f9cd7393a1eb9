import { z } from 'zod';
import { defineEntity, defineModel, indexEntity, interPartitionIndex, intraPartitionIndex } from '../../lib/index.ts';

/** The examples of docs/declare-an-entity.md. */

export const vehicles = defineEntity('vehicles', {
  schema: z.object({
    site: z.string().min(1).max(100),
    vehicleId: z.string().regex(/^\d{4}$/, 'four digits are needed'),
    plate: z.string().min(1).max(12).toUpperCase(),
    make: z.string().min(1).max(100),
  }),
  table: 'vehicles',
  key: { partition: '{site}', row: '{vehicleId}' },
  indexes: {
    plate: interPartitionIndex({ table: 'vehiclesbyplate', partition: '{plate#}', row: '{plate}', unique: true }),
    make: indexEntity({ row: 'make_{make}', holds: '{vehicleId}' }),
  },
  attachments: { photo: { container: 'vehiclephotos', maxBytes: 5_000_000, types: ['image/jpeg', 'image/png'] } },
  access: { read: ['reader', 'operator'], write: ['operator'] },
});

const loans = defineEntity('loans', {
  schema: z.object({ toolId: z.string(), loanId: z.string(), returnedOn: z.iso.date().optional() }),
  table: 'loans',
  key: { partition: '{toolId}', row: 'loan_{loanId}' },
  indexes: {
    open: intraPartitionIndex({ row: 'open_{toolId}', when: ({ returnedOn }) => returnedOn === undefined }),
  },
  access: { read: ['reader'], write: ['operator'] },
});

export const model = defineModel({
  roles: ['reader', 'operator'],
  operatorRole: 'operator',
  entities: [vehicles, loans],
});
