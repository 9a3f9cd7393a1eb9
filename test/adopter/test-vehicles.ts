import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestStore } from 'rowkey/testing';
import { rowkey } from './app.ts';

const van = { depot: 'north', vehicleId: '1', plate: 'AB 12345' };

test('a plate belongs to one vehicle', async () => {
  const { store } = await createTestStore(rowkey.model);
  await store.vehicles.create(van);
  await assert.rejects(store.vehicles.create({ ...van, vehicleId: '2' }), { code: 'duplicate-value' });
  assert.equal((await store.vehicles.by.plate({ plate: 'AB 12345' }))?.vehicleId, '1');
});

test('a request that never arrived changes nothing', async () => {
  const { store, storage } = await createTestStore(rowkey.model);
  storage.intercept = async () => {
    throw new Error('The network is down.');
  };
  await assert.rejects(store.vehicles.create(van));
  storage.intercept = undefined;
  assert.equal(await store.vehicles.get({ depot: 'north', vehicleId: '1' }), undefined);
});

test('a lost reply leaves the index correct', async () => {
  const { store, storage, settle } = await createTestStore(rowkey.model);
  storage.intercept = async (request, send) => {
    const response = await send();
    if (request.method === 'GET') return response;
    storage.intercept = undefined;
    throw new Error('The reply was lost.');
  };
  await store.vehicles.create(van).catch(() => undefined);
  await settle();
  const stored = await store.vehicles.get({ depot: 'north', vehicleId: '1' });
  assert.deepEqual(await store.vehicles.by.plate({ plate: 'AB 12345' }), stored?.values);
});
