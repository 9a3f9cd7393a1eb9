import { rowkey } from './app.ts';
import { yard } from './depots.ts';

/** Two models with two storage accounts in one process. */
await rowkey.provision();
await yard.provision();
const created = await yard.store.depots.create({ region: 'no', depot: 'north', places: 2 });
const changed = await yard.store.depots.update(
  { region: 'no', depot: 'north' },
  { places: created.values.places + 1 },
  { ifMatch: created.etag },
);
await rowkey.store.vehicles.create({ depot: 'north', vehicleId: '1', plate: 'AB 12345' });
for await (const { plate, model } of rowkey.store.vehicles.range({ depot: 'north' }))
  console.log(plate, model ?? 'none');
console.log(JSON.stringify(changed.values));
