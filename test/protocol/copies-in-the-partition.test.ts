import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, intraPartitionIndex, type RowkeyError } from '../../lib/index.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { httpDoor } from '../kit/http.ts';
import { storageTables } from '../kit/storage.ts';
import { sampleRuns } from '../points.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../world.ts';

/** Intra-partition index: a value leads to one entity of the partition, and no other entity can take the value. */

/** Without an inter-partition index, whose claim would reject the value first. */
const { members } = deploy(
  defineEntity('members', {
    schema: z.object({ office: z.string(), memberId: z.string(), badge: z.string(), phone: z.string().optional() }),
    table: 'members',
    key: { partition: '{office}', row: 'member_{memberId}' },
    indexes: { badge: intraPartitionIndex({ row: 'badge_{badge}' }) },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

const OFFICE = 'Rome';
const member = (memberId: string, badge: string) => ({ office: OFFICE, memberId, badge });

const world = await openWorld(import.meta.url, [members]);

const rows = () => rowsOf(world.storage, members.table);
const empty = async () => {
  await storageTables.dropTable(world.storage, members.table);
  await world.storage.table(members.table).createTable();
};
const create = (memberId: string, badge: string) =>
  engineWrite.createEntity(world.engine, members, member(memberId, badge));

const WRITES: Readonly<Record<string, (memberId: string, badge: string) => Promise<unknown>>> = {
  replace: (id, badge) => engineWrite.replaceEntity(world.engine, members, member(id, badge), member(id, badge)),
  patch: (id, badge) => engineWrite.patchEntity(world.engine, members, member(id, badge), { badge, phone: '1' }),
  batch: async (id, badge) => {
    const [outcome] = await putAll(world.engine, members, [member(id, badge)]);
    if (outcome instanceof Error) throw outcome;
  },
};

/** Expects the write to be rejected because of the badge, and the partition to be unchanged. */
async function expectRefusal(write: () => Promise<unknown>): Promise<void> {
  const before = await rows();
  const error = (await write().then(
    () => undefined,
    (reason: unknown) => reason,
  )) as RowkeyError;
  expect(error).toMatchObject({ code: 'duplicate-value' });
  expect(httpDoor.toProblem(error)).toMatchObject({ status: 409, field: 'badge' });
  expect(await rows()).toEqual(before);
}

describe('a unique value in the partition that another entity has', () => {
  test.each(['create', 'batch'])('is rejected for a new entity (%s) with a 409, and nothing changes', async (how) => {
    await empty();
    await create('1', 'A');
    await expectRefusal(() => (WRITES[how] ?? create)('2', 'A'));
    expect(await engineRead.readByCopy(world.engine, members, badgeIndex(), member('', 'A'))).toEqual(member('1', 'A'));
  });

  test.each(Object.keys(WRITES))(
    'is refused to an existing entity (%s) with a 409, and nothing changes',
    async (how) => {
      await empty();
      await create('1', 'A');
      await create('2', 'B');
      await expectRefusal(async () => WRITES[how]?.('2', 'A'));
      await expectIndexesToAgree(world.storage, members);
    },
  );

  test('is given to exactly one of many concurrent writers', async () => {
    await empty();
    const outcomes = await Promise.allSettled(['1', '2', '3', '4', '5', '6'].map((id) => create(id, 'A')));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'duplicate-value', field: 'badge' });
    expect(await expectIndexesToAgree(world.storage, members)).toHaveLength(1);
  });

  test('is given to one of two items of a batch, and the other gets the error', async () => {
    await empty();
    const outcomes = await putAll(world.engine, members, [member('1', 'A'), member('2', 'A'), member('3', 'B')]);
    expect(outcomes).toMatchObject(['created', { code: 'duplicate-value', field: 'badge' }, 'created']);
    expect(await expectIndexesToAgree(world.storage, members)).toHaveLength(2);
  });

  test('is never taken over, in any order of writes', async () => {
    const [id, badge] = [fc.constantFrom('1', '2', '3'), fc.constantFrom('A', 'B', 'C')];
    const step = fc.record({ does: fc.constantFrom('create', 'delete', ...Object.keys(WRITES)), id, badge });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
        await empty();
        const holders = new Map<string, string>();
        for (const { does, id: one, badge: wanted } of steps) {
          const exists = holders.has(one);
          if (does === 'create' ? exists : !exists && does !== 'batch') continue;
          const write = async () =>
            does === 'delete'
              ? engineWrite.deleteEntity(world.engine, members, member(one, wanted))
              : (WRITES[does] ?? create)(one, wanted);
          const isTaken = [...holders].some(([other, held]) => other !== one && held === wanted);
          if (isTaken && does !== 'delete') await expectRefusal(write);
          else {
            await write();
            if (does === 'delete') holders.delete(one);
            else holders.set(one, wanted);
          }
        }
        const copies = (await rows()).filter((row) => row.SourceRow !== undefined);
        expect(new Map(copies.map((row) => [String(row.rowKey), row.SourceRow]))).toEqual(
          new Map([...holders].map(([one, held]) => [`badge_${held}`, `member_${one}`])),
        );
      }),
      sampleRuns(40),
    );
  });
});

function badgeIndex() {
  const { badge } = members.indexes;
  if (badge?.kind !== 'intra-partition') throw new Error('An index in the partition is expected.');
  return badge;
}
