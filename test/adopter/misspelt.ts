import { rowkey } from './app.ts';

// @ts-expect-error no entity has this name
void rowkey.store.vehicle;
// @ts-expect-error no index has this name
void rowkey.store.vehicles.by.plates;
// @ts-expect-error the key has no field of this name
void (() => rowkey.store.vehicles.get({ depot: 'north', vehicle: '1' }));
// @ts-expect-error no field has this name
void (() => rowkey.store.vehicles.update({ depot: 'north', vehicleId: '1' }, { colour: 'red' }));
