import type { QueueClient } from '@azure/storage-queue';
import { type Case, compareWithAzurite, outcome } from './contract.ts';
import { QUEUE_DIFFERENCES } from './differences.ts';

/** The texts and attempts of the visible messages, which stay hidden then. */
async function receive(queue: QueueClient, numberOfMessages = 32) {
  const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages, visibilityTimeout: 30 });
  return receivedMessageItems.map(({ messageText, dequeueCount }) => [messageText, dequeueCount]);
}

/** More than a second: the unit of the service. */
const pass = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000 + 200));

const cases: Record<string, Case> = {
  async 'creates, lists and deletes queues'({ queues, createQueue }) {
    for (const name of ['list-b', 'list-a', 'other']) await createQueue(name);
    const names = [];
    for await (const { name } of queues.listQueues({ prefix: 'list-' })) names.push(name);
    await queues.deleteQueue('list-a');
    const queue = queues.getQueueClient('list-a');
    return [
      names,
      await outcome(queues.deleteQueue('list-a')),
      await outcome(queue.sendMessage('x')),
      await outcome(queue.getProperties()),
      await queue.exists(),
    ];
  },
  async 'lists queues in pages'({ queues, createQueue }) {
    for (const name of ['page-a', 'page-b', 'page-c']) await createQueue(name);
    const pages = [];
    for await (const { queueItems } of queues.listQueues({ prefix: 'page-' }).byPage({ maxPageSize: 2 }))
      pages.push(queueItems?.map(({ name }) => name));
    return pages;
  },
  async 'creates a queue again'({ queues }) {
    return [
      await outcome(queues.createQueue('again')),
      await outcome(queues.createQueue('again')),
      await outcome(queues.createQueue('again', { metadata: { a: '1' } })),
      (await queues.getQueueClient('again').createIfNotExists()).succeeded,
    ];
  },
  async 'rejects a queue name'({ queues }) {
    return Promise.all(
      ['ab', 'A-queue', 'a--b', '-ab', 'a_b', 'a'.repeat(64)].map((name) => outcome(queues.createQueue(name))),
    );
  },
  async 'keeps metadata'({ createQueue }) {
    const queue = await createQueue('described');
    await queue.setMetadata({ one: '1', two: 'second' });
    await queue.sendMessage('x');
    return queue.getProperties();
  },
  async 'sends and receives a message'({ createQueue }) {
    const queue = await createQueue('sending');
    const sent = await queue.sendMessage('{"a":"<&>\\"\u00e9\u{1f600}\\r\\n"}');
    const { receivedMessageItems } = await queue.receiveMessages();
    const [message] = receivedMessageItems;
    const deleted = await outcome(queue.deleteMessage(message?.messageId ?? '', message?.popReceipt ?? ''));
    return [sent, receivedMessageItems, deleted, await receive(queue)];
  },
  async 'keeps a text as it is'({ createQueue }) {
    const queue = await createQueue('texts');
    const texts = [' a ', 'line\nbreak', 'carriage\r\nreturn', '<b>&amp;</b>', 'YWJj', ']]>', '\t\u00e9\u{1f600}'];
    for (const text of texts) await queue.sendMessage(text);
    return receive(queue);
  },
  async 'receives in the order of sending'({ createQueue }) {
    const queue = await createQueue('order');
    for (const text of ['1', '2', '3', '4']) await queue.sendMessage(text);
    return [await receive(queue, 1), await receive(queue, 2), await receive(queue), await receive(queue)];
  },
  async 'hides a message when it is sent'({ createQueue }) {
    const queue = await createQueue('hidden');
    await queue.sendMessage('later', { visibilityTimeout: 1 });
    await queue.sendMessage('now');
    const before = await receive(queue);
    await pass(1);
    return [before, await receive(queue), (await queue.getProperties()).approximateMessagesCount];
  },
  async 'shows a message again, and counts its receipts'({ createQueue }) {
    const queue = await createQueue('repeated');
    await queue.sendMessage('x');
    const { receivedMessageItems: first } = await queue.receiveMessages({ visibilityTimeout: 1 });
    await pass(1);
    const second = await receive(queue);
    const [message] = first;
    return [second, await outcome(queue.deleteMessage(message?.messageId ?? '', message?.popReceipt ?? ''))];
  },
  async 'deletes a message that became visible again'({ createQueue }) {
    const queue = await createQueue('late');
    await queue.sendMessage('x');
    const [message] = (await queue.receiveMessages({ visibilityTimeout: 1 })).receivedMessageItems;
    await pass(1);
    return [
      await outcome(queue.deleteMessage(message?.messageId ?? '', message?.popReceipt ?? '')),
      await receive(queue),
    ];
  },
  async 'deletes an expired message'({ createQueue }) {
    const queue = await createQueue('expiring');
    await queue.sendMessage('short', { messageTimeToLive: 1 });
    await queue.sendMessage('forever', { messageTimeToLive: -1 });
    await pass(1);
    return receive(queue);
  },
  async 'changes a message with its receipt'({ createQueue }) {
    const queue = await createQueue('changing');
    const sent = await queue.sendMessage('old', { visibilityTimeout: 60 });
    const shown = await queue.updateMessage(sent.messageId, sent.popReceipt, 'new', 0);
    const kept = await queue.updateMessage(sent.messageId, shown.popReceipt ?? '', undefined, 0);
    return [
      shown,
      await outcome(queue.updateMessage(sent.messageId, sent.popReceipt, 'x', 0)),
      await outcome(queue.updateMessage('00000000-0000-0000-0000-000000000000', sent.popReceipt, 'x', 0)),
      await outcome(queue.deleteMessage(sent.messageId, sent.popReceipt)),
      await receive(queue),
      await outcome(queue.deleteMessage(sent.messageId, kept.popReceipt ?? '')),
      await outcome(queue.deleteMessage('00000000-0000-0000-0000-000000000000', 'AAAA')),
    ];
  },
  async 'peeks and clears'({ createQueue }) {
    const queue = await createQueue('peeking');
    for (const text of ['1', '2', '3']) await queue.sendMessage(text);
    await queue.receiveMessages({ visibilityTimeout: 30 });
    const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 5 });
    await queue.clearMessages();
    return [peekedMessageItems, await receive(queue), (await queue.getProperties()).approximateMessagesCount];
  },
  async 'rejects parameters out of their range'({ createQueue }) {
    const queue = await createQueue('ranges');
    const { messageId, popReceipt } = await queue.sendMessage('x');
    const days = 86_400;
    return [
      await outcome(queue.sendMessage('x', { visibilityTimeout: 7 * days + 1 })),
      await outcome(queue.sendMessage('x', { visibilityTimeout: -1 })),
      await outcome(queue.sendMessage('x', { visibilityTimeout: 10, messageTimeToLive: 10 })),
      await outcome(queue.sendMessage('x', { messageTimeToLive: 0 })),
      await outcome(queue.sendMessage('x', { messageTimeToLive: -2 })),
      await outcome(queue.receiveMessages({ numberOfMessages: 33 })),
      await outcome(queue.receiveMessages({ numberOfMessages: 0 })),
      await outcome(queue.receiveMessages({ visibilityTimeout: 7 * days + 1 })),
      await outcome(queue.peekMessages({ numberOfMessages: 33 })),
      await outcome(queue.updateMessage(messageId, popReceipt, 'x', 7 * days + 1)),
    ];
  },
  async 'limits a message to 64 KiB'({ createQueue }) {
    const queue = await createQueue('large');
    return [
      await outcome(queue.sendMessage('x'.repeat(65_536))),
      await outcome(queue.sendMessage('x'.repeat(65_537))),
      await outcome(queue.sendMessage('\u00e9'.repeat(32_769))),
    ];
  },
};

compareWithAzurite(import.meta.url, cases, QUEUE_DIFFERENCES);
