import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, type Values } from '../../../lib/index.ts';
import { type BackedUp, openBackedUp } from '../../backed-up.ts';
import type { Entity, LinkedModel } from '../../kit/define.ts';
import { type Engine, engineRead, engineWrite } from '../../kit/engine.ts';
import { operationsBackup } from '../../kit/operations.ts';

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

/** Runs work in a process that dies after its first write to the table. */
async function dieAfterWrite(app: BackedUp, work: (engine: Engine) => Promise<unknown>): Promise<void> {
  let isDead = false;
  for (const memory of [app.memory, app.backupMemory])
    memory.intercept = async (request, send) => {
      if (isDead) throw new Error('This process is dead.');
      const response = await send();
      isDead ||= request.method !== 'GET' && /\/cards(\(|\?|\s|$)/.test(`${request.url} ${request.body}`);
      return response;
    };
  await expect(work(restarted(app))).rejects.toThrow();
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
    await dieAfterWrite(app, (engine) => request(engine, values));
    await request(restarted(app), values);
    expect(await textInCut(app)).toBe(values.text);
  },
);
