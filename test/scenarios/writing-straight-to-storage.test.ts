import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** A phone adds expense claims and counts messages directly in storage, with a signature. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const one = somebody({ employeeId: '000777' });
const own = product.as('reader', one.email);
const headers = { accept: 'application/json;odata=nometadata', 'content-type': 'application/json' };

beforeAll(async () => {
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
});

const grantFor = async (entity: string, permissions: string) =>
  (await own('POST', '/api/grants', { body: { entity, scope: 'own', permissions } })).body;

/** 9999-12-31 less the instant in ticks of 100 ns, the form in which the API stores `at`. */
const rowKey = (at: string, claimId: string) =>
  `${String(3_155_378_975_999_999_999n - (BigInt(Date.parse(at)) * 10_000n + 621_355_968_000_000_000n)).padStart(19, '0')}_${claimId}`;

describe('expense claims', () => {
  test('are added and read directly in storage, and the API lists the valid ones', async () => {
    const { url, token, partition, permissions } = await grantFor('expenses', 'ra');
    expect({ partition, permissions }).toEqual({ partition: '000777', permissions: 'ra' });
    const at = '2026-11-20T08:00:00.000Z';
    const claimId = randomUUID();
    const claim = { employeeId: '000777', at, claimId, amount: 12.5, category: 'Meals' };
    const add = (row: object) => fetch(`${url}?${token}`, { method: 'POST', headers, body: JSON.stringify(row) });
    const keys = { PartitionKey: partition, RowKey: rowKey(at, claimId), EntityType: 'expenses' };
    expect((await add({ ...keys, ...claim })).status).toBe(201);
    expect((await add({ ...keys, ...claim })).status).toBe(409);
    const wrongs = [
      { amount: -5 },
      { amount: 'much' },
      { employeeId: '000001' },
      { at: 'now' },
      { category: undefined },
    ];
    for (const wrong of wrongs) {
      const another = randomUUID();
      const row = { ...keys, RowKey: rowKey(at, another), ...claim, claimId: another, ...wrong };
      expect((await add(row)).status).toBe(201);
    }
    expect((await hr('GET', '/api/expenses/000777')).body.items).toEqual([claim]);
    expect((await hr('GET', '/api/expenses/000777?select=amount')).body.items).toEqual([{ amount: 12.5 }]);
    const filter = encodeURIComponent(`PartitionKey eq '${partition}'`);
    const read = await fetch(`${url}()?$filter=${filter}&${token}`, { headers });
    expect(((await read.json()) as { value: unknown[] }).value).toHaveLength(6);
    const changed = await fetch(`${url}(PartitionKey='${partition}',RowKey='${keys.RowKey}')?${token}`, {
      method: 'PUT',
      headers: { ...headers, 'if-match': '*' },
      body: JSON.stringify({ ...keys, ...claim, amount: 1_000 }),
    });
    expect(changed.status).toBe(403);
  });

  test('are granted as declared, to their owner only', async () => {
    for (const permissions of ['u', 'rd', 'raud'])
      expect(
        await own('POST', '/api/grants', { body: { entity: 'expenses', scope: 'own', permissions } }),
      ).toMatchObject({ status: 403, body: { field: 'permissions', accepted: 'ra' } });
    const body = { entity: 'expenses', scope: 'own' };
    expect((await product.as('reader', 'nobody@contoso.com')('POST', '/api/grants', { body })).status).toBe(404);
    expect((await product.as('reader')('POST', '/api/grants', { body })).status).toBe(403);
    expect((await own('POST', '/api/grants', { body: { ...body, entity: 'logins' } })).status).toBe(400);
  });
});

describe('a series', () => {
  test('is incremented directly in storage and charted by the API', async () => {
    const { url, token, partition } = await grantFor('messagehours', 'rau');
    const row = `${url}(PartitionKey='${partition}',RowKey='2026-11-20')?${token}`;
    const merge = (counts: object) => fetch(row, { method: 'MERGE', headers, body: JSON.stringify(counts) });
    for (const counts of [{ Count009: 7 }, { Count010: 3 }, { Count011: 'many', Count012: -1 }])
      expect((await merge(counts)).status).toBe(204);
    const { body } = await hr('GET', '/api/messagehours/000777/2026-11-20');
    expect(body.counts.slice(9, 13)).toEqual([7, 3, 0, 0]);
  });
});
