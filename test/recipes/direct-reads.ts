import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/index.ts';

const access = { read: ['user'], write: ['operator'] } as const;

const drivers = defineEntity('drivers', {
  schema: z.object({ driverId: z.string(), userId: z.string(), name: z.string() }),
  table: 'drivers',
  key: { partition: '{driverId}', row: 'driver' },
  indexes: {
    userId: interPartitionIndex({ table: 'driversbyuser', partition: '{userId}', row: 'user', unique: true }),
  },
  // The row of the caller: the one whose userId is the subject of the token.
  access: { ...access, own: { claim: 'sub', index: 'userId' } },
});
const tours = defineEntity('tours', {
  schema: z.object({ driverId: z.string(), day: z.iso.date(), stops: z.array(z.string()) }),
  table: 'tours',
  key: { partition: '{driverId}', row: 'tour_{day}' },
  // All tours of the caller.
  access: { ...access, own: { through: drivers, permissions: 'r' } },
});

export const model = defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities: [drivers, tours] });
