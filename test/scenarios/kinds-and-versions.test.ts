import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineUnion } from '../../lib/define.ts';
import { people } from '../fixtures/model.ts';
import { withoutReferences } from '../openapi.ts';
import { useProduct } from '../product.ts';

/** Several kinds of an entity in one table, and rows of an earlier version of the declaration. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');

const ann = { kind: 'employee', country: 'UK', personId: 'e-1', firstName: 'Ann', lastName: 'Lee', jobTitle: 'Buyer' };
const bob = {
  kind: 'customer',
  country: 'UK',
  personId: 'c-1',
  firstName: 'Bob',
  companyName: 'Northwind',
  discount: 0.1,
};

describe('people of two kinds', () => {
  test('are written with their own fields, and read together by one query', async () => {
    for (const person of [ann, bob]) expect((await hr('POST', '/api/people', { body: person })).status).toBe(201);
    const all = await reader('GET', '/api/people/UK');
    expect(all.body.items).toEqual([bob, ann]);
    expect(all.headers.get('server-timing')).toContain('"1 transaction"');
    expect((await reader('GET', '/api/people/UK?kind=customer')).body.items).toEqual([bob]);
    expect((await reader('GET', '/api/people/UK/e-1')).body).toEqual(ann);
    const row = await product.storage.table('people').getEntity('UK', 'e-1');
    expect(row).toMatchObject({ EntityType: 'people', EntityVersion: 2, kind: 'employee' });
  });

  test.each([
    ['a field of the other kind', { ...ann, personId: 'x', companyName: 'Northwind' }, 'companyName'],
    ['no kind', { ...ann, personId: 'x', kind: undefined }, 'kind'],
    ['a kind that there is not', { ...ann, personId: 'x', kind: 'supplier' }, 'kind'],
    ['less than its kind needs', { ...bob, personId: 'x', companyName: undefined }, 'companyName'],
  ])('are rejected with %s', async (_, body, field) => {
    expect(await hr('POST', '/api/people', { body })).toMatchObject({ status: 400, body: { field } });
    expect((await reader('GET', '/api/people/UK/x')).status).toBe(404);
  });

  test('can change their kind only to a complete one', async () => {
    const body = { kind: 'customer', companyName: 'Own' };
    expect(await hr('PATCH', '/api/people/UK/e-1', { body })).toMatchObject({
      status: 400,
      body: { field: 'jobTitle' },
    });
    const changed = await hr('PATCH', '/api/people/UK/e-1', { body: { ...body, jobTitle: null } });
    expect(changed.body).toEqual({
      kind: 'customer',
      country: 'UK',
      personId: 'e-1',
      firstName: 'Ann',
      lastName: 'Lee',
      companyName: 'Own',
    });
  });

  test('are typed and described by their kind', { tags: ['slow'] }, async () => {
    const person = people.union.parse(bob);
    if (person.kind === 'customer') expectTypeOf(person.companyName).toEqualTypeOf<string>();
    // @ts-expect-error a person that may be an employee has no company
    expect(person.companyName).toBe('Northwind');
    const { paths } = withoutReferences((await reader('GET', '/api/openapi.json')).body);
    const { get } = paths['/api/people/{country}/{personId}'];
    const ofAll = { kind: { type: 'string', enum: ['employee', 'customer'] }, companyName: {}, jobTitle: {} };
    const shown = get.responses[200].content['application/json'].schema;
    expect(shown).toMatchObject({ type: 'object', properties: ofAll });
    // What each kind requires is told by `if` and `else`, which generators of clients skip.
    const sent = paths['/api/people'].post.requestBody.content['application/json'].schema;
    const [one, other] = [sent.if, sent.else].map((rules) => [rules.properties.kind.const, rules.propertyNames.enum]);
    expect(sent).toMatchObject({ type: 'object', properties: ofAll });
    expect(one).toEqual(['employee', expect.arrayContaining(['jobTitle'])]);
    expect(other).toEqual(['customer', expect.arrayContaining(['companyName'])]);
  });

  test('must agree on the type of a field', () => {
    const kinds = { one: z.object({ size: z.number() }), two: z.object({ size: z.string() }) };
    const declaration = {
      schema: z.object({ id: z.string() }),
      kinds,
      table: 'things',
      access: { read: [], write: [] },
    } as const;
    expect(() => defineUnion('things', { ...declaration, key: { partition: '{id}', row: 'x' } })).toThrow(
      'the kind "two" declares the field "size", which another kind declares with another type',
    );
  });
});

describe('a row of an earlier version', () => {
  test('is upgraded when read by key, in a range and with a projection, and when written', async () => {
    const table = product.storage.table('people');
    const old = {
      partitionKey: 'US',
      rowKey: 'e-2',
      country: 'US',
      personId: 'e-2',
      kind: 'employee',
      name: 'Cy van Dyke',
      jobTitle: 'Clerk',
      EntityType: 'people',
      EntityVersion: 1,
      WriteId: 'w',
      Incarnation: 'i',
    };
    await table.createEntity(old);
    const upgraded = {
      kind: 'employee',
      country: 'US',
      personId: 'e-2',
      firstName: 'Cy',
      lastName: 'van Dyke',
      jobTitle: 'Clerk',
    };
    expect((await reader('GET', '/api/people/US/e-2')).body).toEqual(upgraded);
    expect((await reader('GET', '/api/people/US')).body.items).toEqual([upgraded]);
    expect((await reader('GET', '/api/people/US?select=lastName')).body.items).toEqual([{ lastName: 'van Dyke' }]);
    expect(await table.getEntity('US', 'e-2')).toMatchObject({ EntityVersion: 1 });
    const changed = await hr('PATCH', '/api/people/US/e-2', { body: { jobTitle: 'Boss' } });
    expect(changed.body).toEqual({ ...upgraded, jobTitle: 'Boss' });
    const row = await table.getEntity('US', 'e-2');
    expect(row).toMatchObject({ EntityVersion: 2, firstName: 'Cy' });
    expect(row.name).toBeUndefined();
  });

  test('is found by a filter on its upgraded field, page by page, among others that do not match', {
    tags: ['slow'],
  }, async () => {
    const person = { country: 'NO', kind: 'customer', companyName: 'Berg' };
    const names = ['Ann Berg', 'Bo Berg', 'Ann Dahl', 'Annika Berg'];
    const system = { EntityType: 'people', EntityVersion: 1, WriteId: 'w', Incarnation: 'i' };
    for (const [index, name] of names.entries()) {
      const key = { partitionKey: 'NO', rowKey: `c-${index}`, personId: `c-${index}` };
      await product.storage.table('people').createEntity({ ...person, ...key, ...system, name });
    }
    for (const firstName of ['Ann', 'Bo'])
      await hr('POST', '/api/people', { body: { ...person, firstName, lastName: 'New', personId: `n-${firstName}` } });
    const find = async (query: string) => {
      const found: string[] = [];
      for (let next: string | undefined = `/api/people/NO?${query}`; next; ) {
        const { body, headers } = await reader('GET', next);
        found.push(...body.items.map(({ personId }: { personId: string }) => personId));
        next = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
      }
      return found;
    };
    for (const top of ['', '&top=1', '&top=2']) {
      expect(await find(`firstName=Ann${top}`)).toEqual(['c-0', 'c-2', 'n-Ann']);
      expect(await find(`firstName=Ann&lastName=Berg${top}`)).toEqual(['c-0']);
      expect(await find(`kind=employee${top}`)).toEqual([]);
    }
  });
});
