import { setTimeout as sleep } from 'node:timers/promises';
import type { PipelineRequest } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { showMessages } from '../../local/walk/known-messages.ts';
import { requestTo } from '../faulty-http-client.ts';
import { baseValues } from '../kit/base.ts';
import {
  type ChangeRecord,
  type Engine,
  engineConsume,
  engineCore,
  engineReconcile,
  engineWrite,
  type Message,
} from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { receiveMessage } from '../receive-message.ts';
import { log } from '../silent-log.ts';
import { cars, expectAgreement, guests, newCar, newGuest, type Schedule, stall, tickets } from '../stalled-process.ts';
import { laterBy, openWorld } from '../world.ts';

/** The table *The order of the steps* of docs/internals/consistency.md: one schedule for each rule, which finds a difference without the rule. */

/** Longer than a read of the log takes. */
const APPEND_MS = 500;

const world = await openWorld(import.meta.url, [guests, cars, tickets]);

const consume = (engine: Engine, message: Message) =>
  engineConsume.consumeIntent({ engine, entities: [guests, cars, tickets], log }, message);

test('a writer that dies after its claim leaves no claim', async () => {
  const insert = requestTo('carsbyplate', 'POST');
  await stall(world, insert, { act: (through) => engineWrite.createEntity(through, cars, newCar()) });
  await expectAgreement(world);
});

test('a writer that stalls before its transaction shares no unique value with another entity', async () => {
  const car = newCar();
  const insert = requestTo('cars', 'POST');
  await stall(world, insert, {
    act: (through) => engineWrite.createEntity(through, cars, car),
    meanwhile: () => engineWrite.createEntity(world.engine, cars, { ...car, id: `${car.id}b` }).catch(() => undefined),
    dies: 'never',
  });
  await expectAgreement(world);
});

test('a create that another create has overtaken leaves no index entry', async () => {
  const guest = newGuest();
  const other = { ...guest, name: `${guest.name}b` };
  await stall(world, requestTo('guests', 'POST'), {
    act: (through) => engineWrite.createEntity(through, guests, guest),
    meanwhile: () => engineWrite.createEntity(world.engine, guests, other),
    dies: 'never',
  });
  await expectAgreement(world);
});

/** A process settles the new name of a guest, and stalls before it inserts the index entry while a writer renames the guest again. */
async function overtakeRename(
  settleRename: (guest: ReturnType<typeof newGuest>) => Schedule['act'],
  { diesBeforeSecondRead }: { readonly diesBeforeSecondRead: boolean },
): Promise<void> {
  const guest = newGuest();
  await engineWrite.createEntity(world.engine, guests, guest);
  let hasStalled = false;
  await stall(world, requestTo('guestsbyname', 'POST'), {
    act: settleRename(guest),
    meanwhile: async () => {
      hasStalled = true;
      await engineWrite.patchEntity(world.engine, guests, guest, { name: `${guest.name}c` });
    },
    dies: {
      when: 'before',
      at: (request: PipelineRequest) => diesBeforeSecondRead && hasStalled && requestTo('guests', 'GET')(request),
    },
  });
  await expectAgreement(world);
}

const rename = (engine: Engine, guest: ReturnType<typeof newGuest>) =>
  engineWrite.patchEntity(engine, guests, guest, { name: `${guest.name}b` });

test('an index entry that a later change has removed is not written again', async () => {
  await overtakeRename((guest) => (through) => rename(through, guest), { diesBeforeSecondRead: false });
});

test('a writer that dies before its second read leaves no stale index entry', async () => {
  await overtakeRename((guest) => (through) => rename(through, guest), { diesBeforeSecondRead: true });
});

test('a function that dies before its second read leaves no stale index entry', async () => {
  const handleRename = (guest: ReturnType<typeof newGuest>) => async (through: Engine) => {
    await rename(world.queued, guest);
    await consume(through, (await receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE)).message);
  };
  await overtakeRename(handleRename, { diesBeforeSecondRead: true });
});

test('a writer that leaves entries to the queue, and dies before it has written its own, loses none of them', async () => {
  const ticket = { team: 'Red', id: 'T1', owner: 'ann', topic: 'printer' };
  await stall(world, requestTo('ticketsbyowner', 'POST'), {
    act: (through) => engineWrite.createEntity(through, tickets, ticket),
    dies: { when: 'before', at: requestTo('ticketsbyowner', 'POST') },
  });
  await expectAgreement(world);
});

test('a late first delivery does no work that its reminder has begun', async () => {
  const guest = newGuest();
  await engineWrite.createEntity(world.queued, guests, guest);
  await showMessages(world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE));
  const received = [await receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE)];
  received.push(await receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE));
  const isReminder = ({ message }: { message: Message }) => !Object.hasOwn(Object(message.body), 'reminder');
  const [reminder, work] = received.sort((one, other) => Number(isReminder(other)) - Number(isReminder(one)));
  await stall(world, requestTo('guestsbyname', 'POST'), {
    act: async (through) =>
      work &&
      consume(
        laterBy(through, () => 60_000),
        work.message,
      ),
    meanwhile: async () => {
      if (!reminder) return;
      await consume(world.engine, reminder.message);
      await world.storage
        .queue(engineReconcile.INDEX_CHANGES_QUEUE)
        .deleteMessage(reminder.message.id, reminder.receipt);
      await engineWrite.deleteEntity(world.engine, guests, guest);
    },
  });
  await expectAgreement(world);
});

test('a claim that is confirmed after a later change leaves no stale row', async () => {
  const car = newCar();
  await engineWrite.createEntity(world.engine, cars, car);
  const confirm = requestTo('carsbyplate', 'PUT');
  await stall(world, confirm, {
    act: (through) => engineWrite.patchEntity(through, cars, car, { plate: `${car.plate}b` }),
    meanwhile: () => engineWrite.patchEntity(world.engine, cars, car, { plate: car.plate }),
    dies: 'never',
  });
  await expectAgreement(world);
});

/** Creates a guest on behalf of a caller, and keeps the change in the audit log. */
async function createAudited(caller: string, engine: Engine, guest: ReturnType<typeof newGuest>): Promise<void> {
  const keep = async (changes: readonly ChangeRecord[]) => {
    await sleep(APPEND_MS);
    await operationsCheck.createAuditLog(world.engine).append(changes);
  };
  await engineCore.collectChanges(caller, () => engineWrite.createEntity(engine, guests, guest), keep);
}

/** The callers that the audit log has for a guest. */
async function callersOf({ id }: ReturnType<typeof newGuest>): Promise<string[]> {
  const now = Date.now();
  const { items } = await operationsCheck.readChanges(world.engine, {
    from: now - baseValues.MINUTE_MS,
    to: now + baseValues.MINUTE_MS,
    limit: 1_000,
  });
  return items.filter(({ row }) => row === id).map(({ by }) => by);
}

test('the audit log has no rejected write', async () => {
  const guest = newGuest();
  await stall(world, requestTo('guests', 'POST'), {
    act: (through) => createAudited('rejected', through, guest),
    meanwhile: () => createAudited('acknowledged', world.engine, guest),
    dies: 'never',
  });
  expect(await callersOf(guest)).toEqual(['acknowledged']);
});

test('the audit log has a write when the write is acknowledged', async () => {
  const guest = newGuest();
  await createAudited('acknowledged', world.engine, guest);
  expect(await callersOf(guest)).toEqual(['acknowledged']);
});
