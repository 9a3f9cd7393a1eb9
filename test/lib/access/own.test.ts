import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readOwn } from '../../../lib/access/own.ts';
import { defineEntity, interPartitionIndex } from '../../../lib/define.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { employees } from '../../fixtures/model.ts';
import type { Entity } from '../../kit/define.ts';
import { engineWrite } from '../../kit/engine.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { openWorld, somebody } from '../../world.ts';

/** An entity that belongs to an identity instead of an address. */
const { badges } = deploy(
  defineEntity('badges', {
    schema: z.object({ site: z.string(), badge: z.string(), holder: z.guid().toLowerCase() }),
    table: 'badges',
    key: { partition: '{site}', row: '{badge}' },
    indexes: {
      holder: interPartitionIndex({
        table: 'badgesbyholder',
        partition: 'h',
        row: '{holder}',
        unique: true,
        copies: 'keys',
      }),
    },
    access: { read: ['reader'], write: ['hr'], own: { claim: 'oid', index: 'holder' } },
  }),
);

const world = await openWorld(import.meta.url, [badges]);

const own = (claims: Record<string, string>, entity: Entity = employees) =>
  readOwn(world.engine, { subject: 'x', roles: [], claims }, entity);

test('reads the own entity with two transactions', async () => {
  const one = somebody();
  await engineWrite.createEntity(world.engine, employees, one);
  await world.settle();
  await storageAccounts.measureCost(async (cost) => {
    expect(await own({ email: one.email })).toMatchObject({ employeeId: one.employeeId });
    expect(cost.transactions).toBe(2);
  });
});

test('finds nothing by a former email, even while its index entry exists', async () => {
  const one = somebody();
  await engineWrite.createEntity(world.engine, employees, one);
  await world.settle();
  const email = `${randomUUID()}@contoso.com`;
  await engineWrite.patchEntity(world.queued, employees, one, { email });
  // No message is handled: the index is as before.
  await expect(own({ email: one.email })).rejects.toMatchObject({ code: 'not-found' });
  expect(await own({ email })).toMatchObject({ employeeId: one.employeeId });
});

test('finds nothing after a delete, even while the index entry exists', async () => {
  const one = somebody();
  await engineWrite.createEntity(world.engine, employees, one);
  await world.settle();
  await engineWrite.deleteEntity(world.queued, employees, one);
  await expect(own({ email: one.email })).rejects.toMatchObject({ code: 'not-found' });
});

test('compares a claim in the form in which the field is stored', async () => {
  const one = somebody({ email: `Kim.${randomUUID()}@contoso.com` });
  await engineWrite.createEntity(world.engine, employees, one);
  expect(await own({ email: one.email.toUpperCase() })).toMatchObject({ employeeId: one.employeeId });
  // The Kelvin sign is `k` in lower case.
  for (const email of [one.email.replace('K', '\u212a'), `${one.email}\u202e`, `${one.email}\0`, '', 'nobody'])
    await expect(own({ email })).rejects.toMatchObject({ code: 'forbidden' });
  await expect(own({ sub: one.email })).rejects.toMatchObject({ code: 'forbidden', field: 'email' });
});

test('finds the own entity by another claim than the email', async () => {
  const holder = randomUUID();
  await engineWrite.createEntity(world.engine, badges, { site: 's', badge: '1', holder });
  expect(await own({ oid: holder, email: 'ann@contoso.com' }, badges)).toMatchObject({ badge: '1' });
  await expect(own({ oid: randomUUID() }, badges)).rejects.toMatchObject({ code: 'not-found' });
  await expect(own({ sub: holder }, badges)).rejects.toMatchObject({ code: 'forbidden' });
});
