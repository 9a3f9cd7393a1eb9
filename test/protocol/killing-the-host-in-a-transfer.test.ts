import { afterAll, beforeAll, expect, test } from 'vitest';
import { employees } from '../fixtures/model.ts';
import { type KilledHost, openKilledHost, type Visited } from '../killed-host.ts';
import type { Entity } from '../kit/define.ts';
import { engineConsume, engineRead, engineWrite } from '../kit/engine.ts';
import { countEach, countTried } from '../tried-faults.ts';
import { expectIndexesToAgree } from '../world.ts';

/** The next settling kills the host once more, and the fifth kill is the last that a message survives. */
const SETTLE_AFTER = engineConsume.MAX_ATTEMPTS - 2;

/** The host is killed between any two storage calls of an archive, of a move, and of their follow-up work. */

let killed: KilledHost;
beforeAll(async () => {
  killed = await openKilledHost(import.meta.url);
});
afterAll(() => killed?.stop());

test('an archive and a move are done completely or not at all, and the entity is stored exactly once', async () => {
  const hire = (world: KilledHost['world'], one: object) => engineWrite.createEntity(world.engine, employees, one);
  const archives = await killed.visit({
    moreCallsThan: 15,
    settleAfter: SETTLE_AFTER,
    prepare: hire,
    act: (call, one) => call('POST', `employees/${one.department}/${one.employeeId}/archive`),
  });
  const moves = await killed.visit({
    moreCallsThan: 15,
    settleAfter: SETTLE_AFTER,
    prepare: hire,
    act: (call, one) =>
      call('POST', `employees/${one.department}/${one.employeeId}/move`, { department: `To${one.employeeId}` }),
  });
  await killed.settle();
  const what = (operation: string) => `Host killed after each storage call of ${operation}`;
  await countTried({ what: 'Host killed in a transfer: indexes agree afterwards' }, () =>
    expectIndexesToAgree(killed.world.storage, employees),
  );

  const { engine } = killed.world;
  const isIn = async (entity: Entity, one: object) =>
    Number((await engineRead.readEntity(engine, entity, { ...one }).catch(() => undefined)) !== undefined);
  const former = employees.archive;
  if (!former) throw new Error('Employees have an archive.');
  const checkArchive = async ({ one, status }: Visited) => {
    const [live, archived] = [await isIn(employees, one), await isIn(former, one)];
    expect(live + archived).toBe(1);
    if (status === 202) expect(archived).toBe(1);
  };
  const checkMove = async ({ one, status }: Visited) => {
    const there = { ...one, department: `To${one.employeeId}` };
    const [here, moved] = [await isIn(employees, one), await isIn(employees, there)];
    expect(here + moved).toBe(1);
    if (status === 202) expect(moved).toBe(1);
  };
  await countEach(archives, checkArchive, { what: what('an archive') });
  await countEach(moves, checkMove, { what: what('a move') });
}, 1_800_000);
