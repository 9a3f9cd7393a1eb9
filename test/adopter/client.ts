import { createClient } from 'rowkey/client';
import type { rowkey } from './app.ts';
import type { yard } from './depots.ts';

/** Both models through the API, from another process. */
const { API: url = '', TOKEN: token = '' } = process.env;
const client = createClient<typeof rowkey.model>({ url, token });
const yardClient = createClient<typeof yard.model>({ url: `${url}/yard`, token });
const vehicle = await client.vehicles.by.plate({ plate: 'AB 12345' });
const { values } = await yardClient.depots.create({ region: 'no', depot: crypto.randomUUID(), places: 4 });
console.log(vehicle?.vehicleId, values.places, (await yardClient.depots.get(values))?.values.region);
// @ts-expect-error no index has this name
void client.vehicles.by.plates;
