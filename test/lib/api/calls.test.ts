import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  createRowkey,
  defineEntity,
  defineSeries,
  type Input,
  type Listing,
  type Output,
  type Patch,
  RowkeyError,
  type Stored,
} from '../../../lib/index.ts';
import { model } from '../../fixtures/writers.ts';
import type { Replacement } from '../../kit/api.ts';

const { store } = createRowkey({ model, refusal: new RowkeyError('wrong-setting', 'Nothing is opened.') });
type Store = typeof store;
type Values<Call> = Call extends (...parameters: never[]) => Promise<infer Result>
  ? NonNullable<Result> extends Stored<infer Fields>
    ? Fields
    : Result
  : never;

test('has an entity store for each name of the model and no others', () => {
  expectTypeOf<Exclude<keyof Store, 'as' | 'transact'>>().toEqualTypeOf<
    'writers' | 'books' | 'notes' | 'media' | 'visits' | 'charts' | 'drafts'
  >();
  // @ts-expect-error no entity has this name
  void store.writer;
});

test('reads the output of the schema by the full key', () => {
  expectTypeOf<Parameters<Store['writers']['get']>[0]>().toEqualTypeOf<{
    readonly country: string;
    readonly writerId: string;
  }>();
  type Read = Values<Store['writers']['get']>;
  expectTypeOf<Read['tags']>().toEqualTypeOf<string[]>();
  expectTypeOf<Read['iban']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<NonNullable<Read['portrait']>['bytes']>().toEqualTypeOf<number>();
  // @ts-expect-error no field has this name
  expectTypeOf<Read['emial']>();
  // @ts-expect-error the key has another field
  void (() => store.writers.get({ country: 'NO' }));
  // @ts-expect-error the key has no such field
  void (() => store.writers.get({ country: 'NO', writerId: '1', writer: '2' }));
  // @ts-expect-error the year is a number
  void (() => store.books.get({ country: 'NO', writerId: '1', year: '2026' }));
});

test('reads entities and ranges as of an instant', () => {
  const at = '2026-11-29T12:00:00Z';
  const read = () => store.writers.get({ country: 'NO', writerId: '1' }, { at, select: ['iban'] });
  expectTypeOf<Values<typeof read>['iban']>().toEqualTypeOf<string | undefined>();
  void (() => store.writers.range({ country: 'NO' }, { at }).page());
  // @ts-expect-error an instant is a text
  void (() => store.writers.get({ country: 'NO', writerId: '1' }, { at: new Date() }));
  // @ts-expect-error an index is not in a backup
  void (() => store.writers.by.iban({ iban: 'x' }, { at }));
});

test('includes children by name', () => {
  const read = () => store.writers.get({ country: 'NO', writerId: '1' }, { include: ['books'] });
  expectTypeOf<Values<typeof read>['books'][number]['year']>().toEqualTypeOf<number>();
  // @ts-expect-error media are not children of writers
  void (() => store.writers.get({ country: 'NO', writerId: '1' }, { include: ['media'] }));
});

test('creates from the input of the schema without derived fields', () => {
  type Create = Parameters<Store['writers']['create']>[0];
  expectTypeOf<Create['tags']>().toEqualTypeOf<string[] | undefined>();
  expectTypeOf<keyof Create>().toEqualTypeOf<
    'country' | 'writerId' | 'email' | 'age' | 'tags' | 'bookCount' | 'iban' | 'biography'
  >();
  // @ts-expect-error a required field is missing
  void (() => store.writers.create({ country: 'NO', writerId: '1' }));
  // @ts-expect-error a derived field is not written
  void (() => store.writers.create({ country: 'NO', writerId: '1', email: 'a', initials: 'AB' }));
});

test('creates without a field that has a computed default, and reads it', () => {
  const films = defineEntity('films', {
    schema: z.object({ title: z.string(), filmId: z.string(), slug: z.string() }),
    table: 'films',
    key: { partition: '{title}', row: '{filmId}' },
    defaults: { filmId: ({ title }) => title, slug: ({ title }) => title },
    access: { read: ['reader'], write: ['hr'] },
  });
  expectTypeOf<Input<typeof films>>().toEqualTypeOf<{
    title: string;
    filmId?: string;
    slug?: string;
  }>();
  expectTypeOf<Output<typeof films>['filmId']>().toEqualTypeOf<string>();
  expectTypeOf<Replacement<typeof films>>().toEqualTypeOf<{ slug?: string }>();
  expectTypeOf<Patch<typeof films>>().toEqualTypeOf<{ readonly slug?: string | null }>();
});

test('updates every field except key fields and encrypted ones, and removes a field with null', () => {
  type Patch = Parameters<Store['writers']['update']>[1];
  expectTypeOf<Patch['age']>().toEqualTypeOf<number | null | undefined>();
  expectTypeOf<keyof Patch>().toEqualTypeOf<'email' | 'age' | 'tags' | 'bookCount' | 'biography'>();
  // @ts-expect-error no option has this name
  void (() => store.writers.update({ country: 'NO', writerId: '1' }, { age: 1 }, { ifmatch: '*' }));
});

test('lists large and encrypted fields as optional and nullable, and returns only selected fields', () => {
  type Item<Of> = Of extends Listing<infer Each> ? Each : never;
  const whole = () => store.writers.range({ country: 'NO' });
  expectTypeOf<Item<ReturnType<typeof whole>>['biography']>().toEqualTypeOf<string | null | undefined>();
  const some = () => store.writers.range({ country: 'NO' }, { from: 'a', select: ['email', 'age'] });
  expectTypeOf<Item<ReturnType<typeof some>>>().toEqualTypeOf<{ email: string; age?: number | undefined }>();
  // @ts-expect-error no field has this name
  void (() => store.writers.range({ country: 'NO' }, { select: ['emial'] }));
  // @ts-expect-error the partition is chosen by another field
  void (() => store.writers.range({ writerId: '1' }));
  // @ts-expect-error storage cannot compare encrypted fields
  void (() => store.writers.range({ country: 'NO' }, { where: { iban: '1' } }));
});

test('reads through each index by its fields', () => {
  type By = Store['writers']['by'];
  const read = () => store.writers.get({ country: 'NO', writerId: '1' });
  expectTypeOf<Parameters<By['email']>[0]>().toEqualTypeOf<{ readonly email: string }>();
  expectTypeOf<Awaited<ReturnType<By['email']>>>().toEqualTypeOf<Values<typeof read> | undefined>();
  expectTypeOf<Parameters<By['nickname']>[0]>().toEqualTypeOf<{ readonly country: string; readonly email: string }>();
  expectTypeOf<ReturnType<By['nickname']>>().toEqualTypeOf<ReturnType<By['email']>>();
  expectTypeOf<Parameters<By['byAge']>[0]>().toEqualTypeOf<{ readonly country: string; readonly age: number }>();
  expectTypeOf<Parameters<By['tag']>[0]>().toEqualTypeOf<{ readonly tags: string }>();
  expectTypeOf<Parameters<By['bucketed']>[0]>().toEqualTypeOf<{ readonly email: string }>();
  expectTypeOf<Parameters<By['list']>[0]>().toEqualTypeOf<{ readonly country: string; readonly email: string }>();
  const aged = () => store.writers.by.byAge({ country: 'NO', age: 40 });
  expectTypeOf<ReturnType<typeof aged>>().toEqualTypeOf<
    Listing<{ country: string; writerId: string; email: string }>
  >();
  // @ts-expect-error no index has this name
  void store.writers.by.emial;
  // @ts-expect-error the index reads by another field
  void (() => store.writers.by.email({ mail: 'a' }));
});

test('lists a range of an index by the fields of its partition key and the first ones of its row key', () => {
  const { by } = store.writers;
  const aged = () => by.byAge.range({ country: 'NO' }, { from: 18, to: 30, first: 10, order: 'ascending' });
  expectTypeOf<ReturnType<typeof aged>>().toEqualTypeOf<
    Listing<{ country: string; writerId: string; email: string }>
  >();
  void (() => by.byAge.range({ country: 'NO', age: 40 }, { prefix: 'a', select: ['email'] }));
  void (() => by.list.range({ country: 'NO' }, { from: 'a' }));
  void (() => by.tag.range({ tags: 'sea' }));
  // @ts-expect-error the partition key comes first
  void (() => by.byAge.range({ age: 40 }));
  // @ts-expect-error no field has this name
  void (() => by.byAge.range({ country: 'NO', aged: 40 }));
  // @ts-expect-error the country comes between the tag and the writer
  void (() => by.tag.range({ tags: 'sea', writerId: '1' }));
  // @ts-expect-error every field of the key is given
  void (() => by.byAge.range({ country: 'NO', age: 40, writerId: '1' }));
  // @ts-expect-error the bounds are values of the fields
  void (() => by.byAge.range({ country: 'NO' }, { from: true }));
  // @ts-expect-error no option has this name
  void (() => by.byAge.range({ country: 'NO' }, { form: 1 }));
  // @ts-expect-error a part copy does not have the field
  void (() => by.byAge.range({ country: 'NO' }, { select: ['tags'] }));
  // @ts-expect-error the partition key is a hash of the only field
  void by.email.range;
});

test('narrows an entity of several kinds by its kind', () => {
  const titleOf = async () => {
    const found = await store.media.get({ shelf: 'a', mediaId: '1' });
    return found?.values.kind === 'film' ? found.values.minutes : found?.values.band;
  };
  expectTypeOf<ReturnType<typeof titleOf>>().toEqualTypeOf<Promise<string | number | undefined>>();
  void (() => store.media.create({ shelf: 'a', mediaId: '1', kind: 'film', minutes: 90 }));
  // @ts-expect-error a film has no band
  void (() => store.media.create({ shelf: 'a', mediaId: '1', kind: 'film', band: 'a' }));
});

test('counts in a series', () => {
  expectTypeOf<keyof Store['visits']>().toEqualTypeOf<'get' | 'set' | 'increment' | 'delete'>();
  void (() => store.visits.increment({ page: 'a', day: '2026-11-22' }, 9, 1));
  // @ts-expect-error a series has no such key
  void (() => store.visits.get({ page: 'a' }));
});

test('reads a span of a series that declares one, by the rest of its key', () => {
  type Span = Store['charts']['span'];
  expectTypeOf<Parameters<Span>[0]>().toEqualTypeOf<{ readonly page: string }>();
  expectTypeOf<Awaited<ReturnType<Span>>[number]>().toEqualTypeOf<{ readonly at: string; readonly count: number }>();
  // @ts-expect-error the bounds replace the day
  void (() => store.charts.span({ page: 'a', day: '2026-11-22' }, { from: '2026', to: '2026' }));
  const parts = {
    schema: z.object({ page: z.string(), day: z.iso.date() }),
    table: 'charts',
    key: { partition: '{page}', row: '{day}' },
    slots: { name: 'hour', first: 0, last: 23 },
    access: { read: [], write: [] },
  } as const;
  // @ts-expect-error no such field is in the key
  void (() => defineSeries('charts', { ...parts, span: { field: 'date', per: 'day' } }));
});

test('creates an entity with expiry without its clock, which only the engine sets', () => {
  expectTypeOf<Parameters<Store['drafts']['create']>[0]>().toEqualTypeOf<{ shelf: string; draftId: string }>();
});

test('rejects a key template with a field that the schema does not have', () => {
  const key = { partition: '{shelf}', row: '{drafts}' } as const;
  const schema = z.object({ shelf: z.string(), draftId: z.string() });
  // @ts-expect-error "{drafts} is not a field of the schema"
  void (() => defineEntity('drafts', { schema, table: 'drafts', key, access: { read: [], write: [] } }));
});

test('returns only the selected fields of an entity and of its children', () => {
  const key = { country: 'NO', writerId: '1' };
  const some = () => store.writers.get(key, { select: ['email', 'age'] });
  expectTypeOf<Values<typeof some>>().toEqualTypeOf<{ email: string; age?: number | undefined }>();
  const both = () => store.writers.get(key, { include: ['books'], select: ['email', 'books.title'] });
  expectTypeOf<Values<typeof both>>().toEqualTypeOf<{ email: string; books: readonly { title: string }[] }>();
  const ofBooks = () => store.writers.get(key, { include: ['books'], select: ['books.title'] });
  expectTypeOf<Values<typeof ofBooks>['tags']>().toEqualTypeOf<string[]>();
  const byEmail = () => store.writers.by.email({ email: 'a' }, { select: ['age'] });
  expectTypeOf<NonNullable<Awaited<ReturnType<typeof byEmail>>>>().toEqualTypeOf<{ age?: number | undefined }>();
  // @ts-expect-error no field has this name
  void (() => store.writers.get(key, { select: ['emial'] }));
  // @ts-expect-error the children are not included
  void (() => store.writers.get(key, { select: ['books.title'] }));
});

test('compares fields with values of their types', () => {
  const key = { country: 'NO' };
  void (() => store.writers.range(key, { where: { age: { ge: 30, lt: 40 }, email: { in: ['a', 'b'] } } }));
  void (() => store.writers.by.byAge.range(key, { where: { email: { ne: 'a' } } }));
  void (() =>
    store.writers.get({ ...key, writerId: '1' }, { include: ['books'], where: { books: { year: { gt: 1 } } } }));
  // @ts-expect-error the field is a number
  void (() => store.writers.range(key, { where: { age: { ge: '30' } } }));
  // @ts-expect-error no operator has this name
  void (() => store.writers.range(key, { where: { age: { like: 30 } } }));
  // @ts-expect-error a list is stored as JSON
  void (() => store.writers.range(key, { where: { tags: ['a'] } }));
  // @ts-expect-error the copies do not have the field
  void (() => store.writers.by.byAge.range(key, { where: { initials: 'a' } }));
});

test('transacts by the names, fields and actions of the entities', () => {
  const writer = { country: 'NO', writerId: '1', email: 'a', firstName: 'A', lastName: 'B' };
  type Actions = Parameters<Store['transact']>[0];
  type Named = Extract<Actions[number], { readonly books: unknown }>['books'];
  expectTypeOf<Named>().toEqualTypeOf<Parameters<Store['books']['batch']>[0][number]>();
  void (() => store.transact([{ books: { delete: { country: 'NO', writerId: '1', year: 1 } } }], { requestId: '1' }));
  // @ts-expect-error no entity has this name
  void (() => store.transact([{ writer: { create: writer } }]));
  // @ts-expect-error the key has another field
  void (() => store.transact([{ books: { delete: { country: 'NO', writerId: '1' } } }]));
  // @ts-expect-error no field has this name
  void (() => store.transact([{ books: { patch: { country: 'NO', writerId: '1', year: 1, titel: 'T' } } }]));
  // @ts-expect-error a data series has no actions
  void (() => store.transact([{ visits: { delete: { page: 'a', day: '2026-11-20' } } }]));
});
