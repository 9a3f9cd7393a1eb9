import {
  createRowkey,
  defineEntity,
  defineModel,
  defineOperation,
  defineSeries,
  defineUnion,
  fromEnvironment,
  type Implementations,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
} from 'rowkey';
import { createClient } from 'rowkey/client';
import { z } from 'zod';

/** What an app may export although the compiler writes declaration files for it: projects that refer to each other need them. */
const access = { read: ['reader'], write: ['editor'] } as const;
export const byOwner = interPartitionIndex({ table: 'boatsbyowner', partition: '{owner}', row: '{port}_{boatId}' });
export const boats = defineEntity('boats', {
  schema: z.object({ port: z.string(), boatId: z.string(), owner: z.string(), length: z.int32() }),
  table: 'boats',
  key: { partition: '{port}', row: '{boatId}' },
  indexes: {
    byOwner,
    inPort: intraPartitionIndex({ row: 'owner_{owner}_{boatId}' }),
    ports: indexEntity({ table: 'boatports', partition: '{owner}', row: 'ports', holds: '{port}/{boatId}' }),
  },
  totals: { lengths: total({ table: 'boatlengths', partition: '{owner}', row: 'all', sum: ['length'] }) },
  access,
});
export const visits = defineSeries('visits', {
  schema: z.object({ port: z.string(), day: z.iso.date() }),
  table: 'visits',
  key: { partition: '{port}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  span: { field: 'day', per: 'day' },
  access,
});
export const crews = defineUnion('crews', {
  schema: z.object({ port: z.string(), crewId: z.string() }),
  kinds: { skipper: z.object({ licence: z.string() }), mate: z.object({}) },
  table: 'crews',
  key: { partition: '{port}', row: '{crewId}' },
  access,
});
export const launch = defineOperation('launch', {
  summary: 'Register a boat',
  kind: 'write',
  roles: ['editor'],
  input: boats.schema.pick({ port: true, owner: true }),
  output: z.object({ boatId: z.string() }),
});
export const model = defineModel({
  roles: ['reader', 'editor'],
  operatorRole: 'editor',
  entities: [boats, visits, crews],
  operations: [launch],
});
export const settings = fromEnvironment(process.env);
export const operations: Implementations<typeof model> = {
  async launch({ input, store }) {
    const { values } = await store.boats.create({ ...input, boatId: '1', length: 9 });
    return values;
  },
};
export const rowkey = createRowkey({ model, path: 'boats', ...settings, operations });
export const { authenticate } = rowkey;
export const client = createClient<typeof model>({ url: '' });
export const findBoat = (port: string, boatId: string) => rowkey.store.boats.get({ port, boatId });
export const listBoats = (owner: string) => rowkey.store.boats.by.byOwner({ owner });
export const sumLengths = (owner: string) => rowkey.store.boats.totals.lengths.get({ owner });
export const askBoat = (port: string, boatId: string) =>
  client.query(({ boats: read }) => ({ boat: read.get({ port, boatId }) }));
export const launchBoat = (port: string, owner: string) => client.operations.launch({ port, owner });
