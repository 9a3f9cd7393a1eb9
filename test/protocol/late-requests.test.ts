import { type HttpClient, RestError } from '@azure/core-rest-pipeline';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, type Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { lateHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { customers, employees, sales } from '../fixtures/model.ts';
import { type Engine, engineWrite } from '../kit/engine.ts';
import { countEach } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld } from '../world.ts';

/**
 * Storage executes a request late: its sender has lost the connection and has ended, and another writer has undone the change. A
 * request that was sent again must not be executed twice.
 */

const CONCURRENCY = 6;

const unique = (table: string, field: 'plate' | 'chassis') =>
  interPartitionIndex({ table, partition: `{${field}}`, row: 'car', unique: true });
const { cars } = deploy(
  defineEntity('cars', {
    schema: z.object({ city: z.string(), id: z.string(), plate: z.string(), chassis: z.string() }),
    table: 'cars',
    key: { partition: '{city}', row: '{id}' },
    indexes: { plate: unique('carsbyplate', 'plate'), chassis: unique('carsbychassis', 'chassis') },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

const world = await openWorld(import.meta.url, [cars]);
afterAll(async () => {
  await world.settle();
  const checks = [employees, customers, sales, cars].map((entity) => expectIndexesToAgree(world.storage, entity));
  await Promise.all(checks);
});

const person = (tag: string) => {
  return { department: `D${tag}`, employeeId: tag, email: `${tag}@contoso.com`, firstName: 'A', lastName: `L${tag}` };
};
const customer = (tag: string) => ({ city: 'Bern', customerId: tag, companyName: 'A', contactName: `Ann L${tag}` });
const sale = (tag: string) => ({ branch: `B${tag}`, saleId: `S${tag}`, soldOn: '2026-03-07', amount: 10 });

interface Kind {
  readonly prepare?: (tag: string) => Promise<unknown>;
  readonly act: (engine: Engine, tag: string) => Promise<unknown>;
  readonly undo: (tag: string) => Promise<unknown>;
}

const rename = (engine: Engine, tag: string, name: string): Promise<unknown> => {
  const change: Values = { lastName: `${name}${tag}`, email: `${name}${tag}@contoso.com` };
  return engineWrite.patchEntity(engine, employees, person(tag), change);
};
const KINDS: Readonly<Record<string, Kind>> = {
  'a create with a unique value and a list': {
    act: (engine, tag) => engineWrite.createEntity(engine, employees, person(tag)),
    undo: (tag) => engineWrite.deleteEntity(world.engine, employees, person(tag)),
  },
  'a change of a unique value and a list': {
    prepare: (tag) => engineWrite.createEntity(world.engine, employees, person(tag)),
    act: (engine, tag) => rename(engine, tag, 'New'),
    undo: (tag) => rename(world.engine, tag, 'Old'),
  },
  'a create with a copy': {
    act: (engine, tag) => engineWrite.createEntity(engine, customers, customer(tag)),
    undo: (tag) => engineWrite.deleteEntity(world.engine, customers, customer(tag)),
  },
  'a create that is added to a total': {
    act: (engine, tag) => engineWrite.createEntity(engine, sales, sale(tag)),
    undo: (tag) => engineWrite.deleteEntity(world.engine, sales, sale(tag)),
  },
};

let counter = 0;
/** Six digits that no other trial has. */
function newTag(): string {
  counter += 1;
  return `0${String(counter).padStart(5, '0')}`;
}

test.each(Object.entries(KINDS))(
  '%s leaves no difference if a request arrives late',
  { tags: ['slow'] },
  async (name, kind) => {
    const play = async (at: number) => {
      const tag = newTag();
      await kind.prepare?.(tag);
      const client = lateHttpClient(at);
      await kind.act(world.engineThrough(client), tag).catch(() => undefined);
      await kind.undo(tag).catch(() => undefined);
      await client.arrive();
      return client.calls;
    };
    const count = await play(0);
    expect(count).toBeGreaterThan(3);
    const points = Array.from({ length: count }, (_, index) => index + 1);
    await countEach(points, play, { what: `Request that arrives late: ${name}`, concurrency: CONCURRENCY });
  },
);

test('a create whose claim got no reply does not block its repetition', async () => {
  const car = { city: 'Bern', id: '1', plate: 'BE1', chassis: 'C1' };
  const client: HttpClient = {
    async sendRequest(request) {
      if (request.method === 'POST' && request.url.includes('carsbychassis'))
        throw new RestError('The connection was lost.', { code: 'ECONNRESET', request });
      return httpClient.sendRequest(request);
    },
  };
  const create = (engine: Engine) => engineWrite.createEntity(engine, cars, car);
  await expect(create(world.engineThrough(client))).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect((await create(world.engine)).values).toEqual(car);
});
