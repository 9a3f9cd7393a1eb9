import { rowkey } from './app.ts';

// @ts-expect-error the engine is no part of the types of an instance
void rowkey.runtime;
// @ts-expect-error the linked entities are no part of the types of a model
void rowkey.model.list;
// @ts-expect-error no entity has this name
void rowkey.store.vehicle;
// @ts-expect-error no index has this name
void rowkey.store.vehicles.by.plates;
// @ts-expect-error the key has no field of this name
void (() => rowkey.store.vehicles.get({ depot: 'north', vehicle: '1' }));
// @ts-expect-error no field has this name
void (() => rowkey.store.vehicles.update({ depot: 'north', vehicleId: '1' }, { colour: 'red' }));
