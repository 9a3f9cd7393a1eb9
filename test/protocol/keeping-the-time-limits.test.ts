import { setTimeout as sleep } from 'node:timers/promises';
import type { PipelineRequest } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { httpClient } from '../../local/walk/known-messages.ts';
import { faultyHttpClient, interruptedHttpClient, lateHttpClient, requestTo } from '../faulty-http-client.ts';
import { type Engine, engineConsume, engineReconcile, engineWrite, type Message, type Timing } from '../kit/engine.ts';
import { receiveMessage } from '../receive-message.ts';
import { log } from '../silent-log.ts';
import { cars, expectAgreement, guests, newCar, newGuest, stall, tickets } from '../stalled-process.ts';
import { openWorld, QUICK, withClock } from '../world.ts';

/** The table *Time* of docs/internals/consistency.md: one schedule for each rule, which finds a difference without the rule. */

/** A hold is renewed after 2 s and ends after 5. */
const SHORT: Timing = { commitWithinMs: 2_500, claimForMs: 3_500, hideIntentForSeconds: 5, settleWithinMs: 5_000 };
/** Has passed of a hold's time when a function starts: less than the time after which the function renews the hold. */
const PASSED_MS = 1_500;
/** The hold has ended if the time that had passed counts, but not otherwise. */
const STALL_MS = 4_000;

const world = await openWorld(import.meta.url, [guests, cars, tickets]);

const consume = (engine: Engine, message: Message) =>
  engineConsume.consumeIntent({ engine, entities: [guests, cars, tickets], log }, message);
/** Runs `work` in at least this time. */
const inTime = (milliseconds: number, work: () => Promise<unknown>) => Promise.all([sleep(milliseconds), work()]);

test.each([
  ['claim', 'cars', 'carsbyplate', newCar],
  ['transaction', 'guests', 'guests', newGuest],
] as const)('a writer sends no %s after its time limit', async (_, name, table, fresh) => {
  const entity = name === 'cars' ? cars : guests;
  await stall(world, requestTo(table, 'POST'), {
    act: (through) => engineWrite.createEntity(through, entity, fresh()),
    // Its intent becomes visible, and is settled.
    meanwhile: () => inTime(QUICK.commitWithinMs, world.settle),
    timing: QUICK,
  });
  await expectAgreement(world);
});

test('a writer that stalls until its time limit is over sends no claim', async () => {
  const isIntent = ({ method, url }: PipelineRequest) => method === 'POST' && url.includes('/messages');
  let sent = 0;
  const isClaim = requestTo('carsbyplate', 'POST');
  const counting = {
    sendRequest(request: PipelineRequest) {
      if (isClaim(request) && !request.abortSignal?.aborted) sent += 1;
      return httpClient.sendRequest(request);
    },
  };
  const meanwhile = () => inTime(QUICK.commitWithinMs, world.settle);
  const through = world.engineThrough(interruptedHttpClient(isIntent, meanwhile, 'after', counting), QUICK);
  await expect(engineWrite.createEntity(through, cars, newCar())).rejects.toMatchObject({
    code: 'storage-unavailable',
  });
  expect(sent).toBe(0);
  await expectAgreement(world);
});

test('a writer writes no index entry after its time limit', async () => {
  const guest = newGuest();
  await engineWrite.createEntity(world.engine, guests, guest);
  await stall(world, requestTo('guestsbyname', 'POST'), {
    act: (through) => engineWrite.patchEntity(through, guests, guest, { name: `${guest.name}b` }),
    meanwhile: () => inTime(QUICK.settleWithinMs, () => settleAndDelete(guest)),
    timing: QUICK,
  });
  await expectAgreement(world);
});

/** Handles the reminder of stalled work, and deletes the guest. */
async function settleAndDelete(guest: ReturnType<typeof newGuest>): Promise<void> {
  await world.settle();
  await engineWrite.deleteEntity(world.engine, guests, guest);
}

/** Creates a guest and returns the work that its writer has left to the queue. */
async function leaveWork() {
  const guest = newGuest();
  await engineWrite.createEntity({ ...world.engineThrough(httpClient, SHORT), settleInline: 0 }, guests, guest);
  const { message } = await receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE);
  return { guest, message };
}

test('a function writes no index entry after its hold', async () => {
  const { guest, message } = await leaveWork();
  await stall(world, requestTo('guestsbyname', 'POST'), {
    act: (through) => consume(through, { ...message, attempts: 2 }),
    meanwhile: () => inTime(SHORT.settleWithinMs, () => settleAndDelete(guest)),
    timing: SHORT,
  });
  await expectAgreement(world);
});

test('the hold of a function begins before the request that hides the reminder', async () => {
  const { guest, message } = await leaveWork();
  let lateBy = 0;
  const isHide = ({ method, url }: PipelineRequest) => method === 'PUT' && url.includes('/messages/');
  const replyLate = async () => {
    lateBy = PASSED_MS;
  };
  const insert = requestTo('guestsbyname', 'POST');
  const meanwhile = () => inTime(STALL_MS, () => settleAndDelete(guest));
  const slow = interruptedHttpClient(isHide, replyLate, 'after', faultyHttpClient('crash after', insert));
  const through = world.engineThrough(interruptedHttpClient(insert, meanwhile, 'before', slow), SHORT);
  await consume({ ...through, now: () => Date.now() + lateBy }, { ...message, attempts: 2 }).catch(() => undefined);
  await expectAgreement(world);
});

test('the hold of a first delivery begins with the request of the sender', async () => {
  const { guest, message } = await leaveWork();
  const { hiddenUntil } = Object(message.body).reminder;
  const time = () => hiddenUntil - SHORT.hideIntentForSeconds * 1_000 + PASSED_MS;
  await stall(world, requestTo('guestsbyname', 'POST'), {
    act: (through) => consume(withClock(through, time), message),
    meanwhile: () => inTime(STALL_MS, () => settleAndDelete(guest)),
    timing: SHORT,
  });
  await expectAgreement(world);
});

test('work whose outcome is unknown waits until its request has been executed', async () => {
  const guest = newGuest();
  await engineWrite.createEntity(world.engine, guests, guest);
  const client = lateHttpClient(requestTo('guestsbyname', 'POST'));
  await engineWrite.patchEntity(world.engineThrough(client), guests, guest, { name: `${guest.name}b` });
  await world.handleVisible();
  await engineWrite.deleteEntity(world.engine, guests, guest);
  await client.arrive();
  await expectAgreement(world);
});

test.each([
  ['claim', cars, 'carsbyplate', newCar],
  ['transaction', guests, 'guests', newGuest],
] as const)('the intent of a %s whose outcome is unknown stays', async (_, entity, table, fresh) => {
  const client = lateHttpClient(requestTo(table, 'POST'));
  const creating = engineWrite.createEntity(world.engineThrough(client), entity, fresh());
  await expect(creating).rejects.toMatchObject({ code: 'storage-unavailable' });
  await client.arrive();
  await expectAgreement(world);
});

test('the intent of a transaction that is rejected when it is repeated stays', async () => {
  const guest = newGuest();
  await engineWrite.createEntity(world.engine, guests, guest);
  const replace = requestTo('guests', 'PUT');
  const others = () => engineWrite.patchEntity(world.engine, guests, guest, { name: `${guest.name}c` });
  let sent = 0;
  const isRepetition = (request: PipelineRequest) => replace(request) && ++sent === 2;
  const client = interruptedHttpClient(isRepetition, others, 'before', faultyHttpClient('reply lost', replace));
  const renaming = engineWrite.patchEntity(world.engineThrough(client), guests, guest, { name: `${guest.name}b` });
  await expect(renaming).rejects.toMatchObject({ code: 'storage-unavailable' });
  await expectAgreement(world);
});

test('a function repeats work whose outcome is unknown after its request has been executed', async () => {
  const guest = newGuest();
  await engineWrite.createEntity(world.queued, guests, guest);
  const client = lateHttpClient(requestTo('guestsbyname', 'POST'));
  await consume(
    world.engineThrough(client),
    (await receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE)).message,
  );
  await world.handleVisible();
  await engineWrite.deleteEntity(world.engine, guests, guest);
  await client.arrive();
  await expectAgreement(world);
});

test.each([
  ['index entry', guests, 'guestsbyname', newGuest],
  ['claim', cars, 'carsbyplate', newCar],
] as const)('an insert of the %s is sent once', async (_, entity, table, fresh) => {
  const one = fresh();
  const client = lateHttpClient(requestTo(table, 'POST'));
  await engineWrite.createEntity(world.engineThrough(client), entity, one).catch(() => undefined);
  await engineWrite.deleteEntity(world.engine, entity, one).catch(() => undefined);
  await client.arrive();
  await expectAgreement(world);
});

test('a delete that arrives late removes no index entry that a later change needs', async () => {
  const guest = newGuest();
  await engineWrite.createEntity(world.engine, guests, guest);
  const client = lateHttpClient(requestTo('guestsbyname', 'DELETE'), { dies: true });
  await engineWrite.patchEntity(world.engineThrough(client), guests, guest, { name: `${guest.name}b` });
  await engineWrite.patchEntity(world.engine, guests, guest, { name: guest.name });
  await world.settle();
  await client.arrive();
  await expectAgreement(world);
});
