import { z } from 'zod';
import { createClient } from '../../../lib/client/index.ts';
import {
  createRowkey,
  defineEntity,
  defineModel,
  defineOperation,
  defineSeries,
  fromEnvironment,
  interPartitionIndex,
  intraPartitionIndex,
  subject,
  total,
} from '../../../lib/index.ts';

/** What the examples in the comments of the library use without declaring it. */

const access = { read: ['reader'], write: ['editor'] } as const;

export const vehicles = defineEntity('vehicles', {
  schema: z.object({ depot: z.string(), vehicleId: z.string(), plate: z.string(), model: z.string().optional() }),
  table: 'vehicles',
  key: { partition: '{depot}', row: 'vehicle_{vehicleId}' },
  indexes: {
    plate: interPartitionIndex({ table: 'vehiclesbyplate', partition: '{plate#}', row: '{plate}', unique: true }),
    model: intraPartitionIndex({ row: 'model_{model}_{vehicleId}' }),
  },
  totals: { perModel: total({ table: 'vehiclespermodel', partition: '{depot}', row: '{model}' }) },
  attachments: { photo: { container: 'photos', maxBytes: 1_000_000, types: ['image/jpeg'] } },
  archive: { table: 'formervehicles' },
  access: { read: ['reader', { role: 'editor', where: { depot: subject() } }], write: ['editor'] },
});

const depots = defineEntity('depots', {
  schema: z.object({ region: z.string(), depot: z.string(), places: z.int32() }),
  table: 'depots',
  key: { partition: '{region}', row: '{depot}' },
  indexes: { all: interPartitionIndex({ table: 'depotlist', partition: 'all', row: '{depot}_{region}' }) },
  lookup: { index: 'all' },
  access,
});

const trips = defineSeries('trips', {
  schema: z.object({ vehicleId: z.string(), day: z.iso.date() }),
  table: 'trips',
  key: { partition: '{vehicleId}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  span: { field: 'day', per: 'day' },
  access,
});

const checkIn = defineOperation('checkIn', {
  summary: 'Register a vehicle by its plate',
  kind: 'write',
  roles: ['editor'],
  input: z.object({ depot: z.string(), plate: z.string() }),
  output: z.object({ vehicleId: z.string() }),
});

export const model = defineModel({
  roles: ['reader', 'editor', 'operator'],
  operatorRole: 'operator',
  entities: [vehicles, depots, trips],
  operations: [checkIn],
});
export const rowkey = createRowkey({
  model,
  ...fromEnvironment({}),
  operations: { checkIn: async ({ input }) => ({ vehicleId: input.plate }) },
});
export const { store } = rowkey;
export const client = createClient<typeof model>({ url: 'https://fleet.example/api' });
