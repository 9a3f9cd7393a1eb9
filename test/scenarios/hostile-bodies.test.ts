import { expect, test } from 'vitest';
import { eventually, useProduct } from '../product.ts';

const product = useProduct(import.meta.url);

test.each([
  ['id', { ID: '../../x' }],
  ['dequeuecount', { dequeueCount: -1_000 }],
  ['insertiontime', { InsertionTime: '+275760-09-13T00:00:00Z' }],
])(
  'a message whose body replaces the trigger metadata %s is listed at once, and can be dropped',
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

test('a clean-up of an index that is named as what objects inherit is 404', async () => {
  for (const name of ['constructor', 'toString', '__proto__'])
    expect((await product.as('operator')('POST', `/api/operations/clean-up/employees/${name}`)).status).toBe(404);
});
