import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { openWorld } from '../world.ts';

/** What docs/change-the-model.md says of a new field with a default of the schema, and of an index of it. */

const declaration = { table: 'tools', key: { partition: '{toolId}', row: 'tool' }, access: { read: [], write: [] } };
const indexes = { kind: interPartitionIndex({ table: 'toolsbykind', partition: '{kind}', row: '{toolId}' }) };
const { tools: before } = deploy(defineEntity('tools', { ...declaration, schema: z.object({ toolId: z.string() }) }));
const schema = z.object({ toolId: z.string(), kind: z.string().default('other'), note: z.string().optional() });
const { tools: after } = deploy(defineEntity('tools', { ...declaration, schema, indexes }));
const upgrades = { 1: (tool: object) => ({ kind: 'other', ...tool }) };
const { tools: upgraded } = deploy(defineEntity('tools', { ...declaration, schema, indexes, version: 2, upgrades }));

const world = await openWorld(import.meta.url, [after]);

test('a stored entity gets the default of a new field by its next write, or at once by an upgrade', async () => {
  for (const toolId of ['1', '2']) await engineWrite.createEntity(world.engine, before, { toolId });
  const read = async (entity: typeof after, toolId: string) =>
    (await engineRead.readEntity(world.engine, entity, { toolId })).values;
  expect(await read(after, '1')).toEqual({ toolId: '1' });
  const missing = async (entity: typeof after) =>
    (await operationsCheck.verifyPage(world.engine, entity, { top: 10, repair: false, patience: 10 })).findings.length;
  expect(await missing(after)).toBe(0);
  await engineWrite.patchEntity(world.engine, after, { toolId: '1' }, { note: 'x' });
  await world.settle();
  expect(await read(after, '1')).toEqual({ toolId: '1', kind: 'other', note: 'x' });
  expect(await read(upgraded, '2')).toEqual({ toolId: '2', kind: 'other' });
  expect(await missing(upgraded)).toBe(1);
});
