import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { deployedApp } from '../fixtures/deployed-app.ts';
import { eventually, useProduct } from '../product.ts';

const product = useProduct(import.meta.url);

test.each([
  ['id', { ID: '../../x' }],
  ['dequeuecount', { dequeueCount: -1_000 }],
  ['insertiontime', { InsertionTime: '+275760-09-13T00:00:00Z' }],
])(
  'a message whose body replaces the trigger metadata %s is listed at once, and can be dropped',
  { tags: ['slow'] },
  async (name, over) => {
    const operator = product.as('operator');
    const intent = { version: 1, intent: 'one', entity: 'employees', table: 'employees', items: [], ...over };
    await product.storage.queue('index-changes').sendMessage(JSON.stringify(intent));
    const { body } = await eventually(
      () => operator('GET', '/api/operations/poison'),
      ({ body: { items } }) => items.length > 0,
    );
    const [{ id, reason, insertedAt }] = body.items;
    expect(reason).toContain(`it has the property ${name}`);
    expect(Math.abs(Date.parse(insertedAt) - Date.now())).toBeLessThan(600_000);
    expect((await operator('DELETE', `/api/operations/poison/${id}`)).status).toBe(204);
  },
);

test('messages that are nested too deeply for the Functions library are recorded, listed and dropped', {
  tags: ['slow'],
}, async () => {
  // Without a known entity, only a caller who may read all sees the text.
  const operator = product.as(['operator', ...deployedApp.model.roles]);
  const texts = new Map([
    ['index-changes', '['.repeat(20_000) + ']'.repeat(20_000)],
    ['transfers', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  ]);
  const queues = [...texts.keys()];
  const left = async (queue: string) =>
    (await product.storage.queue(`${queue}-poison`).getProperties()).approximateMessagesCount;
  for (const [queue, text] of texts) await product.storage.queue(queue).sendMessage(text);
  // Five attempts five seconds apart, none of which reaches the app. The timer also runs by itself every minute.
  const { body } = await eventually(
    async () => {
      await sleep(500);
      expect(await product.runTimer('poison')).toBe(202);
      return operator('GET', '/api/operations/poison');
    },
    ({ body: { items } }) => items.length === queues.length,
  );
  const found = new Map<string, { id: string; reason: string; text: string }>(
    body.items.map((item: { queue: string }) => [item.queue, item]),
  );
  for (const [queue, text] of texts) {
    const item = found.get(queue);
    expect(item, queue).toMatchObject({ reason: 'The message cannot be read: it is nested more than 1000 deep.' });
    expect(item?.text === text, queue).toBe(true);
    await expect.poll(() => left(queue)).toBe(0);
    expect((await operator('DELETE', `/api/operations/poison/${item?.id}`)).status).toBe(204);
  }
});

test('a clean-up of an index named like an inherited property returns 404', { tags: ['slow'] }, async () => {
  for (const name of ['constructor', 'toString', '__proto__'])
    expect((await product.as('operator')('POST', `/api/operations/clean-up/employees/${name}`)).status).toBe(404);
});
