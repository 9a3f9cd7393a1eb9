import { beforeAll, expect, test } from 'vitest';
import { useProduct } from '../product.ts';

/** Lookup tables: the list of a small entity, from the memory of the process. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');
const LIST = '/api/currencies';

beforeAll(async () => {
  for (const [rank, currency] of ['CHF', 'EUR', 'USD'].entries()) {
    const body = {
      currency,
      title: `Money ${currency}`,
      rank,
      supplier: `Bank ${currency}`,
      password: `Secret ${currency}`,
    };
    expect((await hr('POST', '/api/currencies', { body })).status).toBe(201);
  }
});

const transactionsOf = (headers: Headers) => Number(/desc="(\d+)/.exec(headers.get('server-timing') ?? '')?.[1]);

/** Reads the list twice, so that it is in memory. */
async function warmUp() {
  await hr('GET', LIST);
  const again = await hr('GET', LIST);
  expect(transactionsOf(again.headers)).toBe(0);
  return again;
}

test('the list is read once, and then returned without a transaction', async () => {
  await hr('POST', '/api/currencies', { body: { currency: 'NOK', title: 'Money NOK' } });
  const first = await hr('GET', LIST);
  expect(first).toMatchObject({
    status: 200,
    body: { items: [{ currency: 'CHF' }, { currency: 'EUR' }, { currency: 'NOK' }, {}] },
  });
  expect(transactionsOf(first.headers)).toBe(1);
  const again = await hr('GET', LIST);
  expect(transactionsOf(again.headers)).toBe(0);
  expect(again.body).toEqual(first.body);
  expect((await hr('DELETE', '/api/currencies/NOK')).status).toBe(204);
});

test('an unchanged list is 304 without a body, and each view has an ETag of its own', async () => {
  const { headers } = await warmUp();
  const etag = headers.get('etag') ?? '';
  const same = await hr('GET', LIST, { headers: { 'if-none-match': etag } });
  expect(same).toMatchObject({ status: 304, body: '' });
  expect(transactionsOf(same.headers)).toBe(0);
  for (const [client, path] of [
    [reader, LIST],
    [hr, `${LIST}?select=title`],
  ] as const)
    expect((await client('GET', path, { headers: { 'if-none-match': etag } })).status, path).toBe(200);
  await hr('PATCH', '/api/currencies/CHF', { body: { rank: 7 } });
  const changed = await hr('GET', LIST, { headers: { 'if-none-match': etag } });
  expect(changed).toMatchObject({ status: 200, body: { items: [{ currency: 'CHF', rank: 7 }, {}, {}] } });
  await hr('PATCH', '/api/currencies/CHF', { body: { rank: 0 } });
  expect((await hr('GET', LIST)).headers.get('etag')).not.toBe(changed.headers.get('etag'));
});

test('the ETag of a caller does not depend on a field that the caller may not read', async () => {
  const etags = async () => [
    (await reader('GET', LIST)).headers.get('etag'),
    (await hr('GET', LIST)).headers.get('etag'),
  ];
  const [ofReader, ofHr] = await etags();
  expect((await hr('PATCH', '/api/currencies/EUR', { body: { supplier: 'Bank of another name' } })).status).toBe(200);
  const [readerLater, hrLater] = await etags();
  expect(readerLater).toBe(ofReader);
  expect(hrLater).not.toBe(ofHr);
  expect((await hr('PATCH', '/api/currencies/EUR', { body: { supplier: 'Bank EUR' } })).status).toBe(200);
  expect((await etags())[1]).toBe(ofHr);
});

test('a write of the process is in the next list', async () => {
  const codes = async () => (await hr('GET', LIST)).body.items.map(({ currency }: { currency: string }) => currency);
  await warmUp();
  await hr('POST', '/api/currencies', { body: { currency: 'DKK', title: 'Money DKK' } });
  expect(await codes()).toEqual(['CHF', 'DKK', 'EUR', 'USD']);
  await hr('POST', '/api/currencies/batch', { body: { actions: [{ delete: { currency: 'DKK' } }] } });
  expect(await codes()).toEqual(['CHF', 'EUR', 'USD']);
});

test('filters and selects from memory, also in a query and in an explanation', async () => {
  await warmUp();
  const some = await reader('GET', `${LIST}?rank=ge:1&select=title`);
  expect(some.body.items).toEqual([{ title: 'Money EUR' }, { title: 'Money USD' }]);
  expect(transactionsOf(some.headers)).toBe(0);
  const list = { list: 'currencies', where: { rank: 1 }, select: ['currency'] };
  const queried = await reader('POST', '/api/query', { body: { reads: { list, none: { list: 'orders' } } } });
  expect(queried.body.reads).toEqual({
    list: { status: 200, transactions: 0, items: [{ currency: 'EUR' }] },
    none: expect.objectContaining({ status: 400, problem: expect.objectContaining({ accepted: 'currencies' }) }),
  });
  expect((await hr('GET', `${LIST}?explain=true`)).body).toEqual({ steps: [], transactions: 0 });
  await hr('PATCH', '/api/currencies/CHF', { body: { rank: 5 } });
  const explained = await hr('GET', `${LIST}?explain=true`);
  expect(explained.body).toMatchObject({ steps: [{ read: 'rows', table: 'currencylist' }], transactions: 1 });
  await hr('PATCH', '/api/currencies/CHF', { body: { rank: 0 } });
});

test('the kept list shows each caller only what the caller may read, whoever read it first', async () => {
  for (const clients of [
    [hr, reader],
    [reader, hr],
  ]) {
    await hr('PATCH', '/api/currencies/CHF', { body: { rank: Math.trunc(Math.random() * 1e6) } });
    for (const client of [...clients, ...clients]) {
      const { body } = await client('GET', LIST);
      const eur = body.items.find(({ currency }: { currency: string }) => currency === 'EUR');
      if (client === hr) expect(eur).toMatchObject({ supplier: 'Bank EUR', password: 'Secret EUR' });
      else {
        expect(eur).toEqual({ currency: 'EUR', title: 'Money EUR', rank: 1 });
        expect(JSON.stringify(body)).not.toMatch(/Bank|Secret|password/);
      }
    }
  }
  expect((await reader('GET', `${LIST}?supplier=Bank%20EUR`)).status).toBe(403);
  const hidden = { list: 'currencies', where: { supplier: 'Bank EUR' } };
  const { body } = await reader('POST', '/api/query', { body: { reads: { hidden } } });
  expect(body.reads.hidden).toMatchObject({ status: 403 });
  expect((await reader('GET', `${LIST}?select=password,currency`)).body.items[0]).toEqual({ currency: 'CHF' });
});
