import { beforeAll, describe, expect, test } from 'vitest';
import { model } from '../fixtures/model.ts';
import { openApp } from '../open-app.ts';
import { type Client, eventually, type Reply, useProduct } from '../product.ts';

const product = useProduct(import.meta.url);
let hr: Client;
let reader: Client;
beforeAll(async () => {
  hr = product.as('hr');
  reader = product.as('reader');
  const sales = Array.from({ length: 24 }, (_, at) => ({
    branch: at % 2 ? 'Bern' : 'Genève/Sud',
    saleId: `S${String(at).padStart(6, '0')}`,
    soldOn: `2026-${String((at % 12) + 1).padStart(2, '0')}-01`,
    amount: at + 0.1,
    clerk: 'Kim',
    profit: at,
  }));
  for (const branch of ['Bern', 'Genève/Sud']) {
    const actions = sales.filter((one) => one.branch === branch).map((create) => ({ create }));
    expect((await hr('POST', '/api/sales/batch', { body: { actions } })).status).toBe(200);
  }
  // A batch leaves its totals to the queue.
  const counted = ({ body }: Reply) => body.items.reduce((sum: number, { count }: { count: number }) => sum + count, 0);
  await eventually(
    () => reader('GET', path('byMonth', 'Bern')),
    (reply) => counted(reply) === 12,
  );
  await eventually(
    () => reader('GET', path('byDay')),
    (reply) => counted(reply) === 24,
  );
  await eventually(
    () => hr('GET', path('byClerk', 'Kim')),
    ({ body }) => body.count === 24,
  );
  await eventually(
    () => reader('GET', path('byMonth', 'Genève/Sud')),
    (reply) => counted(reply) === 12,
  );
});

const costOf = ({ headers }: { headers: Headers }) =>
  Number(/"(\d+) trans/.exec(headers.get('server-timing') ?? '')?.[1]);
const path = (...parts: string[]) => `/api/sales/totals/${parts.map(encodeURIComponent).join('/')}`;

describe('totals over HTTP', () => {
  test('are read by their group with one transaction', async () => {
    const reply = await reader('GET', path('byMonth', 'Genève/Sud', '2026-03'));
    expect(reply).toMatchObject({
      status: 200,
      body: {
        group: { branch: 'Genève/Sud', soldOn: '2026-03' },
        count: 2,
        sum: { amount: 16.2, tip: 0 },
        min: { amount: 2.1, soldOn: '2026-03-01' },
        max: { amount: 14.1 },
      },
    });
    expect(costOf(reply)).toBe(1);
  });

  test('of a group without entities are zero', async () => {
    const { status, body } = await reader('GET', path('byMonth', 'Bern', '1999-01'));
    expect({ status, body }).toEqual({
      status: 200,
      body: { group: { branch: 'Bern', soldOn: '1999-01' }, count: 0, sum: { amount: 0, tip: 0 }, min: {}, max: {} },
    });
  });

  test('are listed over a range with one transaction', async () => {
    const reply = await reader('GET', `${path('byMonth', 'Bern')}?from=2026-03&to=2026-08`);
    expect(reply.body.items.map(({ group }: { group: { soldOn: string } }) => group.soldOn)).toEqual([
      '2026-04',
      '2026-06',
      '2026-08',
    ]);
    expect(costOf(reply)).toBe(1);
    expect((await reader('GET', path('byMonth', 'Bern'))).body.items).toHaveLength(6);
  });

  test('of buckets are added up, in every page', async () => {
    const whole = await reader('GET', path('byDay'));
    expect(costOf(whole)).toBe(4);
    expect(whole.body.items).toHaveLength(12);
    expect(whole.body.items[0]).toEqual({
      group: { soldOn: '2026-01-01' },
      count: 2,
      sum: { amount: 12.2 },
      min: {},
      max: { amount: 12.1 },
    });
    const paged: unknown[] = [];
    let next: string | undefined = `${path('byDay')}?top=5`;
    for (; next; ) {
      const { body, headers } = await reader('GET', next);
      paged.push(...body.items);
      next = /<([^>]*)>/.exec(headers.get('link') ?? '')?.[1];
    }
    expect(paged).toEqual(whole.body.items);
    const one = await reader('GET', path('byDay', '2026-05-01'));
    expect(one.body).toEqual(whole.body.items[4]);
    expect(costOf(one)).toBe(4);
  });

  test('of a restricted field are only for those who may read the field', async () => {
    expect((await reader('GET', path('byClerk', 'Kim'))).status).toBe(403);
    expect((await hr('GET', path('byClerk', 'Kim'))).body).toMatchObject({ count: 24, sum: { profit: 276 } });
  });

  test.each([
    [path('byMonth', 'Bern', '2026-3'), 'soldOn'],
    [path('byMonth', 'Bern', '2026-03-01'), 'soldOn'],
    [path('byMonth', 'Bern', '2026-13'), 'soldOn'],
    [path('byDay', 'today'), 'soldOn'],
    [path('byMonth'), 'branch'],
    [`${path('byMonth', 'Bern')}?order=descending`, 'order'],
    [`${path('byMonth', 'Bern')}?top=0`, 'top'],
    [`${path('byMonth', 'Bern')}?continuation=x`, 'continuation'],
  ])('are refused with a clear answer: %s', async (asked, field) => {
    expect(await reader('GET', asked)).toMatchObject({ status: 400, body: { code: 'invalid-input', field } });
  });

  test('are explained', async () => {
    const read = await reader('GET', `${path('byDay', '2026-05-01')}?explain=true`);
    expect(read.body.transactions).toBe(4);
    const body = { branch: 'Bern', saleId: 'S900000', soldOn: '2026-03-01', amount: 1 };
    const planned = await hr('POST', '/api/sales?explain=true', { body });
    expect((await reader('GET', path('byMonth', 'Bern', '2026-03'))).body.count).toBe(0);
    const created = await hr('POST', '/api/sales', { body });
    expect(planned.body.transactions).toBe(costOf(created));
    expect((await reader('GET', path('byMonth', 'Bern', '2026-03'))).body.count).toBe(1);
  });
});

test('totals are typed in the store', async () => {
  const { sales } = openApp(import.meta.url, model).store;
  const month = await sales.totals.byMonth.get({ branch: 'Bern', soldOn: '2026-04' });
  const { amount }: { readonly amount: number } = month.sum;
  expect(amount).toBe(18.2);
  // @ts-expect-error: no such sum
  expect(month.sum.profit).toBeUndefined();
  const months = await Array.fromAsync(sales.totals.byMonth.range({ branch: 'Bern' }, { from: '2026-04', first: 2 }));
  expect(months.map(({ group }) => group.soldOn)).toEqual(['2026-04', '2026-06']);
  // @ts-expect-error: the branch is required
  expect(() => sales.totals.byMonth.range({})).toThrow('needs "branch" first');
  await expect(sales.totals.byDay.get({ soldOn: '2026-04' })).rejects.toMatchObject({ code: 'invalid-input' });
});
