import { randomUUID } from 'node:crypto';
import type { HttpClient } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, type Values } from '../../../../lib/index.ts';
import { httpClient } from '../../../../local/walk/known-messages.ts';
import { interruptedHttpClient } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import {
  type ChangeRecord,
  type Engine,
  engineCore,
  engineRead,
  engineTransfer,
  engineWrite,
  type Transfer,
} from '../../../kit/engine.ts';
import { openWorld } from '../../../world.ts';

/** The request of an archive or a move, also one that is repeated. */

const jars = deploy(
  defineEntity('jars', {
    schema: z.object({ shelf: z.string(), jarId: z.string() }),
    table: 'jars',
    key: { partition: '{shelf}', row: '{jarId}' },
    archive: { table: 'oldjars' },
    movable: ['shelf'],
    access: { read: [], write: [] },
  }),
).jars as Entity;
const world = await openWorld(import.meta.url, [jars]);
const { engine } = world;

let made = 0;
async function create(): Promise<Values> {
  made += 1;
  const jar = { shelf: 'a', jarId: String(made) };
  await engineWrite.createEntity(engine, jars, jar);
  return jar;
}
const OPERATIONS = ['archive', 'move'] as const;
type Operation = (typeof OPERATIONS)[number];
const request = (operation: Operation, jar: Values, id?: string, by: Engine = engine) =>
  operation === 'archive'
    ? engineTransfer.requestArchive(by, jars, jar, id)
    : engineTransfer.requestMove(by, jars, jar, { shelf: 'b' }, id);
const take = async (operationId: string) => (await world.take('transfers', operationId)).body as Transfer;
const statusOf = async (operation: Operation, operationId: string) =>
  (await engineWrite.readOperation(engine, { operation, operationId, entity: 'jars' })).status;

/** The changes that a request notes. */
async function noted(work: () => Promise<unknown>) {
  const changes: ChangeRecord[] = [];
  await engineCore.collectChanges('ann', work, async (some) => void changes.push(...some));
  return changes;
}

test.each(OPERATIONS)('the request of an %s is noted with what it changes', async (operation) => {
  const jar = await create();
  const { etag } = await engineRead.readEntity(engine, jars, jar);
  const changes = await noted(() => request(operation, jar));
  const fields = operation === 'move' ? ['shelf'] : [];
  expect(changes).toEqual([
    expect.objectContaining({
      by: 'ann',
      operation,
      entity: 'jars',
      table: 'jars',
      partition: 'a',
      row: jar.jarId,
      fields,
      etag,
    }),
  ]);
  expect(changes[0]).not.toHaveProperty('outcome');
  await world.settle();
});

test.each(OPERATIONS)('the request of an %s that is repeated is one operation', async (operation) => {
  const [jar, id] = [await create(), randomUUID()];
  const operationId = await request(operation, jar, id);
  // The process that requested it may have died before it sent the message.
  expect(await request(operation, jar, id)).toBe(operationId);
  const [first, second] = [await take(operationId), await take(operationId)];
  const { incarnation } = first;
  expect(second).toMatchObject({ operation, operationId, incarnation });
  await engineTransfer.runTransfer(engine, jars, first);
  expect(await statusOf(operation, operationId)).toBe('succeeded');
  await expect(request(operation, jar, randomUUID())).rejects.toMatchObject({ code: 'not-found' });
  // It has ended, and concerns no later entity with this key: nothing is sent.
  await engineWrite.createEntity(engine, jars, jar);
  expect(await request(operation, jar, id)).toBe(operationId);
  await expect(take(operationId)).rejects.toThrow('No message');
  expect(await statusOf(operation, operationId)).toBe('succeeded');
});

test.each(OPERATIONS)('the request of an %s is repeated beside its own end', async (operation) => {
  const [jar, id] = [await create(), randomUUID()];
  const operationId = await request(operation, jar, id);
  const transfer = await take(operationId);
  // Before the record is written again, the operation ends.
  const isRecording = ({ method, url }: { readonly method: string; readonly url: string }) =>
    method !== 'GET' && url.includes('operations');
  const client = interruptedHttpClient(isRecording, () => engineTransfer.runTransfer(engine, jars, transfer));
  expect(await request(operation, jar, id, world.engineThrough(client))).toBe(operationId);
  expect(await statusOf(operation, operationId)).toBe('succeeded');
  await expect(take(operationId)).rejects.toThrow('No message');
});

test.each(OPERATIONS)('the request of an %s is busy while others keep requesting it', async (operation) => {
  const [jar, id] = [await create(), randomUUID()];
  await request(operation, jar, id);
  let others = 0;
  const client: HttpClient = {
    async sendRequest(sent) {
      if (sent.method !== 'GET' && sent.url.includes('operations')) {
        others += 1;
        await request(operation, jar, id);
      }
      return httpClient.sendRequest(sent);
    },
  };
  await expect(request(operation, jar, id, world.engineThrough(client))).rejects.toMatchObject({ code: 'busy' });
  expect(others).toBe(5);
  await world.settle();
});

test('a move changes the key', async () => {
  const jar = await create();
  await expect(engineTransfer.requestMove(engine, jars, jar, { shelf: 'a' })).rejects.toMatchObject({
    code: 'invalid-input',
    field: 'shelf',
    message: 'A move must change "shelf".',
    accepted: 'a value other than the current one',
  });
});

test('an operation that is given up keeps the reason of its failure, and a success stays one', async () => {
  const [jar, other] = [await create(), await create()];
  const operationId = await request('move', jar);
  const transfer = await take(operationId);
  await engineTransfer.giveUpTransfer(engine, jars, transfer, 'It has failed.');
  const of = { operation: 'move', operationId, entity: 'jars' } as const;
  expect(await engineWrite.readOperation(engine, of)).toMatchObject({ status: 'failed', reason: 'It has failed.' });
  // Its message may be sent again by hand.
  await engineTransfer.runTransfer(engine, jars, transfer);
  await engineTransfer.giveUpTransfer(engine, jars, transfer, 'It has failed.');
  expect(await engineWrite.readOperation(engine, of)).toMatchObject({ status: 'succeeded' });
  expect((await engineWrite.readOperation(engine, of)).reason).toBeUndefined();
  // Of a message without a record, nothing is recorded.
  const forged = { ...transfer, key: other };
  await engineTransfer.giveUpTransfer(engine, jars, forged, 'It has failed.');
  expect(await engineWrite.readOperation(engine, of)).toMatchObject({ status: 'succeeded' });
});
