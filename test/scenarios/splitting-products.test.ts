import { describe, expect, test } from 'vitest';
import { useProduct } from '../product.ts';

/** The fixture `products` has its texts apart from price and stock. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const cost = ({ headers }: { readonly headers: Headers }) =>
  Number(/desc="(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1] ?? -1);
const green = { categoryId: 7, productId: 1, productName: 'Green tea', unitPrice: 8.5, unitsInStock: 40 };
const texts = { description: 'Steamed', specification: 'Organic' };
const path = '/api/products/7/1';

describe('products over HTTP', () => {
  test('are created with their texts and read without them, unless a request includes them', async () => {
    const created = await hr('POST', '/api/products', { body: { ...green, ...texts } });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({ ...green, ...texts });
    // The category, whose fields the product copies, and one transaction with both rows.
    expect(cost(created)).toBe(2);
    const plain = await hr('GET', path);
    expect(plain.body).toEqual(green);
    const included = await hr('GET', `${path}?include=text`);
    expect(included.body).toEqual({ ...green, ...texts });
    expect([cost(plain), cost(included)]).toEqual([1, 1]);
    const listed = await hr('GET', '/api/products/7?select=productName,description&unitPrice=lt:9');
    expect(listed.body).toEqual({ items: [{ productName: 'Green tea', description: 'Steamed' }] });
    expect(cost(listed)).toBe(1);
    expect((await hr('GET', '/api/products/7')).body).toEqual({ items: [green] });
  });

  test('have one ETag, which a change of a text changes', async () => {
    const etag = (await hr('GET', path)).headers.get('etag') ?? '';
    expect((await hr('GET', path, { headers: { 'if-none-match': etag } })).status).toBe(304);
    // With its texts it is another representation.
    expect((await hr('GET', `${path}?include=text`, { headers: { 'if-none-match': etag } })).status).toBe(200);
    expect((await hr('PATCH', path, { body: { description: 'Fresh' } })).status).toBe(200);
    expect((await hr('GET', path, { headers: { 'if-none-match': etag } })).status).toBe(200);
    const stale = await hr('PATCH', path, { body: { unitPrice: 9 }, headers: { 'if-match': etag } });
    expect(stale.status).toBe(412);
  });

  test('change their price and stock without their texts', async () => {
    const black = { ...green, productId: 3, productName: 'Black tea' };
    await hr('POST', '/api/products', { body: { ...black, ...texts } });
    const own = '/api/products/7/3';
    const explained = await hr('PATCH', `${own}?explain=true`, { body: { unitsInStock: 39 } });
    expect(explained.body).toMatchObject({
      steps: [
        { read: 'row', row: '00000003' },
        { write: 'rows', actions: [{ kind: 'replace', row: '00000003', conditional: true }] },
        { write: 'blob', container: 'audit' },
      ],
      transactions: 2,
    });
    const patched = await hr('PATCH', own, { body: { unitsInStock: 39 } });
    expect(patched.body).toEqual({ ...black, unitsInStock: 39 });
    expect(cost(patched)).toBe(2);
    const whole = (await hr('GET', `${own}?include=text`)).body;
    expect(whole).toEqual({ ...black, ...texts, unitsInStock: 39 });
  });

  test('reject filters by texts and unknown groups with what is accepted', async () => {
    const filtered = await hr('GET', '/api/products/7?description=Fresh');
    expect(filtered.status).toBe(400);
    expect(JSON.stringify(filtered.body)).toContain('is in a further row of the entity');
    const unknown = await hr('GET', `${path}?include=texts`);
    expect(unknown.body).toMatchObject({ status: 400, field: 'include', accepted: 'text' });
  });

  test('name the one that lost its texts to callers who may read all of it, and not to the log', {
    tags: ['slow'],
  }, async () => {
    const lost = { ...green, productId: 2, ...texts };
    expect((await hr('POST', '/api/products', { body: lost })).status).toBe(201);
    await product.storage.table('products').deleteEntity('00007', '00000002!-text');
    const before = product.logged.length;
    const keys = 'products with the partition key "00007" and the row key "00000002"';
    const { status, body: problem } = await hr('GET', '/api/products/7?select=description');
    expect({ status, code: problem.code }).toEqual({ status: 503, code: 'needs-repair' });
    expect(problem.detail).toContain(keys);
    const log = product.logged.slice(before).join('\n');
    expect(log).toContain(
      'A further row of an entity of products is lost: text. npm run verify -- <entity> finds its key.',
    );
    expect(log).not.toContain('the row key');
    const { body } = await product.as(['hr', 'operator'])('POST', '/api/operations/verify/products');
    expect(body.findings).toContainEqual(
      expect.objectContaining({ kind: 'missing', of: 'text', partition: '00007', row: '00000002!-text' }),
    );
    // The scan of an export goes on, with null for what the row may have had: the description of the API has no such value.
    const headers = { authorization: `Bearer ${await product.token(['hr', 'operator'])}` };
    const scan = new URL('/api/operations/scan/products?select=productId,description', product.url);
    const scanned = (await (await fetch(scan, { headers })).json()) as { items: readonly object[] };
    expect(scanned.items).toContainEqual(expect.objectContaining({ productId: 2, description: null }));
    expect((await hr('DELETE', '/api/products/7/2')).status).toBe(204);
  });

  test('are deleted with their texts', async () => {
    const deleted = await hr('DELETE', path);
    expect([deleted.status, cost(deleted)]).toEqual([204, 6]);
    expect((await hr('GET', path)).status).toBe(404);
    const again = await hr('POST', '/api/products', { body: green });
    expect(again.status).toBe(201);
    expect((await hr('GET', `${path}?include=text`)).body).toEqual(green);
  });
});
