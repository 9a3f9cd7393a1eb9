import { afterAll, beforeAll, expect, test } from 'vitest';
import { employees } from '../../lib/model/directory/employees.ts';
import { describeAttachment, readAttachment } from '../../lib/patterns/attachment.ts';
import { collectOrphans } from '../../lib/patterns/collect-orphans.ts';
import { createEntity } from '../../lib/patterns/entity-store.ts';
import { readEntity } from '../../lib/patterns/retrieve.ts';
import { type KilledHost, openKilledHost } from '../killed-host.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree } from '../world.ts';

/** The host is killed between any two storage calls of a write, of its claim, and of the reconciler that follows. */

const TWO_DAYS_MS = 48 * 3_600_000;
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=',
  'base64',
);

let killed: KilledHost;
beforeAll(async () => {
  killed = await openKilledHost(import.meta.url);
});
afterAll(() => killed?.stop());

test('a create, a change, a delete and a photo are done or not done, and everything agrees', async () => {
  const hire = (world: KilledHost['world'], one: object) => createEntity(world.engine, employees, one);
  const creates = await killed.visit({ act: (call, one) => call('POST', 'employees', one) });
  const changes = await killed.visit({
    prepare: hire,
    act: (call, one) =>
      call('PATCH', `employees/${one.department}/${one.employeeId}`, {
        email: `new-${one.email}`,
        lastName: `New${one.lastName}`,
      }),
  });
  const deletes = await killed.visit({
    prepare: hire,
    act: (call, one) => call('DELETE', `employees/${one.department}/${one.employeeId}`),
  });
  const photos = await killed.visit({
    prepare: hire,
    act: (call, one) => call('PUT', `employees/${one.department}/${one.employeeId}/photo`, PNG),
  });
  await killed.settle();
  const live = await expectIndexesToAgree(killed.world.storage, employees);

  const found = (one: object) => readEntity(killed.world.engine, employees, { ...one }).catch(() => undefined);
  for (const { one, status } of creates) if (status === 201) expect((await found(one))?.values).toEqual(one);
  for (const { one, status } of changes) {
    const email = (await found(one))?.values.email;
    expect([one.email, `new-${one.email}`]).toContain(email);
    if (status === 200) expect(email).toBe(`new-${one.email}`);
  }
  for (const { one, status } of deletes) if (status === 204) expect(await found(one)).toBeUndefined();
  const { engine } = killed.world;
  // What a dead writer left behind goes a day later, and nothing else.
  await collectOrphans({ ...engine, now: () => Date.now() + TWO_DAYS_MS }, [employees]);
  for (const { one, status } of photos) {
    const attachment = { entity: employees, key: one, field: 'photo' };
    const there = await describeAttachment(engine, attachment).catch(() => undefined);
    if (status === 200) expect(there).toBeDefined();
    if (there) expect((await readAttachment(engine, attachment, there)).length).toBe(PNG.length);
  }
  const blobs = await Array.fromAsync(engine.storage.blobs.getContainerClient('photos').listBlobsFlat());
  expect(blobs).toHaveLength(live.filter(({ photo }) => photo).length);
  const points = { create: creates.length, change: changes.length, delete: deletes.length, photo: photos.length };
  expect(Math.min(...Object.values(points))).toBeGreaterThan(8);
  for (const [deed, times] of Object.entries(points))
    countTried(`The host killed (SIGKILL) after a storage call of a ${deed}, its claim or its reconciler`, times);
}, 1_800_000);
