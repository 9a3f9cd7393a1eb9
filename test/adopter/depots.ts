import { app } from '@azure/functions';
import {
  createRowkey,
  defineEntity,
  defineModel,
  fromEnvironment,
  intraPartitionIndex,
  registerFunctions,
} from 'rowkey';
import { z } from 'zod';

const depots = defineEntity('depots', {
  schema: z.object({ region: z.string(), depot: z.string(), places: z.int32() }),
  table: 'depots',
  key: { partition: '{region}', row: 'depot_{depot}' },
  indexes: { places: intraPartitionIndex({ row: 'places_{places:4}_{depot}', copies: 'keys' }) },
  access: { read: ['reader'], write: ['editor'] },
});

const model = defineModel({ prefix: 'yard', roles: ['reader', 'editor'], operatorRole: 'editor', entities: [depots] });
const settings = fromEnvironment(process.env, { connection: 'YardStorage' });
export const yard = createRowkey({ model, path: 'yard', ...settings });
registerFunctions(app, yard, { routePrefix: '' });
