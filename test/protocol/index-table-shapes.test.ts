import { randomUUID } from 'node:crypto';
import { createDefaultHttpClient, type PipelineRequest } from '@azure/core-rest-pipeline';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineUnion,
  type InterPartitionIndex,
  type IntraPartitionIndex,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../lib/index.ts';
import { allPages } from '../all-pages.ts';
import { costOf } from '../cost-of.ts';
import { deploy } from '../fixtures/deploy.ts';
import { customers, movies, orders } from '../fixtures/model.ts';
import { type CopyIndex, definePlaces, type Entity } from '../kit/define.ts';
import { engineRead, engineWrite, type Position } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { storageRows } from '../kit/storage.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../world.ts';

const byId = customers.indexes.id as InterPartitionIndex;
const byCityAndLastName = customers.indexes.cityAndLastName as InterPartitionIndex;
const byActor = movies.indexes.actor as InterPartitionIndex;
const byDate = orders.indexes.date as InterPartitionIndex;

const slug = ({ title }: Values) => String(title).trim().toLowerCase().replaceAll(' ', '-') || undefined;
const titled = z.object({ title: z.string(), slug: z.string().max(10) });
const { pages, posts } = deploy(
  defineEntity('pages', {
    schema: titled.extend({ id: z.string() }),
    table: 'pages',
    key: { partition: '{id}', row: 'page' },
    defaults: { slug },
    access: { read: ['hr'], write: ['hr'] },
  }),
  defineUnion('posts', {
    schema: titled,
    kinds: { text: z.object({ body: z.string() }), link: z.object({ url: z.string() }) },
    table: 'posts',
    key: { partition: '{slug}', row: 'post' },
    defaults: { slug },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

/** Its copies have keys that an entity can have, too. */
const { contacts } = deploy(
  defineEntity('contacts', {
    schema: z.object({ book: z.string(), id: z.string(), email: z.string() }),
    table: 'contacts',
    key: { partition: '{book}', row: '{id}' },
    indexes: { email: intraPartitionIndex({ row: 'email_{email}' }) },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

/** Two versions; the upgrade uses fields that the partial copies lack. */
const [drivers, upgradedDrivers] = ([1, 2] as const).map((version) => {
  const upgrade = ({ name, seats, ...old }: Values): Values => {
    if (typeof name !== 'string' || typeof seats !== 'number') throw new Error('A part of an entity was upgraded.');
    return { ...old, name, seats: seats + 1, region: name.toUpperCase() };
  };
  const { drivers } = deploy(
    defineEntity('drivers', {
      schema: z.object({
        city: z.string(),
        id: z.string(),
        name: z.string(),
        plate: z.string(),
        seats: z.int32(),
        region: z.string().optional(),
      }),
      table: 'drivers',
      key: { partition: '{city}', row: '{id}' },
      indexes: {
        name: intraPartitionIndex({ row: 'name_{name}_{id}', copies: ['seats', 'region'] }),
        plate: interPartitionIndex({
          table: 'driversbyplate',
          partition: '{plate}',
          row: '{plate}',
          unique: true,
          copies: ['seats'],
        }),
        all: interPartitionIndex({ table: 'alldrivers', partition: 'all', row: '{city}_{id}' }),
      },
      version,
      ...(version === 1 ? {} : { upgrades: { 1: upgrade } }),
      access: { read: ['hr'], write: ['hr'] },
    }),
  );
  return drivers;
}) as readonly Entity[] as readonly [Entity, Entity];

const world = await openWorld(import.meta.url, [contacts, upgradedDrivers, pages, posts]);

let counter = 0;
async function customer(over: Values = {}) {
  counter += 1;
  const { values } = await engineWrite.createEntity(world.engine, customers, {
    city: 'London',
    customerId: `C${counter}`,
    companyName: 'Co',
    contactName: 'Ann Devon',
    ...over,
  });
  return values;
}

describe('a full copy under a composite key', () => {
  test('returns all of a city and last name in one transaction, and none with a longer name', async () => {
    const devons = [await customer(), await customer()];
    await customer({ contactName: 'Ann Devonshire' });
    await customer({ city: 'Paris' });
    await customer({ contactName: undefined });
    await world.settle();
    expect(definePlaces.indexFields(customers, byCityAndLastName)).toEqual(['city', 'lastName']);
    const given = { city: 'London', lastName: 'Devon' };
    const { items } = await engineRead.readByCopies(world.engine, customers, byCityAndLastName, given, { top: 10 });
    expect(items).toEqual(devons);
    expect(
      await costOf(() => engineRead.readByCopies(world.engine, customers, byCityAndLastName, given, { top: 10 })),
    ).toBe(1);
    const first = await engineRead.readByCopies(world.engine, customers, byCityAndLastName, given, { top: 1 });
    const second = await engineRead.readByCopies(world.engine, customers, byCityAndLastName, given, {
      top: 1,
      after: first.next,
    });
    expect([...first.items, ...second.items]).toEqual(devons);
    await expectIndexesToAgree(world.storage, customers);
  });
});

describe('a derived field', () => {
  test('cannot be set, follows each change, and updates the index', async () => {
    const one = await customer({ contactName: 'Bo Follow' });
    expect(one.lastName).toBe('Follow');
    await expect(engineWrite.patchEntity(world.engine, customers, one, { lastName: 'Mine' })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'lastName',
    });
    const { values } = await engineWrite.patchEntity(world.engine, customers, one, { contactName: 'Bo Led' });
    expect(values.lastName).toBe('Led');
    // A client may send back an entity as it was read.
    expect(
      (await engineWrite.replaceEntity(world.engine, customers, one, { ...values, phone: '1' })).values,
    ).toMatchObject({
      lastName: 'Led',
      phone: '1',
    });
    await world.settle();
    await expectIndexesToAgree(world.storage, customers);
    await engineWrite.patchEntity(world.engine, customers, one, { contactName: null });
    await world.settle();
    expect((await engineRead.readEntity(world.engine, customers, one)).values.lastName).toBeUndefined();
    await expectIndexesToAgree(world.storage, customers);
  });
});

describe('a default that is computed from other fields', () => {
  const names = fc.array(fc.constantFrom('Ann', 'Bo', 'Cy', 'Di'), { maxLength: 4 });
  const own = fc.option(fc.constantFrom('mine', 'yours'), { nil: undefined });
  let year = 1900;

  test('makes the key of a new film, which stays whatever is written afterwards', { tags: ['slow'] }, async () => {
    await fc.assert(
      fc.asyncProperty(names, fc.array(names, { minLength: 1, maxLength: 2 }), own, async (cast, changes, filmId) => {
        year += 1;
        const film = { title: 'Any', year, genres: ['Noir'], cast, ...(filmId === undefined ? {} : { filmId }) };
        const { values } = await engineWrite.createEntity(world.engine, movies, film);
        expect(values.filmId).toBe(filmId ?? movies.defaults.filmId?.({ cast }));
        await expect(engineWrite.createEntity(world.engine, movies, film)).rejects.toMatchObject({
          code: 'duplicate-key',
        });
        for (const changed of changes) {
          const patched = await engineWrite.patchEntity(world.engine, movies, values, { cast: changed });
          expect(patched.values).toEqual({ ...values, cast: changed });
          const body = { title: 'Any', genres: ['Noir'], cast: [...changed, 'Ed'] };
          const replaced = await engineWrite.replaceEntity(world.engine, movies, values, body);
          expect(replaced.values).toEqual({ ...values, cast: body.cast });
        }
        // The row of a file is the film as it was created, so it replaces this film, and then changes nothing.
        const outcomes = () => engineWrite.writeBatch(world.engine, movies, [{ put: film }]);
        expect(await outcomes()).toMatchObject([{ outcome: 'stored' }]);
        expect(await outcomes()).toMatchObject([{ outcome: 'unchanged' }]);
        expect((await engineRead.readEntity(world.engine, movies, values)).values).toEqual(values);
      }),
      { numRuns: 15 },
    );
    await world.settle();
    await expectIndexesToAgree(world.storage, movies);
  });

  test('is not computed for a patch, and again for a whole entity without the field or a field set to null', async () => {
    const { values } = await engineWrite.createEntity(world.engine, pages, { id: '1', title: 'A B' });
    expect(values).toEqual({ id: '1', title: 'A B', slug: 'a-b' });
    expect((await engineWrite.patchEntity(world.engine, pages, values, { title: 'C' })).values.slug).toBe('a-b');
    expect((await engineWrite.patchEntity(world.engine, pages, values, { slug: null })).values.slug).toBe('c');
    expect((await engineWrite.replaceEntity(world.engine, pages, values, { title: 'D' })).values.slug).toBe('d');
    expect(
      (await engineWrite.replaceEntity(world.engine, pages, values, { title: 'E', slug: 'own' })).values.slug,
    ).toBe('own');
  });

  test('must be valid for the field, and the caller can send another value', async () => {
    const long = { id: '2', title: 'x'.repeat(11) };
    await expect(engineWrite.createEntity(world.engine, pages, long)).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'slug',
    });
    await expect(engineWrite.createEntity(world.engine, pages, { id: '2', title: ' ' })).rejects.toMatchObject({
      field: 'slug',
    });
    await expect(engineWrite.createEntity(world.engine, pages, { id: '2', title: 1 })).rejects.toMatchObject({
      field: 'title',
    });
    expect((await engineWrite.createEntity(world.engine, pages, { ...long, slug: 'x' })).values.slug).toBe('x');
  });

  test('belongs to every kind of an entity', async () => {
    const { values } = await engineWrite.createEntity(world.engine, posts, { kind: 'text', title: 'A B', body: 'c' });
    expect(values).toEqual({ kind: 'text', title: 'A B', body: 'c', slug: 'a-b' });
    expect((await engineWrite.patchEntity(world.engine, posts, values, { title: 'C' })).values.slug).toBe('a-b');
    await expect(engineWrite.createEntity(world.engine, posts, { kind: 'text', title: 'A B' })).rejects.toMatchObject({
      field: 'body',
    });
  });

  test('costs a create that may be repeated no record of its key', async () => {
    const film = { title: 'Once', genres: ['Noir'], cast: ['Ann'] };
    await engineWrite.createOnce(world.engine, movies, { ...film, year: 1900 }, randomUUID());
    const id = randomUUID();
    const create = () => engineWrite.createOnce(world.engine, movies, { ...film, year: 1901 }, id);
    const given = { ...film, filmId: 'own', year: 1902 };
    expect(await costOf(create)).toBe(
      await costOf(() => engineWrite.createOnce(world.engine, movies, given, randomUUID())),
    );
    const { values } = await create();
    await engineWrite.patchEntity(world.engine, movies, values, { cast: ['Bo'] });
    expect((await create()).values).toEqual({ ...values, cast: ['Bo'] });
  });
});

describe('a reference only', () => {
  test('holds only the key, takes two lookups, and never returns stale fields', async () => {
    const one = await customer({ phone: '030' });
    await world.settle();
    const row = (await rowsOf(world.storage, 'customersbyid')).find(({ rowKey }) => rowKey === one.customerId);
    expect(row).toMatchObject({ city: 'London', customerId: one.customerId });
    expect(row).not.toHaveProperty('phone');
    expect(await engineRead.readByCopy(world.engine, customers, byId, one)).toEqual(one);
    expect(await costOf(() => engineRead.readByCopy(world.engine, customers, byId, one))).toBe(2);
    const { values } = await engineWrite.patchEntity(world.engine, customers, one, { phone: '031' });
    expect(await engineRead.readByCopy(world.engine, customers, byId, one)).toEqual(values);
    await engineWrite.deleteEntity(world.engine, customers, one);
    await expect(engineRead.readByCopy(world.engine, customers, byId, one)).rejects.toMatchObject({
      code: 'not-found',
    });
  });
});

describe('a part copy for each element of a list', () => {
  test('finds a film by each of its actors, with the names of the others, and follows changes of the cast', async () => {
    const film = {
      title: 'The Kid',
      year: 1921,
      genres: ['Comedy', 'Drama'],
      cast: ['Charlie Chaplin', 'Jackie Coogan', 'Charlie Chaplin'],
    };
    const { values } = await engineWrite.createEntity(world.engine, movies, film);
    expect(values).toMatchObject({ ...film, genre: 'Comedy' });
    await engineWrite.createEntity(world.engine, movies, {
      title: 'Oliver Twist',
      year: 1922,
      genres: [],
      cast: ['Jackie Coogan'],
    });
    await engineWrite.createEntity(world.engine, movies, { title: 'Empty', year: 1923, genres: ['Drama'], cast: [] });
    await world.settle();
    await expectIndexesToAgree(world.storage, movies);
    const ofActor = (cast: string, top = 10) =>
      engineRead.readByCopies(world.engine, movies, byActor, { cast }, { top });
    expect(definePlaces.indexFields(movies, byActor)).toEqual(['cast']);
    const { items } = await ofActor('Jackie Coogan');
    expect(items.map(({ title, cast }) => [title, cast])).toEqual([
      ['The Kid', film.cast],
      ['Oliver Twist', ['Jackie Coogan']],
    ]);
    // The other fields are in the entity and not in the copy.
    expect(items[0]).toEqual({ genre: 'Comedy', title: 'The Kid', year: 1921, filmId: values.filmId, cast: film.cast });
    expect(await costOf(() => ofActor('Charlie Chaplin'))).toBe(1);
    expect((await ofActor('Charlie')).items).toEqual([]);
    await engineWrite.patchEntity(world.engine, movies, values, { genres: ['Comedy'] });
    await expect(engineWrite.patchEntity(world.engine, movies, values, { genres: ['Drama'] })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'genre',
    });
    await engineWrite.deleteEntity(world.engine, movies, values);
    await world.settle();
    await expectIndexesToAgree(world.storage, movies);
    expect((await ofActor('Charlie Chaplin')).items).toEqual([]);
  });

  test('is refused for a list with more elements than one message can name, and nothing is written', async () => {
    // Short enough for the row.
    const cast = Array.from({ length: 200 }, (_, index) => String(index).padStart(150, 'x'));
    const film = { title: 'Everybody'.repeat(20), year: 1925, genres: ['Drama'], cast };
    await expect(engineWrite.createEntity(world.engine, movies, film)).rejects.toMatchObject({
      code: 'too-large',
      message: 'The change affects more index entries than one message can list.',
    });
    await world.settle();
    for (const table of ['movies', 'moviesbyactor'])
      expect((await rowsOf(world.storage, table)).filter(({ title }) => title === film.title)).toEqual([]);
  });
});

describe('an index spread over buckets', () => {
  test('spreads one day over several partitions and reads it as one list, in order and by pages', async () => {
    const orderDate = '2026-11-20';
    const written: Values[] = [];
    for (const customerId of ['K0', 'K1', 'K2'])
      await engineWrite.createEntity(world.engine, customers, { city: 'Kiel', customerId, companyName: 'K' });
    for (let orderId = 1; orderId <= 40; orderId += 1)
      written.push(
        (
          await engineWrite.createEntity(world.engine, orders, {
            customerId: `K${orderId % 3}`,
            orderId,
            orderDate,
            freight: orderId,
          })
        ).values,
      );
    await engineWrite.createEntity(world.engine, orders, { customerId: 'K1', orderId: 99, orderDate: '2026-11-21' });
    await world.settle();
    await expectIndexesToAgree(world.storage, orders);
    const partitions = new Set(
      (await rowsOf(world.storage, 'ordersbydate'))
        .map(({ partitionKey }) => partitionKey)
        .filter((key) => String(key).startsWith(orderDate)),
    );
    expect(partitions.size).toBe(8);
    expect(definePlaces.indexFields(orders, byDate)).toEqual(['orderDate']);
    for (const top of [7, 40, 100]) {
      const pages = await allPages((after: Position | undefined) =>
        engineRead.readByCopies(world.engine, orders, byDate, { orderDate }, { top, after }),
      );
      for (const { items } of pages) expect(items.length).toBeLessThanOrEqual(top);
      expect(pages.flatMap(({ items }) => items)).toEqual(written);
    }
    expect(await costOf(() => engineRead.readByCopies(world.engine, orders, byDate, { orderDate }, { top: 100 }))).toBe(
      8,
    );
  });

  test('reads its partitions concurrently', async () => {
    const inner = createDefaultHttpClient();
    let running = 0;
    let most = 0;
    const sendRequest = async (request: PipelineRequest) => {
      running += 1;
      most = Math.max(most, running);
      return inner.sendRequest(request).finally(() => {
        running -= 1;
      });
    };
    const given = { orderDate: '2026-11-20' };
    await engineRead.readByCopies(world.engineThrough({ sendRequest }), orders, byDate, given, { top: 10 });
    expect(most).toBe(8);
  });
});

describe('a copy in the partition', () => {
  const ann = { book: 'Blue', id: 'ann', email: 'ann@contoso.com' };
  const asId = { ...ann, id: 'email_ann@contoso.com' };
  beforeAll(async () => {
    await engineWrite.createEntity(world.engine, contacts, ann);
  });

  test('is returned by its index, and not as another entity of a range', async () => {
    const found = await engineRead.readByCopy(
      world.engine,
      contacts,
      contacts.indexes.email as IntraPartitionIndex,
      ann,
    );
    expect(found).toEqual(ann);
    const range = (options: object) => engineRead.readEntities(world.engine, contacts, ann, { top: 10, ...options });
    expect((await range({})).items).toEqual([ann]);
    expect((await range({ select: ['email'] })).items).toEqual([{ email: ann.email }]);
    const pages = [await range({ top: 1 })];
    for (let next = pages[0]?.next; next; next = pages.at(-1)?.next) pages.push(await range({ top: 1, after: next }));
    expect(pages.flatMap(({ items }) => items)).toEqual([ann]);
  });

  test('is not read, written or deleted by its key', async () => {
    const before = await rowsOf(world.storage, 'contacts');
    await expect(engineRead.readEntity(world.engine, contacts, asId)).rejects.toMatchObject({ code: 'not-found' });
    await expect(engineWrite.patchEntity(world.engine, contacts, asId, { email: 'x' })).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(engineWrite.deleteEntity(world.engine, contacts, asId)).rejects.toMatchObject({ code: 'not-found' });
    expect(await putAll(world.engine, contacts, [{ ...asId, email: 'x' }])).toMatchObject([{ code: 'duplicate-key' }]);
    expect(await rowsOf(world.storage, 'contacts')).toEqual(before);
    await expectIndexesToAgree(world.storage, contacts);
  });
});

describe('a copy of an earlier version', () => {
  const ann = { city: 'Bern', id: '1', name: 'Ann', plate: 'BE1', seats: 3 };
  const upgraded = { ...ann, seats: 4, region: 'ANN' };
  const part = { city: 'Bern', id: '1', seats: 4, region: 'ANN' };
  const list = (name: string, { city, name: of, plate }: Values) => {
    const given = { name: { city, name: of }, plate: { plate } }[name] ?? {};
    return engineRead.readByCopies(world.engine, upgradedDrivers, upgradedDrivers.indexes[name] as CopyIndex, given, {
      top: 10,
    });
  };
  const verify = async (only?: string) => {
    const options = { top: 100, repair: only !== undefined, patience: 0, only };
    return (await operationsCheck.verifyPage(world.engine, upgradedDrivers, options)).findings;
  };

  test('is followed if it lacks fields, and upgraded if it has all', async () => {
    await engineWrite.createEntity(world.engine, drivers, ann);
    expect((await list('name', ann)).items).toEqual([part]);
    expect((await list('plate', ann)).items).toEqual([{ city: 'Bern', id: '1', seats: 4 }]);
    expect((await list('all', {})).items).toEqual([upgraded]);
    const plate = upgradedDrivers.indexes.plate as InterPartitionIndex;
    expect(await engineRead.readByCopy(world.engine, upgradedDrivers, plate, ann)).toEqual(upgraded);
    expect(await costOf(() => list('name', ann))).toBe(2);
    expect(await costOf(() => list('all', {}))).toBe(1);
  });

  test('is not stale, and is written again when its index is built', async () => {
    expect(await verify()).toEqual([]);
    for (const index of ['name', 'plate', 'all'])
      expect(await verify(index)).toMatchObject([{ kind: 'stale', of: index, repaired: true }]);
    expect((await list('name', ann)).items).toEqual([part]);
    expect((await list('plate', ann)).items).toEqual([{ city: 'Bern', id: '1', seats: 4 }]);
    expect(await costOf(() => list('name', ann))).toBe(1);
    expect(await verify()).toEqual([]);
  });

  test('is not followed for the fields that a confirmed partial copy has', async () => {
    const plate = upgradedDrivers.indexes.plate as InterPartitionIndex;
    const read = (select?: readonly string[]) =>
      engineRead.readByCopy(world.engine, upgradedDrivers, plate, ann, select);
    expect(await read(['city', 'id', 'seats'])).toEqual({ city: 'Bern', id: '1', seats: 4 });
    expect(await costOf(() => read(['city', 'id', 'seats']))).toBe(1);
    expect(await read(['name'])).toEqual({ name: 'Ann' });
    expect(await costOf(() => read(['name']))).toBe(2);
    expect(await read()).toEqual(upgraded);
    const row = { table: 'driversbyplate', partition: 'BE1', row: 'BE1' };
    const claimed = { kind: 'merge', row: 'BE1', etag: '*', properties: { Confirmed: false, seats: 9 } } as const;
    await storageRows.tryAction(world.storage, row, claimed);
    expect(await read(['seats'])).toEqual({ seats: 4 });
    expect(await costOf(() => read(['seats']))).toBe(2);
    await storageRows.tryAction(world.storage, row, { ...claimed, properties: { Confirmed: true, seats: 4 } });
  });

  test('is removed with its entity', async () => {
    const bob = { ...ann, id: '2', name: 'Bob', plate: 'BE2' };
    await engineWrite.createEntity(world.engine, drivers, bob);
    await engineWrite.patchEntity(world.engine, upgradedDrivers, bob, { seats: 9 });
    expect((await list('plate', bob)).items).toEqual([{ city: 'Bern', id: '2', seats: 9 }]);
    await engineWrite.deleteEntity(world.engine, upgradedDrivers, bob);
    await world.settle();
    await expectIndexesToAgree(world.storage, upgradedDrivers);
  });
});
