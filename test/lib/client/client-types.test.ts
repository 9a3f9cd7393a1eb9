import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  type ArchiveClient,
  createClient,
  type EntityClient,
  type Explanation,
  type Listing,
  type Operation,
} from '../../../lib/client/index.ts';
import { defineEntity, type Store } from '../../../lib/index.ts';
import type { model } from '../../fixtures/model.ts';

/** Only the compiler checks these: npm run types. */

type Model = typeof model;
type Stores = Store<Model['entities']>;
const client = createClient<Model>({ url: 'https://rowkey.example/api' });
const key = { department: 'Sales', employeeId: '000123' };

type Found<Call extends (...parameters: never[]) => unknown> = Awaited<ReturnType<Call>>;

test('the client returns what the store returns', () => {
  type Own = typeof client.employees;
  type Same = Stores['employees'];
  expectTypeOf<Found<Own['get']>>().toEqualTypeOf<Found<Same['get']>>();
  expectTypeOf<Found<Own['create']>>().toEqualTypeOf<Found<Same['create']>>();
  expectTypeOf<Parameters<Own['create']>[0]>().toEqualTypeOf<Parameters<Same['create']>[0]>();
  expectTypeOf<Parameters<Own['update']>[1]>().toEqualTypeOf<Parameters<Same['update']>[1]>();
  expectTypeOf<keyof Own['by']>().toEqualTypeOf<keyof Same['by']>();
  expectTypeOf<Found<Own['by']['emailCompanyWide']>>().toEqualTypeOf<Found<Same['by']['emailCompanyWide']>>();
  expectTypeOf<Found<Own['files']['photo']['get']>>().toEqualTypeOf<Found<Same['files']['photo']['get']>>();
  expectTypeOf<keyof Own['files']>().toEqualTypeOf<keyof Same['files']>();
  expectTypeOf<Found<(typeof client.messagehours)['get']>>().toEqualTypeOf<Found<Stores['messagehours']['get']>>();
});

test('an update returns the entity, or only its ETag', () => {
  expectTypeOf(() => client.employees.update(key, {})).returns.resolves.toHaveProperty('values');
  const minimal = () => client.employees.update(key, {}, { return: 'minimal' });
  expectTypeOf(minimal).returns.resolves.toEqualTypeOf<{ readonly etag: string }>();
});

test('an index returns a list or an entity, as declared', () => {
  const many = () => client.employees.by.lastName({ department: 'Sales', lastName: 'Li' }, { select: ['email'] });
  expectTypeOf(many).returns.toEqualTypeOf<Listing<{ email: string }>>();
  const range = () => client.employees.by.hireDate.range({ department: 'Sales' }, { from: '2020', first: 3 });
  expectTypeOf(range).returns.toExtend<AsyncIterable<{ email: string }>>();
});

test('a read has the selected fields, of children too', () => {
  const read = () => client.employees.get(key, { include: ['reviews'], select: ['email', 'reviews.year'] });
  expectTypeOf<NonNullable<Found<typeof read>>['values']>().toEqualTypeOf<{
    email: string;
    reviews: readonly { year: number }[];
  }>();
});

test('a page has the selected fields', () => {
  const page = () => client.employees.range({ department: 'Sales' }, { select: ['email', 'age'] }).page();
  expectTypeOf<Found<typeof page>['items'][number]>().toEqualTypeOf<{ email: string; age?: number | undefined }>();
});

test('a query returns what its reads would', async () => {
  const query = () =>
    client.query(({ employees }) => ({
      me: employees.get(key, { include: ['reviews'], select: ['email', 'reviews.year'] }),
      team: employees.range({ department: 'Sales' }, { select: ['email'] }),
      byMail: employees.by.emailCompanyWide({ email: '' }, { select: ['email'] }),
      hired: employees.by.hireDate.range({ department: 'Sales' }, { from: '2020' }),
    }));
  type Results = Found<typeof query>;
  type Value<Name extends keyof Results> = Exclude<Results[Name]['value'], undefined>;
  expectTypeOf<Value<'me'>['values']>().toEqualTypeOf<{ email: string; reviews: readonly { year: number }[] }>();
  expectTypeOf<Value<'team'>['items'][number]>().toEqualTypeOf<{ email: string }>();
  expectTypeOf<Value<'byMail'>>().toEqualTypeOf<{ email: string }>();
  expectTypeOf<Value<'hired'>['items'][number]>().toHaveProperty('lastName');
  expectTypeOf(() => client.explain.query(() => ({}))).returns.resolves.toEqualTypeOf<Explanation>();
});

test('only a lookup table is listed as a whole', () => {
  const list = () => client.currencies.list({ select: ['currency'] });
  expectTypeOf(list).returns.toEqualTypeOf<Listing<{ currency: string }>>();
  const query = () => client.query(({ currencies }) => ({ all: currencies.list({ select: ['currency'] }) }));
  expectTypeOf<NonNullable<Found<typeof query>['all']['value']>['items'][number]>().toEqualTypeOf<{
    currency: string;
  }>();
});

test('totals, archives and groups of fields have the types of the store', () => {
  type Own = typeof client.sales.totals.byMonth;
  type Same = Stores['sales']['totals']['byMonth'];
  expectTypeOf<Found<Own['get']>>().toEqualTypeOf<Found<Same['get']>>();
  expectTypeOf<Parameters<Own['range']>[0]>().toEqualTypeOf<Parameters<Same['range']>[0]>();
  expectTypeOf<Found<typeof client.employees.archived.get>>().toEqualTypeOf<Found<Stores['employees']['get']>>();
  const withText = () => client.products.get({ categoryId: 1, productId: 1 }, { include: ['text'] });
  expectTypeOf<NonNullable<Found<typeof withText>>['values']['description']>().toEqualTypeOf<string | undefined>();
});

test('an archived entity has the type of its archive', () => {
  const people = {
    schema: z.object({ city: z.string(), personId: z.string(), name: z.string(), phone: z.string() }),
    table: 'people',
    key: { partition: '{city}', row: '{personId}' },
    access: { read: ['hr'], write: ['hr'] },
  } as const;
  const declare = () => defineEntity('people', { ...people, archive: { table: 'formerpeople', without: ['phone'] } });
  const key = { city: 'Oslo', personId: '1' };
  const get = (of: ArchiveClient<ReturnType<typeof declare>, Record<never, never>>) => of.get(key);
  expectTypeOf<NonNullable<Found<typeof get>>['values']>().toEqualTypeOf<{
    city: string;
    personId: string;
    name: string;
  }>();
  // @ts-expect-error the schema has no such field
  expectTypeOf(() => defineEntity('people', { ...people, archive: { table: 'formerpeople', without: ['fax'] } }));
});

test('files, operations, explanations and conflicts are typed', () => {
  expectTypeOf<keyof typeof client.employees.files>().toEqualTypeOf<'photo'>();
  expectTypeOf<Found<typeof client.employees.archive>>().toEqualTypeOf<Operation>();
  expectTypeOf<Found<typeof client.explain.employees.get>>().toEqualTypeOf<Explanation>();
  expectTypeOf<Found<typeof client.explain.employees.by.hireDate.range>>().toEqualTypeOf<Explanation>();
  const onError = (error: unknown) => {
    if (client.employees.isConflict(error)) return error.current?.values.email;
    return undefined;
  };
  expectTypeOf(onError).returns.toEqualTypeOf<string | undefined>();
});

test('an update names the changed members of an object, and null for those that it removes', () => {
  const declare = () =>
    defineEntity('people', {
      schema: z.object({
        city: z.string(),
        personId: z.string(),
        home: z.object({ street: z.string(), geo: z.object({ lat: z.number(), lon: z.number() }).optional() }),
        pets: z.array(z.object({ name: z.string(), age: z.number() })).optional(),
        phones: z.record(z.string(), z.string()).optional(),
        free: z.json().optional(),
      }),
      table: 'people',
      key: { partition: '{city}', row: '{personId}' },
      access: { read: ['hr'], write: ['hr'] },
    });
  type People = { people: ReturnType<typeof declare> };
  type Changed = Parameters<EntityClient<People['people'], People>['update']>[1];
  expectTypeOf<Parameters<Store<People>['people']['update']>[1]>().toEqualTypeOf<Changed>();
  expectTypeOf<{ home: { street: string } }>().toExtend<Changed>();
  expectTypeOf<{ home: { geo: { lat: 1 } } }>().toExtend<Changed>();
  expectTypeOf<{ home: { geo: null } }>().toExtend<Changed>();
  expectTypeOf<{ home: null; free: { a: { b: null } }; phones: { work: null; home: '1' } }>().toExtend<Changed>();
  expectTypeOf<{ free: 'text' }>().toExtend<Changed>();
  expectTypeOf<{ home: { geo: { lat: string } } }>().not.toExtend<Changed>();
  expectTypeOf<{ pets: [{ name: string }] }>().not.toExtend<Changed>();
  // @ts-expect-error no member has this name
  const misspelt: Changed = { home: { stret: 'x' } };
  expectTypeOf(misspelt).toExtend<Changed>();
});

test('misspelt names do not compile', () => {
  // @ts-expect-error no entity has this name
  void client.employee;
  // @ts-expect-error no index has this name
  void client.employees.by.emails;
  // @ts-expect-error no file has this name
  void client.employees.files.portrait;
  // @ts-expect-error the key has no field of this name
  void (() => client.employees.get({ department: 'Sales', id: '1' }));
  // @ts-expect-error no field has this name
  void (() => client.employees.update(key, { colour: 'red' }));
  // @ts-expect-error an encrypted field can only be replaced with its entity
  void (() => client.employees.update(key, { nationalId: '1' }));
  // @ts-expect-error no totals have this name
  void client.sales.totals.byYear;
  // @ts-expect-error an archive is written only by archiving
  void client.employees.archived.update;
  // @ts-expect-error a query has no field of this name
  void (() => client.query(({ employees }) => ({ me: employees.get(key, { select: ['colour'] }) })));
  // @ts-expect-error not a lookup table
  void client.employees.list;
  // @ts-expect-error a data series has no reads in a query
  void (() => client.query(({ messagehours }) => ({ hours: messagehours })));
  // @ts-expect-error only some entities have own rows in the list of entities
  void (() => createClient<Model>({ url: '', direct: ['nobody'] }));
});

test('a transaction has the actions of the store, and its explanation is one', () => {
  expectTypeOf<Parameters<typeof client.transact>[0]>().toEqualTypeOf<Parameters<Stores['transact']>[0]>();
  expectTypeOf<Found<typeof client.transact>>().toEqualTypeOf<Found<Stores['transact']>>();
  expectTypeOf<Found<typeof client.explain.transact>>().toEqualTypeOf<Explanation>();
});
