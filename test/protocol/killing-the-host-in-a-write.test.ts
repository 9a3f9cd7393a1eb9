import { afterAll, beforeAll, expect, test } from 'vitest';
import { collectAllOrphans } from '../collect-all-orphans.ts';
import { employees } from '../fixtures/model.ts';
import { type KilledHost, openKilledHost } from '../killed-host.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { featureFiles } from '../kit/features.ts';
import { countEach, countTried } from '../tried-faults.ts';
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

test('a create, a change, a delete and a photo are done completely or not at all, and every index agrees', async () => {
  const hire = (world: KilledHost['world'], one: object) => engineWrite.createEntity(world.engine, employees, one);
  const creates = await killed.visit({ moreCallsThan: 8, act: (call, one) => call('POST', 'employees', one) });
  const changes = await killed.visit({
    moreCallsThan: 8,
    prepare: hire,
    act: (call, one) =>
      call('PATCH', `employees/${one.department}/${one.employeeId}`, {
        email: `new-${one.email}`,
        lastName: `New${one.lastName}`,
      }),
  });
  const deletes = await killed.visit({
    moreCallsThan: 8,
    prepare: hire,
    act: (call, one) => call('DELETE', `employees/${one.department}/${one.employeeId}`),
  });
  const photos = await killed.visit({
    moreCallsThan: 8,
    prepare: hire,
    act: (call, one) => call('PUT', `employees/${one.department}/${one.employeeId}/photo`, PNG),
  });
  await killed.settle();
  const what = (operation: string) => `Host killed after each storage call of a ${operation}`;
  const live = await countTried({ what: 'Host killed in a write: indexes agree afterwards' }, () =>
    expectIndexesToAgree(killed.world.storage, employees),
  );

  const found = (one: object) =>
    engineRead.readEntity(killed.world.engine, employees, { ...one }).catch(() => undefined);
  await countEach(
    creates,
    async ({ one, status }) => {
      if (status === 201) expect((await found(one))?.values).toEqual(one);
    },
    { what: what('create') },
  );
  await countEach(
    changes,
    async ({ one, status }) => {
      const email = (await found(one))?.values.email;
      expect([one.email, `new-${one.email}`]).toContain(email);
      if (status === 200) expect(email).toBe(`new-${one.email}`);
    },
    { what: what('change') },
  );
  await countEach(
    deletes,
    async ({ one, status }) => {
      if (status === 204) expect(await found(one)).toBeUndefined();
    },
    { what: what('delete') },
  );
  const { engine } = killed.world;
  // A day later the leftovers of the dead writers are deleted, and nothing else.
  await collectAllOrphans({ ...engine, now: () => Date.now() + TWO_DAYS_MS }, [employees]);
  await countEach(
    photos,
    async ({ one, status }) => {
      const attachment = { entity: employees, key: one, field: 'photo' };
      const there = await featureFiles.describeAttachment(engine, attachment).catch(() => undefined);
      if (status === 200) expect(there).toBeDefined();
      if (there) expect((await featureFiles.readAttachment(engine, attachment, there)).length).toBe(PNG.length);
    },
    { what: what('photo') },
  );
  const blobs = await Array.fromAsync(engine.storage.blobs.getContainerClient('photos').listBlobsFlat());
  expect(blobs).toHaveLength(live.filter(({ photo }) => photo).length);
}, 1_800_000);
