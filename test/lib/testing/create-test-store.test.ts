import { RestError } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../../lib/define.ts';
import { createTestStore } from '../../../lib/testing/index.ts';
import { storageAccounts } from '../../kit/storage.ts';

const text = z.string();
const model = defineModel({
  roles: ['all'],
  operatorRole: 'all',
  entities: [
    defineEntity('guests', {
      schema: z.object({ city: text, id: text, name: text, badge: text, secret: text.optional() }),
      table: 'guests',
      key: { partition: '{city}', row: '{id}' },
      encrypted: ['secret'],
      indexes: {
        badge: interPartitionIndex({ table: 'guestsbybadge', partition: '{badge}', row: 'guest', unique: true }),
        name: interPartitionIndex({ table: 'guestsbyname', partition: '{name}', row: '{city}_{id}', settle: 'queue' }),
      },
      access: { read: ['all'], write: ['all'], restricted: { secret: ['all'] } },
    }),
  ],
});
const key = { city: 'Bern', id: '1' };
const ann = { ...key, name: 'Ann', badge: 'A1' };

async function namesakes(
  store: Awaited<ReturnType<typeof createTestStore<typeof model.entities>>>['store'],
  name: string,
) {
  return Array.fromAsync(store.guests.by.name({ name }), ({ id }) => id);
}

test('reads and writes as the store of an app does', async () => {
  const { store } = await createTestStore(model);
  const { etag } = await store.guests.create({ ...ann, secret: 'x' });
  expect(await store.guests.get(key)).toMatchObject({ values: { ...ann, secret: 'x' }, etag });
  await expect(store.guests.create({ ...ann, id: '2' })).rejects.toMatchObject({ code: 'duplicate-value' });
  await store.guests.update(key, { badge: 'B2' }, { ifMatch: etag });
  await expect(store.guests.delete(key, { ifMatch: etag })).rejects.toMatchObject({ code: 'etag-mismatch' });
  expect([await store.guests.by.badge({ badge: 'A1' }), await store.guests.by.badge({ badge: 'B2' })]).toMatchObject([
    undefined,
    { id: '1' },
  ]);
});

test('keeps the stores of a process apart', async () => {
  const [one, other] = [await createTestStore(model), await createTestStore(model)];
  await one.store.guests.create(ann);
  expect(await other.store.guests.get(key)).toBeUndefined();
});

test('does the work of the queue functions when told', async () => {
  const { store, settle } = await createTestStore(model);
  await store.guests.create(ann);
  expect(await namesakes(store, 'Ann')).toEqual([]);
  await settle();
  expect(await namesakes(store, 'Ann')).toEqual(['1']);
  await store.guests.update(key, { name: 'Eve' });
  await settle();
  expect([await namesakes(store, 'Ann'), await namesakes(store, 'Eve')]).toEqual([[], ['1']]);
});

test('finishes a write whose reply was lost, and whose process died', { tags: ['slow'] }, async () => {
  const { store, settle, storage } = await createTestStore(model);
  storage.intercept = async (request, send) => {
    const response = await send();
    if (request.method === 'GET' || !/\/guests[?(]/.test(request.url)) return response;
    storage.intercept = async () => {
      throw new RestError('The process is dead.', { code: 'ECONNREFUSED', request });
    };
    throw new RestError('The connection was lost.', { code: 'ECONNRESET', request });
  };
  await expect(store.guests.create(ann)).rejects.toMatchObject({ code: 'storage-unavailable' });
  storage.intercept = undefined;
  await settle();
  const isStored = (await store.guests.get(key)) !== undefined;
  expect((await store.guests.by.badge({ badge: 'A1' })) !== undefined).toBe(isStored);
  expect(await namesakes(store, 'Ann')).toEqual(isStored ? ['1'] : []);
});

test('spreads partitions over several accounts, of which one may be away', { tags: ['slow'] }, async () => {
  const { store, settle, accounts } = await createTestStore(model, { accounts: ['second', 'third'] });
  expect([...accounts.keys()]).toEqual(['first', 'second', 'third']);
  const cities = ['Bern', 'Basel', 'Chur', 'Genf', 'Thun', 'Zug', 'Uster', 'Visp'];
  for (const city of cities) await store.guests.create({ ...ann, city, badge: city });
  await settle();
  expect(await namesakes(store, 'Ann')).toHaveLength(cities.length);
  const third = accounts.get('third');
  if (third)
    third.intercept = async (request) => {
      throw new RestError('The account is away.', { code: 'ECONNREFUSED', request });
    };
  const read = await Promise.allSettled(cities.map((city) => store.guests.get({ ...key, city })));
  const states = new Set(read.map(({ status }) => status));
  expect(states).toEqual(new Set(['fulfilled', 'rejected']));
  if (third) third.intercept = undefined;
  expect(await store.guests.get(key)).toBeDefined();
});

test('fails if a message can never succeed', async () => {
  const { settle, storage } = await createTestStore(model);
  await storageAccounts.openStorage(storage).queue('index-changes').sendMessage('{}');
  await expect(settle()).rejects.toThrow('is poison');
  await settle();
});
