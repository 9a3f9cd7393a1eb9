import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, interPartitionIndex } from '../../lib/define.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { deploy } from '../fixtures/deploy.ts';
import { type Engine, engineConsume, engineRead, engineWrite } from '../kit/engine.ts';
import { log } from '../silent-log.ts';
import { expectIndexesToAgree, openWorld, type World } from '../world.ts';

/**
 * A member copies the name of its unit, whose row is beside it and is remembered by each process that wrote it. Indexes of the copied
 * field follow, although the first plan of a write is made from a name that another process has changed.
 */

const name = z.string().min(1);
const declaredMembers = defineEntity('members', {
  schema: z.object({ unit: name, memberId: name, fullName: name, unitName: name.optional() }),
  table: 'units',
  key: { partition: '{unit}', row: 'member_{memberId}' },
  indexes: {
    badge: interPartitionIndex({ table: 'membersbyid', partition: '{memberId#}', row: '{memberId}', unique: true }),
    unitName: interPartitionIndex({ table: 'membersbyunitname', partition: '{unitName}', row: '{unit}_{memberId}' }),
  },
  denormalized: {
    unit: {
      source: (): DeclaredEntity => declaredUnits,
      copies: { unitName: ({ name: copied }) => copied },
      fanOut: true,
    },
  },
  access: { read: [], write: [] },
});
const declaredUnits = defineEntity('units', {
  schema: z.object({
    unit: name,
    name,
    leadId: name.optional(),
    leadName: name.optional(),
    memberCount: z.int32().optional(),
  }),
  table: 'units',
  key: { partition: '{unit}', row: 'unit' },
  denormalized: {
    leadId: {
      source: declaredMembers,
      by: 'memberId',
      copies: { leadName: ({ fullName }) => fullName },
    },
  },
  counts: { memberCount: declaredMembers },
  access: { read: [], write: [] },
});
const { units, members } = deploy(declaredUnits, declaredMembers);

let world: World;
let other: Engine;
beforeAll(async () => {
  world = await openWorld(import.meta.url, [units, members]);
  other = world.engineThrough(httpClient);
});

const nameOf = async (unit: string, memberId: string) =>
  (await engineRead.readEntity(world.engine, members, { unit, memberId })).values.unitName;

test('a renamed unit reaches its members through a process that remembers the former name', {
  tags: ['slow'],
}, async () => {
  await engineWrite.createEntity(world.engine, units, { unit: 'u', name: 'Former' });
  for (const memberId of ['1', '2', '3'])
    await engineWrite.createEntity(world.engine, members, { unit: 'u', memberId, fullName: 'Ann' });
  await engineWrite.patchEntity(world.engine, units, { unit: 'u' }, { leadId: '1' });
  await world.settle();
  await engineWrite.patchEntity(other, members, { unit: 'u', memberId: '1' }, { fullName: 'Lead' });
  await engineWrite.patchEntity(world.engine, units, { unit: 'u' }, { name: 'New' });
  const message = await world.take('index-changes', 'fanOut');
  await engineConsume.consumeIntent({ engine: other, entities: [units, members], log }, message);
  await world.settle();
  expect(await nameOf('u', '2')).toBe('New');
  await expectIndexesToAgree(world.storage, members);
});

test('a member is created with the new name by a process that remembers the former one', async () => {
  await engineWrite.createEntity(world.engine, units, { unit: 'v', name: 'Former' });
  await engineWrite.createEntity(other, members, { unit: 'v', memberId: '11', fullName: 'Ann' });
  await engineWrite.patchEntity(world.engine, units, { unit: 'v' }, { name: 'New' });
  await world.settle();
  await engineWrite.createEntity(other, members, { unit: 'v', memberId: '12', fullName: 'Ben' });
  await world.settle();
  expect(await nameOf('v', '12')).toBe('New');
  await expectIndexesToAgree(world.storage, members);
});
