import { describe, expect, test } from 'vitest';
import { useProduct } from '../product.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');

describe('the last 24 hours of a data series', () => {
  test('are one list of instants and counts, in one transaction, with zeros for gaps', async () => {
    await hr('PATCH', '/api/messagehours/000001/2026-11-19', { body: { counts: { 10: 1, 11: 2, 23: 3 } } });
    await hr('PATCH', '/api/messagehours/000001/2026-11-20', { body: { counts: { 0: 4, 10: 5, 11: 6 } } });
    await hr('PATCH', '/api/messagehours/000002/2026-11-19', { body: { counts: { 12: 99 } } });
    const chart = await hr('GET', '/api/messagehours/000001?from=2026-11-19T11&to=2026-11-20T10');
    expect(chart.status).toBe(200);
    expect(chart.body.items).toHaveLength(24);
    expect(chart.body.items[0]).toEqual({ at: '2026-11-19T11:00:00Z', count: 2 });
    expect(chart.body.items.map(({ count }: { count: number }) => count)).toEqual([
      2,
      ...Array(11).fill(0),
      3,
      4,
      ...Array(9).fill(0),
      5,
    ]);
    expect(chart.headers.get('server-timing')).toContain('"1 transaction"');
    expect(chart.headers.get('etag')).toBeNull();
  });

  test('are explained without being returned', async () => {
    const { body } = await hr('GET', '/api/messagehours/000001?from=2026-11-19T11&to=2026-11-20T10&explain=true');
    expect(body).toMatchObject({ transactions: 1, steps: [{ read: 'rows', table: 'messagehours' }] });
    const day = await hr('GET', '/api/messagehours/000001?from=2026-11-20T11&to=2026-11-20T12&explain=true');
    expect(day.body).toMatchObject({ transactions: 1, steps: [{ read: 'row', row: '2026-11-20' }] });
  });

  test('are rejected with the name of the bound that is wrong', async () => {
    for (const [query, field] of [
      ['', 'from'],
      ['?from=2026-11-19', 'to'],
      ['?from=yesterday&to=2026', 'from'],
      ['?from=2026-11-19&to=2026-11-19T25', 'to'],
      ['?from=2026-11-20&to=2026-11-19', 'from'],
      ['?from=2024&to=2026', 'from'],
      ['?from=2026&to=2026&top=3', 'top'],
    ] as const)
      expect(await hr('GET', `/api/messagehours/000001${query}`)).toMatchObject({ status: 400, body: { field } });
    expect(await hr('GET', '/api/messagehours/1?from=2026-11-19&to=2026-11-19')).toMatchObject({
      status: 400,
      body: { field: 'employeeId' },
    });
  });

  test('are read only by roles that read the series', async () => {
    const path = '/api/messagehours/000001?from=2026-11-19T11&to=2026-11-20T10';
    for (const roles of ['reader', 'operator']) expect((await product.as(roles)('GET', path)).status).toBe(403);
  });
});

test('a chart of days crosses the end of a leap year', async () => {
  await hr('PATCH', '/api/messageyears/000001/2024', { body: { counts: { 365: 1, 366: 2 } } });
  await hr('PATCH', '/api/messageyears/000001/2025', { body: { counts: { 1: 3, 366: 99 } } });
  const { body } = await hr('GET', '/api/messageyears/000001?from=2024-12-30&to=2025-01-01');
  expect(body.items).toEqual([
    { at: '2024-12-30T00:00:00Z', count: 1 },
    { at: '2024-12-31T00:00:00Z', count: 2 },
    { at: '2025-01-01T00:00:00Z', count: 3 },
  ]);
  const next = await hr('GET', '/api/messageyears/000001?from=2025-12-31&to=2026-01-01');
  expect(next.body.items.map(({ count }: { count: number }) => count)).toEqual([0, 0]);
});

test('a chart is revalidated, and changed and deleted only if it is as the caller has seen it', async () => {
  const path = '/api/messageyears/000009/2026';
  const withTag = (name: string, etag: string) => ({ headers: { [name]: etag } });
  expect((await hr('PATCH', path, { body: { counts: { 1: 5 } }, ...withTag('if-match', '*') })).status).toBe(412);
  expect((await hr('PATCH', path, { body: { counts: { 1: 5 } }, ...withTag('if-none-match', '*') })).status).toBe(204);
  const first = await hr('GET', path);
  const etag = first.headers.get('etag') ?? '';
  expect(await hr('GET', path, withTag('if-none-match', etag))).toMatchObject({ status: 304 });
  expect((await hr('PUT', `${path}/366`, { body: { count: 7 }, ...withTag('if-match', etag) })).status).toBe(204);
  const second = await hr('GET', path, withTag('if-none-match', etag));
  expect(second).toMatchObject({ status: 200, body: { counts: [5, ...Array(364).fill(0), 7] } });
  const current = second.headers.get('etag') ?? '';
  for (const [method, where, body] of [
    ['PUT', `${path}/366`, { count: 8 }],
    ['PATCH', path, { counts: { 1: 8, 366: 8 } }],
    ['DELETE', path, undefined],
  ] as const) {
    const refused = await hr(method, where, { ...(body ? { body } : {}), ...withTag('if-match', etag) });
    expect([refused.status, refused.body.code, refused.headers.get('etag')]).toEqual([412, 'etag-mismatch', current]);
  }
  expect((await hr('GET', path)).body).toEqual(second.body);
  expect((await hr('DELETE', path, withTag('if-match', current))).status).toBe(204);
  expect((await hr('GET', path)).status).toBe(404);
});

test('a series that outgrows its row is set, incremented, charted, explained and deleted like any other', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const path = `/api/doorminutes/Sales/${day}`;
  const every = Object.fromEntries(Array.from({ length: 1_440 }, (_, minute) => [minute, minute % 60]));
  const planned = await hr('PATCH', `${path}?explain=true`, { body: { counts: every } });
  expect(planned.body.transactions).toBe(3);
  expect(planned.body.steps.slice(0, 3)).toMatchObject([{ read: 'row' }, { write: 'blob' }, { write: 'rows' }]);
  expect((await hr('GET', path)).status).toBe(404);
  const set = await hr('PATCH', path, { body: { counts: every } });
  expect([set.status, set.headers.get('server-timing')]).toEqual([204, expect.stringContaining('"3 transactions"')]);
  const repeated = { body: { by: 3 }, headers: { 'idempotency-key': 'one' } };
  for (const _ of ['once', 'again'])
    expect(await hr('POST', `${path}/61/increments`, repeated)).toMatchObject({ status: 200, body: { count: 4 } });
  const whole = await hr('GET', path);
  expect(whole.body.counts.slice(58, 63)).toEqual([58, 59, 0, 4, 2]);
  expect(whole.headers.get('server-timing')).toContain('"2 transactions"');
  expect(await hr('GET', path, { headers: { 'if-none-match': whole.headers.get('etag') ?? '' } })).toMatchObject({
    status: 304,
  });
  const chart = await hr('GET', `/api/doorminutes/Sales?from=${day}T00:59&to=${day}T01:01`);
  expect(chart.body.items).toEqual([
    { at: `${day}T00:59:00Z`, count: 59 },
    { at: `${day}T01:00:00Z`, count: 0 },
    { at: `${day}T01:01:00Z`, count: 4 },
  ]);
  expect(await hr('PUT', `${path}/1440`, { body: { count: 1 } })).toMatchObject({
    status: 400,
    body: { field: 'minute', accepted: '0 to 1439' },
  });
  expect(await hr('PUT', '/api/doorminutes/Sales/2020-01-01/5', { body: { count: 1 } })).toMatchObject({
    status: 400,
    body: { field: 'day' },
  });
  expect((await hr('DELETE', path)).status).toBe(204);
  expect((await hr('GET', path)).status).toBe(404);
});
