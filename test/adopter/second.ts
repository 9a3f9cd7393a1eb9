import { createRowkey, defineEntity, defineModel } from 'rowkey';
import { z } from 'zod';
import { rowkey } from './app.ts';

/** A second model with another storage account, in the process of the first. */
const connectionString = process.env.SECOND_STORAGE ?? '';
const auth = { issuer: 'https://issuer.example/', audience: 'second', jwksUri: 'https://issuer.example/keys' };
const depots = defineEntity('depots', {
  schema: z.object({ region: z.string(), depot: z.string(), places: z.int32() }),
  table: 'depots',
  key: { partition: '{region}', row: '{depot}' },
  access: { read: ['reader'], write: ['editor'] },
});
const model = defineModel({ roles: ['reader', 'editor'], operatorRole: 'editor', entities: [depots] });
const second = createRowkey({ model, storage: { connectionString }, auth });

await rowkey.provision();
await second.provision();
const created = await second.store.depots.create({ region: 'no', depot: 'north', places: 2 });
const changed = await second.store.depots.update(
  { region: 'no', depot: 'north' },
  { places: created.values.places + 1 },
  { ifMatch: created.etag },
);
await rowkey.store.vehicles.create({ depot: 'north', vehicleId: '1', plate: 'AB 12345' });
for await (const { plate, model } of rowkey.store.vehicles.range({ depot: 'north' }))
  console.log(plate, model ?? 'none');
console.log(JSON.stringify(changed.values));
