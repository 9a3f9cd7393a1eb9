import { setTimeout as sleep } from 'node:timers/promises';
import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testStorage } from '../../storage.ts';
import { type HostProcess, startHost } from './host-process.ts';

const connection = testStorage(import.meta.url);
const service = QueueServiceClient.fromConnectionString(connection);
const queue = service.getQueueClient('work');
const poison = service.getQueueClient('work-poison');

let host: HostProcess;
beforeAll(async () => {
  host = await startHost({ TEST_STORAGE: connection });
});
afterAll(() => host.stop());

const base64 = (text: string) => Buffer.from(text).toString('base64');
const count = async (client = queue) => (await client.getProperties()).approximateMessagesCount;

test('the host polls a missing queue without creating it, and delivers parsed messages once the queue exists', async () => {
  await sleep(300);
  expect(await queue.exists()).toBe(false);
  await queue.create();
  const { messageId } = await queue.sendMessage(base64('{"to":"you"}'));
  const [line] = await host.logged(`"id":"${messageId}"`);
  expect(line).toBe(
    `[information] work got {"message":{"to":"you"},"dequeueCount":1,"id":"${messageId}","inserted":"string"}`,
  );
  await expect.poll(() => count()).toBe(0);
  expect(host.lines.filter((text) => text.startsWith('[warning]'))).toEqual([]);
});

test('functions receive JSON scalars parsed and other text unchanged', async () => {
  for (const [text, seen] of [
    ['123', '123'],
    ['true', 'true'],
    ['grüß dich', '"grüß dich"'],
  ] as const) {
    const { messageId } = await queue.sendMessage(base64(text));
    const [line] = await host.logged(`"id":"${messageId}"`);
    expect(line).toContain(`"message":${seen},`);
  }
});

test('a failed message returns after the delay, and moves to the poison queue after the last attempt', async () => {
  const started = Date.now();
  const { messageId } = await queue.sendMessage(base64('{"fail":1}'));
  const lines = await host.logged(`"id":"${messageId}"`, 3);
  // Two delays of visibilityTimeout, one second each; storage counts whole seconds.
  expect(Date.now() - started).toBeGreaterThan(1500);
  expect(lines.map((line) => /"dequeueCount":(\d)/.exec(line)?.[1])).toEqual(['1', '2', '3']);
  await host.logged(`message ${messageId} moved to work-poison`);
  await host.logged('poison {"fail":1}');
  expect(await count()).toBe(0);
});

test('a message that fails in a poison queue stays there, hidden, and creates no second poison queue', async () => {
  await poison.createIfNotExists();
  const before = host.lines.filter((line) => line.includes('poison {"alone":1}')).length;
  await poison.sendMessage(base64('{"alone":1}'));
  await host.logged('poison {"alone":1}', before + 1);
  await sleep(2500);
  expect(await host.logged('poison {"alone":1}')).toHaveLength(1);
  expect(await count(poison)).toBeGreaterThan(0);
  expect((await poison.peekMessages()).peekedMessageItems).toEqual([]);
  expect(await service.getQueueClient('work-poison-poison').exists()).toBe(false);
});

test('a message that is not base64 moves to the poison queue unchanged, without a call of the function', async () => {
  const { messageId } = await queue.sendMessage('{"plain":1}');
  await host.logged(`message ${messageId} moved to work-poison`);
  expect(host.lines.filter((line) => line.includes(`"id":"${messageId}"`))).toEqual([]);
  expect(await count()).toBe(0);
});

test('the host handles many messages', async () => {
  const ids = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      queue.sendMessage(base64(`{"n":${index}}`)).then((sent) => sent.messageId),
    ),
  );
  for (const id of ids) expect(await host.logged(`"id":"${id}"`)).toHaveLength(1);
  await expect.poll(() => count()).toBe(0);
});

test('top-level properties of a body replace trigger metadata, ignoring case, as on the real host', async () => {
  const body = { ID: 'mine', dequeuecount: -7, InsertionTime: [], mark: 'replaced' };
  await queue.sendMessage(base64(JSON.stringify(body)));
  const [line] = await host.logged('"mark":"replaced"');
  expect(line).toContain('"dequeueCount":-7,"id":"mine","inserted":"string"');
});

test('a body with too many levels of nesting for the library fails before the function is called, as on the real host', async () => {
  const { messageId } = await queue.sendMessage(base64('['.repeat(20_000) + ']'.repeat(20_000)));
  await host.logged(`message ${messageId} moved to work-poison`);
  expect(host.lines.filter((line) => line.includes(`"id":"${messageId}"`))).toEqual([]);
  expect(host.lines.filter((line) => line.includes('Maximum call stack size exceeded')).length).toBeGreaterThan(2);
});
