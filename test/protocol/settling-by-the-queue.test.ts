import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, type Values } from '../../lib/index.ts';
import { costOfEntity } from '../../local/capacity/entity-cost.ts';
import { costOf } from '../cost-of.ts';
import { UNANSWERED_INSERT } from '../fault-driver.ts';
import { deploy } from '../fixtures/deploy.ts';
import { definePlaces } from '../kit/define.ts';
import { engineConsume, engineReconcile, engineWrite } from '../kit/engine.ts';
import { storageRows } from '../kit/storage.ts';
import { receiveMessage } from '../receive-message.ts';
import { log } from '../silent-log.ts';
import { expectIndexesToAgree, openWorld } from '../world.ts';
import { creating, deleting, testWrites } from '../write-contract.ts';

/** A ticket has a unique number and a list that its writer settles, and a copy and a list that are left to the queue. */

const name = z.string().min(1);
const { tickets } = deploy(
  defineEntity('tickets', {
    schema: z.object({ team: name, ticketId: name, number: name, owner: name, state: name, topic: name }),
    table: 'tickets',
    key: { partition: '{team}', row: '{ticketId}' },
    indexes: {
      number: interPartitionIndex({ table: 'ticketsbynumber', partition: '{number}', row: '{number}', unique: true }),
      owner: interPartitionIndex({ table: 'ticketsbyowner', partition: '{owner}', row: '{team}_{ticketId}' }),
      state: interPartitionIndex({
        table: 'ticketsbystate',
        partition: '{state}',
        row: '{team}_{ticketId}',
        settle: 'queue',
      }),
      topic: indexEntity({
        table: 'ticketsbytopic',
        partition: '{topic}',
        row: 'topic',
        holds: '{team}_{ticketId}',
        settle: 'queue',
      }),
    },
    access: { read: [], write: [] },
  }),
);
const INLINE = ['number', 'owner'];

/** A badge refers to its owner, whom two indexes find; only the second one is never behind. */
const declaredOwners = defineEntity('owners', {
  schema: z.object({ owner: name }),
  table: 'owners',
  key: { partition: '{owner}', row: '{owner}' },
  access: { read: ['hr'], write: ['hr'] },
});
const declaredBadges = defineEntity('badges', {
  schema: z.object({ badgeId: name, owner: name }),
  table: 'badges',
  key: { partition: '{badgeId}', row: '{badgeId}' },
  indexes: {
    late: interPartitionIndex({ table: 'badgeslate', partition: '{owner}', row: '{badgeId}', settle: 'queue' }),
    owner: interPartitionIndex({ table: 'badgesbyowner', partition: '{owner}', row: '{badgeId}', copies: 'keys' }),
  },
  references: { owner: { to: declaredOwners, onDelete: 'refuse' } },
  access: { read: ['hr'], write: ['hr'] },
});
const { owners, badges } = deploy(declaredOwners, declaredBadges);

const world = await openWorld(import.meta.url, [tickets, owners, badges]);

let counter = 0;
function ticket() {
  counter += 1;
  const ticketId = `T${counter}`;
  return { team: 'Red', ticketId, number: `N${counter}`, owner: 'ann', state: 'open', topic: `topic${counter % 3}` };
}
const changed = ({ number }: Values) => ({ number: `${number}b`, owner: 'bob', state: 'closed', topic: 'topic9' });

/** The indexes that have the row of the ticket's entry. */
async function indexesWith(one: Values): Promise<string[]> {
  const entries = definePlaces.indexEntriesOf(tickets, one);
  const rows = await Promise.all(entries.map((entry) => storageRows.readRow(world.storage, entry)));
  return entries.filter((_, at) => rows[at]).map(({ index }) => index);
}

test('the writer leaves the entries of the declared indexes to the queue', async () => {
  const one = { ...ticket(), topic: 'alone' };
  // The intent, the claim, the ticket, the confirmation, an entry, the second read, and the message of the rest.
  const written = await costOf(() => engineWrite.createEntity(world.engine, tickets, one));
  expect(written).toBe(7);
  expect(await indexesWith(one)).toEqual(INLINE);
  const { message, receipt } = await receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE);
  const settled = await costOf(() =>
    engineConsume.consumeIntent({ engine: world.engine, entities: [tickets], log }, message),
  );
  await world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).deleteMessage(message.id, receipt);
  // The host has received and deleted the message.
  const { tables, queues } = costOfEntity(tickets);
  expect(written + settled + 2).toBe(tables + queues);
  expect(await indexesWith(one)).toEqual([...INLINE, 'state', 'topic']);
  await expectIndexesToAgree(world.storage, tickets);
});

test('a delete keeps its tombstone until the queue has removed the rest', async () => {
  const one = { ...ticket(), topic: 'deleted' };
  await engineWrite.createEntity(world.engine, tickets, one);
  await world.settle();
  await engineWrite.deleteEntity(world.engine, tickets, one);
  const address = { table: 'tickets', partition: 'Red', row: String(one.ticketId) };
  expect((await storageRows.readRow(world.storage, address))?.properties).toMatchObject({ EntityType: 'tombstone' });
  expect(await indexesWith(one)).toEqual(['state', 'topic']);
  await world.settle();
  expect(await storageRows.readRow(world.storage, address)).toBeUndefined();
  await expectIndexesToAgree(world.storage, tickets);
});

test('a delete is refused by an index that the writer settles, although another one is behind', async () => {
  await engineWrite.createEntity(world.engine, owners, { owner: 'ann' });
  await engineWrite.createEntity(world.engine, badges, { badgeId: 'B1', owner: 'ann' });
  await expect(engineWrite.deleteEntity(world.engine, owners, { owner: 'ann' })).rejects.toMatchObject({
    code: 'referenced',
  });
});

testWrites(
  { world: () => world, entity: tickets, what: 'Write that leaves entries to the queue', newcomer: ticket },
  {
    'a create': creating(tickets),
    'a patch': {
      act: (engine, one) => engineWrite.patchEntity(engine, tickets, one, changed(one)),
      after: (one) => ({ ...one, ...changed(one) }),
      unanswered: UNANSWERED_INSERT,
    },
    'a delete': deleting(tickets),
  },
);
