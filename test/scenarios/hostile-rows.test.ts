import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { expenses } from '../fixtures/model.ts';
import { defineKeys } from '../kit/define.ts';
import { sampleRuns } from '../points.ts';
import { type Reply, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** A client with a grant can write any row that storage accepts. Such a row must not affect other callers. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const operator = product.as(['operator', 'hr']);
const one = somebody({ employeeId: '000777' });
const own = product.as('reader', one.email);
const PARTITION = '000777';

const grants = new Map<string, { url: string; token: string }>();
beforeAll(async () => {
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  for (const [entity, permissions] of [
    ['expenses', 'ra'],
    ['messagehours', 'rau'],
    ['messageyears', 'rau'],
  ] as const) {
    const { body } = await own('POST', '/api/grants', { body: { entity, scope: 'own', permissions } });
    grants.set(entity, body);
  }
});

interface Property {
  readonly type?: string;
  readonly value: unknown;
}
type Bag = Readonly<Record<string, Property>>;

/** Adds a row with the signature, as a client does. Returns whether storage accepted the row. */
async function add(entity: string, row: string, bag: Bag): Promise<boolean> {
  const { url, token } = grants.get(entity) ?? { url: '', token: '' };
  const entries = Object.entries(bag).flatMap(([name, { type, value }]) => [
    [name, value] as const,
    ...(type ? [[`${name}@odata.type`, type] as const] : []),
  ]);
  const properties = JSON.stringify(Object.fromEntries(entries)).slice(1, -1);
  // A property whose name differs from a key property only in case follows the key property.
  const keys = JSON.stringify({ PartitionKey: PARTITION, RowKey: row }).slice(0, -1);
  const response = await fetch(`${url}?${token}`, {
    method: 'POST',
    headers: { accept: 'application/json;odata=nometadata', 'content-type': 'application/json' },
    body: `${keys}${properties && `,${properties}`}}`,
  });
  return response.status === 201;
}

const SYSTEM = [
  'EntityType',
  'EntityVersion',
  'SourceRow',
  'SourcePartition',
  'MovingFrom',
  'MovedTo',
  'WriteId',
  'Incarnation',
  'DenormalizedTo',
  'TouchedBy',
  'Claim',
  'Confirmed',
  'Members',
  'MembersBlob',
  'Writers',
  'Blob_description',
  'Part2_description',
  'partitionKey',
  'rowKey',
  'etag',
  'timestamp',
  'constructor',
  'toString',
  'toJSON',
  'then',
  'length',
  'value',
];
const FIELDS = ['employeeId', 'at', 'claimId', 'amount', 'category', 'description'];

const text = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    'expenses',
    'employees',
    'tombstone',
    'placeholder',
    'claim',
    'list',
    '000777',
    '000001',
    '-1',
    '{"blob":"x","length":1,"sha256":"y"}',
  ),
  fc.string({ maxLength: 40 }),
);
const property: fc.Arbitrary<Property> = fc.oneof(
  text.map((value) => ({ value })),
  fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }).map((value) => ({ value })),
  fc.boolean().map((value) => ({ value })),
  fc.constantFrom(0.5, -1e300, 12.25).map((value) => ({ value })),
  fc.constantFrom('NaN', 'Infinity').map((value) => ({ type: 'Edm.Double', value })),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => ({ type: 'Edm.Int64', value: String(value) })),
  fc
    .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
    .map((at) => ({ type: 'Edm.DateTime', value: at.toISOString() })),
  fc.uuid().map((value) => ({ type: 'Edm.Guid', value })),
  fc
    .uint8Array({ maxLength: 20 })
    .map((value) => ({ type: 'Edm.Binary', value: Buffer.from(value).toString('base64') })),
);
const bagOf = (names: fc.Arbitrary<string>) => fc.dictionary(names, property, { maxKeys: 6, noNullPrototype: true });
const anyName = fc.oneof(
  fc.constantFrom(...SYSTEM),
  fc.constantFrom(...FIELDS),
  fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,12}$/),
);
const ordinary = fc.constantFrom(...SYSTEM.filter((name) => !FIELDS.includes(name)));

const claim = fc.record({
  at: fc
    .date({ noInvalidDate: true, min: new Date('1970-01-01'), max: new Date('2100-01-01') })
    .map((at) => at.toISOString()),
  claimId: fc.constant(0).map((): string => randomUUID()),
  amount: fc.integer({ min: 0, max: 1_000 }),
  category: fc.constantFrom('Meals', 'Travel'),
});

const honest = (values: object): Bag =>
  Object.fromEntries(Object.entries({ employeeId: PARTITION, ...values }).map(([name, value]) => [name, { value }]));
const rowOf = (values: object) => defineKeys.buildKey(expenses.row, { employeeId: PARTITION, ...values });
const pathOf = ({ at, claimId }: { at: string; claimId: string }) =>
  `/api/expenses/${PARTITION}/${encodeURIComponent(at)}/${claimId}`;

/** Returns the items of all pages. */
async function all(read: (path: string) => Promise<Reply>, first: string, of: 'items' | 'findings') {
  const found: Record<string, unknown>[] = [];
  for (let next: string | undefined = first; next; ) {
    const { status, body, headers } = await read(next);
    expect(status, `${next} ${JSON.stringify(body)}`).toBe(200);
    found.push(...body[of]);
    next = /<(.*?)>/.exec(headers.get('link') ?? '')?.[1];
  }
  return found;
}
const rangeOf = (query = '') => all((path) => hr('GET', path), `/api/expenses/${PARTITION}?top=3${query}`, 'items');
const scan = () => all((path) => operator('GET', path), '/api/operations/scan/expenses?top=2', 'items');
const verify = (repair = false) =>
  all((path) => operator('POST', path), `/api/operations/verify/expenses?top=100&repair=${repair}`, 'findings');

describe('expense claims', () => {
  test('are returned only if valid, break no page, and can be deleted and replaced whatever they contain', {
    tags: ['slow'],
  }, async () => {
    const written = fc.record({ claim, bag: bagOf(anyName), without: fc.subarray(FIELDS, { maxLength: 2 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(written, { minLength: 1, maxLength: 5 }), async (rows) => {
        const taken: typeof rows = [];
        for (const row of rows) {
          const base = Object.entries(honest(row.claim)).filter(([name]) => !row.without.includes(name));
          const bag = { ...Object.fromEntries(base), ...row.bag };
          if (await add('expenses', rowOf(row.claim), bag)) taken.push(row);
        }
        const items = await rangeOf();
        expect(await scan()).toEqual(items);
        expect(await rangeOf('&select=claimId,amount')).toEqual(
          items.map(({ claimId, amount }) => ({ claimId, amount })),
        );
        const keys = new Map(taken.map((row) => [row.claim.claimId, row.claim]));
        for (const item of items) {
          expect(expenses.schema.safeParse(item).success, JSON.stringify(item)).toBe(true);
          expect(item).toMatchObject({ employeeId: PARTITION, at: keys.get(String(item.claimId))?.at });
          const alone = await hr('GET', pathOf(keys.get(String(item.claimId)) ?? { at: '', claimId: '' }));
          expect(alone).toMatchObject({ status: 200, body: item });
          expect(await rangeOf(`&claimId=${item.claimId}`)).toEqual([item]);
        }
        const refused = await verify();
        const shown = items.map((item) => rowOf(item));
        expect([...refused.map(({ row }) => row), ...shown].sort()).toEqual(
          taken.map((row) => rowOf(row.claim)).sort(),
        );
        for (const finding of refused)
          expect(finding).toMatchObject({
            kind: 'invalid',
            of: 'expenses',
            partition: PARTITION,
            reason: expect.stringMatching(/\w/),
          });
        for (const [
          index,
          {
            claim: { at, claimId, amount, category },
          },
        ] of taken.entries()) {
          const path = pathOf({ at, claimId });
          const isShown = shown.includes(rowOf({ at, claimId }));
          expect((await hr('GET', path)).status).toBe(isShown ? 200 : 404);
          if (!isShown) expect((await hr('PATCH', path, { body: { amount: 1 } })).status).toBe(404);
          if (index % 2) {
            const replaced = await hr('PUT', path, { body: { amount, category } });
            expect(replaced, JSON.stringify(replaced.body)).toMatchObject({
              status: 200,
              body: { employeeId: PARTITION, at, claimId, amount },
            });
            expect((await hr('GET', path)).status).toBe(200);
          }
          expect((await hr('DELETE', path)).status).toBe(204);
        }
        expect(await scan()).toEqual([]);
        expect(await verify()).toEqual([]);
      }),
      sampleRuns(20),
    );
  });

  test('are returned whatever system properties they have', { tags: ['slow'] }, async () => {
    await fc.assert(
      fc.asyncProperty(claim, bagOf(ordinary), async (values, bag) => {
        fc.pre(await add('expenses', rowOf(values), { ...honest(values), ...bag }));
        const item = { employeeId: PARTITION, ...values };
        expect(await rangeOf()).toEqual([item]);
        expect(await scan()).toEqual([item]);
        expect(await hr('GET', pathOf(values))).toMatchObject({ status: 200, body: item });
        expect(await hr('PATCH', pathOf(values), { body: { amount: 1 } })).toMatchObject({
          status: 200,
          body: { amount: 1 },
        });
        const put = { amount: 2, category: 'Other' };
        const batch = { actions: [{ put: { ...item, ...put } }] };
        expect((await hr('POST', '/api/expenses/batch', { body: batch })).body).toMatchObject({
          results: [{ status: 200 }],
        });
        expect(await hr('POST', '/api/expenses', { body: item })).toMatchObject({ status: 409 });
        expect((await hr('DELETE', pathOf(values))).status).toBe(204);
      }),
      sampleRuns(30),
    );
  });

  test('keep their keys beside properties with the names of keys', async () => {
    const values = { at: '2026-11-20T08:00:00.000Z', claimId: randomUUID(), amount: 5, category: 'Meals' };
    const names = { partitionKey: { value: '000001' }, rowKey: { value: 'x' }, etag: { value: 'W/"x"' } };
    expect(await add('expenses', rowOf(values), { ...honest(values), ...names })).toBe(true);
    expect(await rangeOf()).toEqual([{ employeeId: PARTITION, ...values }]);
    expect(await scan()).toHaveLength(1);
    const { etag = '' } = Object.fromEntries((await hr('GET', pathOf(values))).headers);
    expect((await hr('DELETE', pathOf(values), { headers: { 'if-match': etag } })).status).toBe(204);
  });

  test.each<[string, Bag]>([
    ['a text field of 64 bits', { description: { type: 'Edm.Int64', value: '9007199254740993' } }],
    ["another employee's id", { employeeId: { value: '000001' } }],
    ['an upgrade of a version that never was', { EntityVersion: { value: -1_000_000_000 }, amount: { value: 'x' } }],
  ])('are rejected by every read path: %s', { tags: ['slow'] }, async (_, bag) => {
    const values = { at: '2026-11-20T08:00:00.000Z', claimId: randomUUID(), amount: 5, category: 'Meals' };
    expect(await add('expenses', rowOf(values), { ...honest(values), ...bag })).toBe(true);
    expect(await rangeOf()).toEqual([]);
    expect(await scan()).toEqual([]);
    expect((await hr('GET', pathOf(values))).status).toBe(404);
    expect(await verify()).toMatchObject([{ kind: 'invalid', row: rowOf(values), repaired: false }]);
    expect((await hr('DELETE', pathOf(values))).status).toBe(204);
  });

  test('are deleted by the repair when their keys are impossible, unless another program may have written them', {
    tags: ['slow'],
  }, async () => {
    const odd = ['x', '0', '9'.repeat(19), `${'9'.repeat(25)}_${randomUUID()}`, '2000000000000000000_no-uuid'];
    const type = { EntityType: { value: 'expenses' } };
    for (const row of odd)
      expect(await add('expenses', row, { ...honest({ amount: 1, category: 'Meals' }), ...type })).toBe(true);
    expect(await add('expenses', 'y', honest({ amount: 1, category: 'Meals' }))).toBe(true);
    expect(await rangeOf()).toEqual([]);
    expect(await scan()).toEqual([]);
    const found = await verify();
    expect(found.map(({ row }) => row)).toEqual([...odd, 'y'].sort());
    expect((await verify(true)).filter(({ repaired }) => !repaired)).toMatchObject([{ row: 'y' }]);
    expect(await verify()).toMatchObject([{ row: 'y' }]);
  });
});

describe.each([
  ['messagehours', '2026-11-20', ['2026-11-20'], 'Count009', 9],
  ['messageyears', '2026', ['2026', '2026_2'], 'Count009', 9],
] as const)('the series %s', (entity, key, rows, count, slot) => {
  const path = `/api/${entity}/${PARTITION}/${key}`;
  const names = fc.oneof(
    fc.constantFrom(...SYSTEM, 'Count001', count, 'Count200', 'day', 'year', 'employeeId'),
    anyName,
  );

  test('is read, incremented and deleted whatever its rows contain', { tags: ['slow'] }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(bagOf(names), { minLength: rows.length, maxLength: rows.length }), async (bags) => {
        const added: boolean[] = [];
        for (const [index, row] of rows.entries()) added.push(await add(entity, row, bags[index] ?? {}));
        fc.pre(added.includes(true));
        const before = await hr('GET', path);
        expect(before, JSON.stringify(before.body)).toMatchObject({ status: 200, body: { employeeId: PARTITION } });
        expect(before.body.counts.every((each: unknown) => Number.isInteger(each) && Number(each) >= 0)).toBe(true);
        expect((await hr('PUT', `${path}/${slot}`, { body: { count: 7 } })).status).toBe(204);
        expect(await hr('POST', `${path}/${slot}/increments`, { body: { by: 3 } })).toMatchObject({
          status: 200,
          body: { count: 10 },
        });
        await all((page) => operator('POST', page), `/api/operations/verify/${entity}?top=3`, 'findings');
        expect((await hr('DELETE', path)).status).toBe(204);
        expect((await hr('GET', path)).status).toBe(404);
      }),
      sampleRuns(15),
    );
  });

  test('can be deleted when a client has filled it up', { tags: ['slow'] }, async () => {
    const full = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`P${index}`, { value: index }]));
    expect(await add(entity, rows[0], { ...full, Count001: { value: -5 } })).toBe(true);
    const found = await all((page) => operator('POST', page), `/api/operations/verify/${entity}`, 'findings');
    expect(found).toMatchObject([{ kind: 'invalid', of: entity, reason: 'The property Count001 is not a count.' }]);
    expect((await hr('DELETE', path)).status).toBe(204);
    expect((await hr('DELETE', path)).status).toBe(404);
  });
});
