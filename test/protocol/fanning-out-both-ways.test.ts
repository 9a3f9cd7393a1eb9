import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, interPartitionIndex, intraPartitionIndex } from '../../lib/define.ts';
import { costOf } from '../cost-of.ts';
import { consume, create, intentOf, lastPassOf, openFanOutWorld, patch, world } from '../fan-out.ts';
import { CRASHES, type FaultTrial, tryFaults } from '../fault-driver.ts';
import { deploy } from '../fixtures/deploy.ts';
import { engineRead } from '../kit/engine.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, QUICK, rowsOf } from '../world.ts';

const access = { read: ['hr'], write: ['hr'] };

/** Each copies from its unit, which copies from one of them and counts them. */
const membersDeclared = defineEntity('members', {
  schema: z.object({
    unit: z.string(),
    memberId: z.string(),
    fullName: z.string(),
    unitName: z.string().optional(),
    budgetCode: z.string().optional(),
  }),
  table: 'units',
  key: { partition: '{unit}', row: 'member_{memberId}' },
  indexes: {
    fullName: intraPartitionIndex({ row: 'named_{fullName}_{memberId}' }),
    // Without the copied fields, so that a change of the unit does not change it.
    badge: interPartitionIndex({
      table: 'membersbyid',
      partition: '{memberId#}',
      row: '{memberId}',
      unique: true,
      copies: ['fullName'],
    }),
  },
  denormalized: {
    unit: {
      source: (): DeclaredEntity => unitsDeclared,
      copies: { unitName: ({ name }) => name, budgetCode: ({ budgetCode }) => budgetCode },
      fanOut: true,
    },
  },
  references: { unit: { to: (): DeclaredEntity => unitsDeclared, onDelete: 'report' } },
  access,
});
const unitsDeclared = defineEntity('units', {
  schema: z.object({
    unit: z.string(),
    name: z.string(),
    budgetCode: z.string().optional(),
    leadId: z.string().optional(),
    leadName: z.string().optional(),
    memberCount: z.int32().optional(),
  }),
  table: 'units',
  key: { partition: '{unit}', row: 'unit' },
  denormalized: {
    leadId: {
      source: membersDeclared,
      by: 'memberId',
      copies: { leadName: ({ fullName }) => fullName },
    },
  },
  counts: { memberCount: membersDeclared },
  access,
});

const { units, members } = deploy(unitsDeclared, membersDeclared);

openFanOutWorld(import.meta.url, [units, members]);

describe('two entities that copy from each other', () => {
  const MEMBERS = 250;
  const memberOf = (unit: string, at: number) => {
    const memberId = `${unit}${String(at).padStart(4, '0')}`;
    return { unit, memberId, fullName: `Member ${at}` };
  };

  /** A unit of 250 members, led by the first of them. */
  async function foundUnit(): Promise<string> {
    const unit = `u${randomUUID()}`;
    await create(units, { unit, name: 'First', budgetCode: 'B1' });
    await putAll(
      world.engine,
      members,
      Array.from({ length: MEMBERS }, (_, at) => memberOf(unit, at)),
    );
    await patch(units, { unit }, { leadId: memberOf(unit, 0).memberId });
    await world.settle();
    return unit;
  }

  /** Compares each member with its unit, and the unit with its lead. */
  async function expectUnit(unit: string, name: string): Promise<void> {
    const rows = (await rowsOf(world.storage, 'units')).filter(({ partitionKey }) => partitionKey === unit);
    const each = rows.filter(({ EntityType }) => EntityType === 'members');
    // Each has a copy of its index.
    expect(each).toHaveLength(2 * MEMBERS);
    expect(new Set(each.map(({ unitName, budgetCode }) => `${unitName} ${budgetCode}`))).toEqual(
      new Set([`${name} B1`]),
    );
    const { values } = await engineRead.readEntity(world.engine, units, { unit });
    const lead = { leadId: memberOf(unit, 0).memberId, leadName: 'Member 0' };
    expect(values).toEqual({ unit, name, budgetCode: 'B1', ...lead, memberCount: MEMBERS });
    await expectIndexesToAgree(world.storage, members);
  }

  test('follow each other, for the transactions that the documentation names', { tags: ['slow'] }, async () => {
    const unit = await foundUnit();
    await expectUnit(unit, 'First');
    const writer = await costOf(() => patch(units, { unit }, { name: 'Renamed' }));
    const message = await intentOf(unit);
    const queue = await costOf(() => consume(message));
    const lastPass = await costOf(() => consume(lastPassOf(message)));
    // Read, intent, transaction, message. A member takes two rows of a transaction, so 50 fit into one, which reads the unit too.
    expect({ writer, queue, lastPass }).toEqual({ writer: 4, queue: 22, lastPass: 3 * 2 + 2 });
    await expectUnit(unit, 'Renamed');
    await patch(members, memberOf(unit, 0), { fullName: 'Member zero' });
    expect((await engineRead.readEntity(world.engine, units, { unit })).values).toMatchObject({
      leadName: 'Member zero',
    });
    await patch(members, memberOf(unit, 0), { fullName: 'Member 0' });
    // Intent, claim, transaction, confirmed claim, entity, intent: the row of the unit, which has the count, is known.
    const again = { ...memberOf(unit, MEMBERS), fullName: 'New' };
    expect(await costOf(() => create(members, again))).toBe(6);
    expect((await engineRead.readEntity(world.engine, members, again)).values).toMatchObject({ unitName: 'Renamed' });
  });

  test('agree after a crash at any call of the fan-out', { tags: ['slow'] }, async () => {
    const unit = await foundUnit();
    let round = 0;
    const play = async ({ client }: FaultTrial) => {
      round += 1;
      await patch(units, { unit }, { name: `Round ${round}` });
      const message = await intentOf(unit);
      await consume(message, world.engineThrough(client, QUICK)).catch(async () => {
        // The host delivers the message again.
        await world.storage.queue('index-changes').sendMessage(JSON.stringify(message.body));
      });
      await world.settle();
      await expectUnit(unit, `Round ${round}`);
    };
    await tryFaults(play, { what: 'Fan-out to 250 entities, each storage call: crash', faults: CRASHES });
  });
});
