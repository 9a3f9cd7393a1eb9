import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  type IntraPartitionIndex,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../lib/index.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { baseValues } from '../../kit/base.ts';
import { engineRead, engineWrite } from '../../kit/engine.ts';
import { featureUpkeep } from '../../kit/features.ts';
import { mostInFlight } from '../../most-in-flight.ts';
import { openWorld, rowsOf } from '../../world.ts';

/** How many requests run concurrently where the documents promise it. */

const access = { read: ['hr'], write: ['hr'] } as const;
const { parcels, visits } = deploy(
  defineEntity('parcels', {
    schema: z.object({ depot: z.string(), id: z.string(), weight: z.int32().min(0).max(999), code: z.string() }),
    table: 'parcels',
    key: { partition: '{depot}', row: 'parcel_{id}' },
    indexes: {
      weight: intraPartitionIndex({ row: 'weight_{weight:3}_{id}', copies: 'keys' }),
      code: interPartitionIndex({ table: 'parcelsbycode', partition: '{code}', row: '{depot}_{id}' }),
    },
    access,
  }),
  defineEntity('visits', {
    schema: z.object({ door: z.string(), at: z.iso.datetime() }),
    table: 'visits',
    key: { partition: '{door}', row: '{at}' },
    period: { per: 'day', field: 'at', keep: 30 },
    access,
  }),
);
const world = await openWorld(import.meta.url, [parcels]);

const create = (depot: string, count: number) =>
  engineWrite.writeBatch(
    world.engine,
    parcels,
    Array.from({ length: count }, (_, id) => ({
      create: { depot, id: String(id), weight: id, code: `${depot}${id}` },
    })),
  );
const isOfOneRow = ({ method, url }: { method: string; url: string }) =>
  method === 'GET' && url.includes('RowKey=') && url.includes('/parcels(');

test('reads the entities of a keys-only index sixteen at a time', async () => {
  await create('north', 16);
  await create('north2', 16);
  const client = mostInFlight(isOfOneRow);
  const engine = world.engineThrough(client);
  const read = { top: 40 };
  const { items } = await engineRead.readByCopies(
    engine,
    parcels,
    parcels.indexes.weight as IntraPartitionIndex,
    { depot: 'north' },
    read,
  );
  expect(items).toHaveLength(16);
  expect(client.most).toBe(16);
});

test('reads the tables of eight periods at a time', async () => {
  const noon = Date.parse('2026-11-20T12:00:00Z');
  const now = () => noon;
  await featureUpkeep.rollPeriods({ ...world.engine, now }, visits);
  const client = mostInFlight(({ method, url }) => method === 'GET' && /\/visits\d{8}\(/.test(url));
  const range = { top: 100, from: new Date(noon - 20 * baseValues.DAY_MS).toISOString() };
  await engineRead.readEntities({ ...world.engineThrough(client), now }, visits, { door: 'a' }, range);
  expect(client.most).toBe(8);
});

test('settles the index entries of up to sixteen entities of a transaction before it returns, and leaves more to the queue', async () => {
  const stored = async (depot: string) =>
    (await rowsOf(world.storage, 'parcelsbycode')).filter(({ partitionKey }) => String(partitionKey).startsWith(depot))
      .length;
  await create('few', 16);
  expect(await stored('few')).toBe(16);
  await create('many', 17);
  expect(await stored('many')).toBe(0);
  await world.settle();
  expect(await stored('many')).toBe(17);
});
