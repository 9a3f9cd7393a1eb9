// @module-tag long

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, type Values } from '../../../lib/index.ts';
import { type BackedUp, openBackedUp } from '../../backed-up.ts';
import type { Entity, LinkedModel } from '../../kit/define.ts';
import { type Engine, engineRead, engineTransfer, engineWrite } from '../../kit/engine.ts';
import { operationsBackup } from '../../kit/operations.ts';
import { storageJournal, storageRows } from '../../kit/storage.ts';

/** What a process has stored and not added to the journal of a backup, because it died between the two. */

const model = defineModel({
  roles: ['reader'],
  operatorRole: 'reader',
  entities: [
    defineEntity('cards', {
      schema: z.object({ box: z.string(), cardId: z.string(), text: z.string() }),
      table: 'cards',
      key: { partition: '{box}', row: '{cardId}' },
      indexes: { text: interPartitionIndex({ table: 'cardsbytext', partition: '{text}', row: '{box}_{cardId}' }) },
      movable: ['box'],
      access: { read: ['reader'], write: ['reader'] },
    }),
  ],
}) as unknown as LinkedModel;
const [cards] = model.list as unknown as [Entity];
const card = { box: 'b', cardId: '1', text: 'first' };
const key = { box: 'b', cardId: '1' };

/** The engine of another process. */
function restarted({ engine, storage, backup }: BackedUp): Engine {
  return {
    ...engine,
    storage: { ...storage, journal: operationsBackup.createJournal({ backup, storage }, model.list) },
  };
}

type Sent = Readonly<Record<'method' | 'url' | 'body', string>>;

const isWrite = ({ method, url, body }: Sent) => method !== 'GET' && /\/cards(\(|\?|\s|$)/.test(`${url} ${body}`);
const isDelete = ({ method, url }: Sent) => method === 'DELETE' && url.includes('/cards(');

/** Runs work in a process that dies after the first such request. */
async function dieAfter(app: BackedUp, isLast: (sent: Sent) => boolean, work: () => Promise<unknown>): Promise<void> {
  let isDead = false;
  for (const memory of [app.memory, app.backupMemory])
    memory.intercept = async (request, send) => {
      if (isDead) throw new Error('This process is dead.');
      const response = await send();
      isDead ||= isLast({ method: request.method, url: request.url, body: String(request.body) });
      return response;
    };
  await expect(work()).rejects.toThrow();
  expect(isDead).toBe(true);
  for (const memory of [app.memory, app.backupMemory]) memory.intercept = undefined;
}

/** The text of the card in a cut that is made now. */
async function textInCut(app: BackedUp): Promise<unknown> {
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  await app.restore(target, app.cut());
  return (await engineRead.readEntity(target.engine, cards, key)).values.text;
}

const ID = 'c0ffee00-0000-4000-8000-000000000001';
const REQUESTS: Readonly<Record<string, (engine: Engine, values: Values) => Promise<unknown>>> = {
  'a create': (engine, values) => engineWrite.createOnce(engine, cards, values, ID),
  'a transaction': (engine, values) =>
    engineWrite.transactOnce(engine, [{ entity: cards, action: { create: values } }], [ID]),
  'a put': (engine, values) => engineWrite.putEntity(engine, cards, key, values),
  'a patch': (engine, { text }) => engineWrite.patchEntity(engine, cards, key, { text }),
};

test.each(Object.entries(REQUESTS))(
  'a cut has %s whose repetition has succeeded, although its writer died before it added it to the journal',
  async (what, request) => {
    const app = await openBackedUp(model);
    const isOfNew = what === 'a create' || what === 'a transaction';
    if (!isOfNew) await engineWrite.createEntity(app.engine, cards, card);
    await app.snapshot();
    const values = isOfNew ? card : { ...card, text: 'second' };
    await dieAfter(app, isWrite, () => request(restarted(app), values));
    await request(restarted(app), values);
    expect(await textInCut(app)).toBe(values.text);
  },
);

/** The rows of a table in a cut that is made now, before a restore ends what it finds. */
async function rowsInCut({ backup, storage, cut }: BackedUp, name = /^cards$/) {
  const { rows } = await operationsBackup.readState({ backup, storage }, cut());
  return (await Array.fromAsync(rows)).filter(({ table }) => name.test(table));
}

test('a cut has no tombstone of a move whose delete was executed, although the reply to it says nothing', async () => {
  const app = await openBackedUp(model);
  await engineWrite.createEntity(app.engine, cards, card);
  await app.snapshot();
  let deletes = 0;
  app.memory.intercept = async (request, send) => {
    const response = await send();
    if (!isDelete({ ...request, body: '' })) return response;
    deletes += 1;
    return deletes === 1 ? { ...response, status: 500 } : response;
  };
  await engineTransfer.requestMove(app.engine, cards, key, { box: 'c' });
  await app.settle();
  expect([deletes, await rowsInCut(app)]).toMatchObject([2, [{ partition: 'c', row: '1' }]]);
});

const isOpening = ({ method, url, body }: Sent) =>
  method !== 'DELETE' && url.includes("PartitionKey='c'") && body.includes('"MovingFrom":""');
const LAST_WRITES: Readonly<Record<string, (sent: Sent) => boolean>> = {
  'opened the entity at its new key': isOpening,
  'deleted the tombstone': isDelete,
};

test.each(Object.entries(LAST_WRITES))(
  'a cut has a move as it is whose process died when it had %s',
  async (_, isLast) => {
    const app = await openBackedUp(model);
    await engineWrite.createEntity(app.engine, cards, card);
    await app.snapshot();
    await engineTransfer.requestMove(app.engine, cards, key, { box: 'c' });
    await dieAfter(app, isLast, () => app.settle());
    Object.assign(app.engine.storage, { journal: restarted(app).storage.journal });
    await app.settle();
    expect(await rowsInCut(app)).toMatchObject([{ partition: 'c', row: '1', properties: { MovingFrom: '' } }]);
  },
);

test('a cut has a move as it is whose process died while its last lines were on their way', async () => {
  const app = await openBackedUp(model);
  await engineWrite.createEntity(app.engine, cards, card);
  await app.snapshot();
  await engineTransfer.requestMove(app.engine, cards, key, { box: 'c' });
  let [isOpen, isDeleted, isDead] = [false, false, false];
  app.memory.intercept = async (request, send) => {
    if (isDead) throw new Error('This process is dead.');
    const response = await send();
    isOpen ||= isOpening({ ...request, body: String(request.body) });
    isDeleted ||= isDelete({ ...request, body: '' });
    return response;
  };
  app.backupMemory.intercept = async (_, send) => {
    // So long that the process writes what does not wait for the line.
    for (let turn = 0; isOpen && turn < 1_000; turn += 1) await setImmediate();
    isDead ||= isDeleted;
    if (isDead) throw new Error('This process is dead.');
    return send();
  };
  // As a queue function does.
  await expect(storageJournal.withDeferredAppends(() => app.settle())).rejects.toThrow();
  app.memory.intercept = app.backupMemory.intercept = undefined;
  Object.assign(app.engine.storage, { journal: restarted(app).storage.journal });
  await app.settle();
  expect(await rowsInCut(app)).toMatchObject([{ partition: 'c', row: '1', properties: { MovingFrom: '' } }]);
});

const isEnd = ({ method, url, body }: Sent) =>
  method !== 'GET' && /\/operations\d+(\(|\?|\s|$)/.test(url) && body.includes('"succeeded"');

test.each(['its message is handled again', 'its request is repeated'])(
  'a cut has the end of a move whose process died when it had recorded that, once %s',
  async (what) => {
    const app = await openBackedUp(model);
    await engineWrite.createEntity(app.engine, cards, card);
    await app.snapshot();
    const request = () => engineTransfer.requestMove(app.engine, cards, key, { box: 'c' }, ID);
    await request();
    await dieAfter(app, isEnd, () => app.settle());
    Object.assign(app.engine.storage, { journal: restarted(app).storage.journal });
    if (what === 'its request is repeated') await request();
    else await app.settle();
    expect(await rowsInCut(app, /^operations/)).toMatchObject([{ properties: { status: 'succeeded' } }]);
  },
);

test('a transaction whose reply was lost is whole in the journal when it is sent again, and refused', async () => {
  const app = await openBackedUp(model);
  const other = { ...card, cardId: '2' };
  for (const values of [card, other]) await engineWrite.createEntity(app.engine, cards, values);
  await app.snapshot();
  const from = app.cut();
  const where = { table: 'cards', partition: 'b' };
  const { etag } = (await storageRows.readRow(app.storage, { ...where, row: '1' })) ?? expect.fail();
  let sent = 0;
  app.memory.intercept = async ({ method }, send) => {
    const response = await send();
    if (method !== 'POST') return response;
    sent += 1;
    return sent === 1 ? { ...response, status: 500 } : response;
  };
  const actions = [
    { kind: 'merge', row: '1', properties: { TouchedBy: 'a test' }, etag },
    { kind: 'delete', row: '2' },
  ] as const;
  await expect(storageRows.submit(app.storage, { ...where, actions })).rejects.toMatchObject({ reason: 'changed' });
  const source = { backup: app.backup, storage: app.storage };
  const lines = await Array.fromAsync(operationsBackup.readJournal(source, { from, to: app.cut() }));
  const changed = { row: '1', properties: expect.objectContaining({ TouchedBy: 'a test' }) };
  expect([sent, lines]).toMatchObject([2, [{ rows: [changed, { row: '2', deleted: true }] }]]);
});
