import { app } from '@azure/functions';
import {
  createRowkey,
  defineEntity,
  defineModel,
  fromEnvironment,
  interPartitionIndex,
  RowkeyError,
  registerFunctions,
} from 'rowkey';
import { z } from 'zod';

const vehicles = defineEntity('vehicles', {
  schema: z.object({ depot: z.string(), vehicleId: z.string(), plate: z.string(), model: z.string().optional() }),
  table: 'vehicles',
  key: { partition: '{depot}', row: '{vehicleId}' },
  indexes: {
    plate: interPartitionIndex({ table: 'vehiclesbyplate', partition: '{plate#}', row: '{plate}', unique: true }),
  },
  access: { read: ['reader'], write: ['editor'] },
});

const model = defineModel({ roles: ['reader', 'editor', 'operator'], operatorRole: 'operator', entities: [vehicles] });
export const rowkey = createRowkey({ model, ...fromEnvironment(process.env) });
registerFunctions(app, rowkey, { routePrefix: '' });

app.http('check-in', {
  methods: ['POST'],
  route: 'api/check-in/{plate}',
  authLevel: 'anonymous',
  handler: rowkey.handler({ roles: ['editor'] }, async (request, { caller }) => {
    const plate = request.params.plate ?? '';
    if (!/^[A-Z0-9 ]{2,12}$/.test(plate))
      throw new RowkeyError('invalid-input', 'Not a valid plate.', { field: 'plate', accepted: 'such as AB 12345' });
    const known = await rowkey.store.vehicles.by.plate({ plate });
    if (known) return { jsonBody: known };
    const vehicle = { depot: 'north', vehicleId: crypto.randomUUID(), plate };
    const { values } = await rowkey.store.vehicles.create(vehicle, { by: caller.subject });
    return { status: 201, jsonBody: values };
  }),
});
