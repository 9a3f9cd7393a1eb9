import { describe, expect, expectTypeOf, test } from 'vitest';
import { createClient } from '../../lib/client/index.ts';
import type { Values } from '../../lib/index.ts';
import type { model } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { useProduct } from '../product.ts';

/** The fixture `inspections` is wide: its 300 measurements take two rows, and more if they are long. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const cost = ({ headers }: { readonly headers: Headers }) =>
  Number(/desc="(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1] ?? -1);
const measured = (count: number, value: string): Values =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${String(index).padStart(3, '0')}`, value]));
const one = { plant: 'Bergen', inspectionId: 'I1', ...measured(300, 'ok'), deviation: 1.5 };
const from = new Date().toISOString();
const path = '/api/inspections/Bergen/I1';

describe('inspections over HTTP', { tags: ['slow'] }, () => {
  test('are written, read and changed as one entity', async () => {
    const created = await hr('POST', '/api/inspections', { body: one });
    expect([created.status, cost(created)]).toEqual([201, 1]);
    const found = await hr('GET', path);
    expect(found.body).toEqual(one);
    expect(cost(found)).toBe(1);
    const etag = found.headers.get('etag') ?? '';
    expect((await hr('GET', path, { headers: { 'if-none-match': etag } })).status).toBe(304);
    const patched = await hr('PATCH', path, { body: { m299: 'repaired' }, headers: { 'if-match': etag } });
    expect(patched.body).toEqual({ ...one, m299: 'repaired' });
    expect(cost(patched)).toBe(2);
    const stale = await hr('PATCH', path, { body: { m001: 'x' }, headers: { 'if-match': etag } });
    expect(stale.status).toBe(412);
    const put = await hr('PUT', path, { body: one });
    expect([put.status, cost(put)]).toEqual([200, 2]);
    expect((await hr('GET', path)).body).toEqual(one);
  });

  test('explain which rows a change reads and writes', async () => {
    const explained = await hr('PATCH', `${path}?explain=true`, { body: { m299: 'x' } });
    expect(explained.body).toMatchObject({
      steps: [
        { read: 'rows', table: 'inspections' },
        {
          write: 'rows',
          actions: [
            { kind: 'replace', row: 'I1', conditional: true },
            { kind: 'upsert', row: 'I1!-wide1' },
          ],
        },
        { write: 'blob', container: 'audit' },
      ],
      transactions: 2,
    });
  });

  test('show restricted fields to roles that may read them', async () => {
    expect((await product.as('reader')('GET', path)).body).toEqual(baseValues.omit(one, ['deviation']));
  });

  test('are selected from and listed', async () => {
    const selected = await hr('GET', `${path}?select=inspectionId,m299`);
    expect(selected.body).toEqual({ inspectionId: 'I1', m299: 'ok' });
    const listed = await hr('GET', '/api/inspections/Bergen?select=m299,deviation&inspectionId=I1');
    expect(listed.body).toEqual({ items: [{ m299: 'ok', deviation: 1.5 }] });
    expect([cost(selected), cost(listed)]).toEqual([1, 1]);
    expect((await hr('GET', '/api/inspections/Bergen')).body).toEqual({ items: [one] });
    const filtered = await hr('GET', '/api/inspections/Bergen?m001=ok');
    expect(filtered.status).toBe(400);
    expect(JSON.stringify(filtered.body)).toContain('is in a further row of the entity');
  });

  test('are found by an index', async () => {
    await hr('PATCH', path, { body: { inspector: 'Ida' } });
    const found = await hr('GET', '/api/inspections/by/inspector/Ida');
    expect(found.body).toEqual({ items: [baseValues.pick(one, ['plant', 'inspectionId', 'deviation'])] });
  });

  test('may have several MB, and no more than a transaction writes', async () => {
    const body = { ...one, inspectionId: 'LONG', ...measured(110, 'x'.repeat(32_000)) };
    const created = await hr('POST', '/api/inspections', { body });
    expect([created.status, cost(created)]).toEqual([201, 1]);
    expect((await hr('GET', '/api/inspections/Bergen/LONG')).body).toEqual(body);
    const grown = await hr('PATCH', '/api/inspections/Bergen/LONG', { body: measured(120, 'x'.repeat(32_000)) });
    expect(grown.body).toMatchObject({ status: 413, accepted: expect.stringContaining('3670016 bytes') });
    expect((await hr('GET', '/api/inspections/Bergen/LONG')).body).toEqual(body);
  });

  test('are in the audit log with the names of the changed fields', async () => {
    const to = new Date(Date.now() + 1).toISOString();
    const { body } = await product.as('operator')('GET', `/api/operations/audit?from=${from}&to=${to}&top=1000`);
    const changes: { fields: string[]; operation: string }[] = body.items;
    expect(changes.find(({ operation }) => operation === 'create')?.fields).toHaveLength(303);
    expect(changes.map(({ fields }) => fields)).toContainEqual(['m299']);
  });

  test('are described as wide', async () => {
    const { body } = await hr('GET', '/api/model');
    expect(body.entities.inspections).toMatchObject({ wide: true });
    expect(body.entities.products).toMatchObject({ wide: false });
  });

  test('are archived and deleted', async () => {
    const { status, headers } = await hr('POST', `${path}/archive`);
    expect(status).toBe(202);
    // The archived row is there before it can be deleted.
    await expect.poll(() => hr('GET', headers.get('location') ?? '')).toMatchObject({ body: { status: 'succeeded' } });
    const archived = () => hr('GET', '/api/formerinspections/Bergen/I1');
    expect((await archived()).body).toEqual({ ...one, inspector: 'Ida' });
    expect((await hr('DELETE', '/api/formerinspections/Bergen/I1')).status).toBe(204);
    expect((await archived()).status).toBe(404);
  });
});

test('the typed client has inspections like any entity', { tags: ['slow'] }, async () => {
  const token = await product.token('hr');
  const client = createClient<typeof model>({ url: new URL('/api', product.url).href, token: () => token });
  const key = { plant: 'Moss', inspectionId: 'T1' };
  const created = await client.inspections.create({ ...key, m001: 'first', m299: 'last', deviation: 2 });
  const found = await client.inspections.get(key);
  type Values = NonNullable<typeof found>['values'];
  expectTypeOf<Values['m299']>().toEqualTypeOf<string | undefined>();
  // @ts-expect-error no field has this name
  void (() => client.inspections.update(key, { m300: 'x' }));
  expect(found?.values).toEqual({ ...key, m001: 'first', m299: 'last', deviation: 2 });
  const changed = await client.inspections.update(key, { deviation: 3 }, { ifMatch: created.etag });
  expect(changed.values).toMatchObject({ m299: 'last', deviation: 3 });
  const listed = await client.inspections.range({ plant: 'Moss' }, { select: ['deviation', 'm299'] }).page();
  expect(listed.items).toEqual([{ deviation: 3, m299: 'last' }]);
  await client.inspections.delete(key);
});
