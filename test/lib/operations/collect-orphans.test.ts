import { randomUUID } from 'node:crypto';
import pMap from 'p-map';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../../lib/base/time.ts';
import { blobPrefix, createBlobName, formerBlobPrefix, toReferrer } from '../../../lib/engine/read/text-blobs.ts';
import { createEntity } from '../../../lib/engine/write/entity-store.ts';
import { collectOrphans } from '../../../lib/operations/collect-orphans.ts';
import { listContainer, writeBlob } from '../../../lib/storage/blobs.ts';
import { employees, model, reviews } from '../../fixtures/model.ts';
import { openWorld, somebody } from '../../world.ts';

test('a run that ends at its time is continued by the next one, and every blob is checked', async () => {
  const world = await openWorld(import.meta.url);
  const one = somebody({ department: 'Kept' });
  await createEntity(world.engine, employees, one);
  const { department, employeeId } = one;
  await createEntity(world.engine, reviews, {
    department,
    employeeId,
    year: 2025,
    rating: 3,
    comments: 'x'.repeat(400_000),
  });
  const kept = await Array.fromAsync(listContainer(world.storage, 'large'), ({ name }) => name);
  expect(kept).toHaveLength(1);
  // Each is in another partition, and so in another slot, and some are of an earlier release.
  const names = Array.from({ length: 40 }, (_, index) => {
    const address = { table: 'employees', partition: `gone${index}`, row: 'empid_1' };
    const prefix = index % 4 === 0 ? formerBlobPrefix(address, 'comments') : blobPrefix(address, 'comments');
    return { name: prefix + randomUUID(), metadata: toReferrer(address) };
  });
  const write = ({ name, metadata }: (typeof names)[number]) =>
    pMap(['large', 'photos'], (container) =>
      writeBlob(world.storage, { container, name }, Buffer.from('x'), { type: 'text/plain', metadata }),
    );
  await pMap(names, write, { concurrency: 16 });
  let time = Date.now() + 2 * DAY_MS;
  const engine = { ...world.engine, now: () => (time += 1) };
  let deleted = 0;
  let runs = 0;
  for (let isComplete = false; !isComplete && runs < 40; runs += 1) {
    const run = await collectOrphans(engine, model.list, { until: time + 20 });
    expect(run.checked).toBeLessThan(20);
    deleted += run.deleted;
    isComplete = run.isComplete;
  }
  expect([deleted, runs > 4]).toEqual([80, true]);
  expect(await Array.fromAsync(listContainer(world.storage, 'large'), ({ name }) => name)).toEqual(kept);
  // The next run begins with the first blob again.
  const address = { table: 'employees', partition: 'gone', row: 'empid_1' };
  await write({ name: createBlobName(address, 'comments'), metadata: toReferrer(address) });
  expect(await collectOrphans(engine, model.list)).toEqual({ checked: 3, deleted: 2, isComplete: true });
});
