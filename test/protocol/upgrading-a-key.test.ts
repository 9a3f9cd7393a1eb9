import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { openWorld, rowsOf } from '../world.ts';

/** An upgrade that changes a key field would lead every request to another row than the stored one. */

const declaration = {
  table: 'labels',
  key: { partition: '{area}', row: '{label}_{number:4}' },
  indexes: { name: interPartitionIndex({ table: 'labelsbyname', partition: '{name#}', row: '{name}', unique: true }) },
  access: { read: [], write: [] },
} as const;
const schema = z.object({ area: z.string(), label: z.string(), number: z.int32(), name: z.string() });
const { labels: first } = deploy(defineEntity('labels', { ...declaration, schema }));
const { labels } = deploy(
  defineEntity('labels', {
    ...declaration,
    schema,
    version: 2,
    upgrades: { 1: ({ label, ...others }) => ({ ...others, label: String(label).toLowerCase(), name: 'New' }) },
  }),
);

const world = await openWorld(import.meta.url, [labels]);

test('an upgrade changes other fields, and the key stays that of the row', async () => {
  const key = { area: 'a', label: 'X', number: 7 };
  await engineWrite.createEntity(world.engine, first, { ...key, name: 'Old' });
  await world.settle();
  expect(await engineRead.readEntity(world.engine, labels, key)).toMatchObject({ values: { ...key, name: 'New' } });
  await expect(engineRead.readEntity(world.engine, labels, { ...key, label: 'x' })).rejects.toMatchObject({
    code: 'not-found',
  });
  await engineWrite.patchEntity(world.engine, labels, key, { name: 'Newer' });
  await world.settle();
  const rows = await rowsOf(world.storage, 'labels');
  expect(rows).toEqual([expect.objectContaining({ ...key, name: 'Newer', EntityVersion: 2 })]);
  const { findings } = await operationsCheck.verifyPage(world.engine, labels, { top: 10, repair: false, patience: 10 });
  expect(findings).toEqual([]);
});
